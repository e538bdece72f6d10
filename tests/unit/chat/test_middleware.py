"""A memory around a chat callable: what it adds to a call, and when it does not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from chat_world import (
    QUESTION,
    REPLY,
    SCOPE,
    Captured,
    Emitted,
    Model,
    call,
    calls,
    embed,
    remember,
    result,
    said,
    steps,
    trip,
    user,
)

from rankblend.chat import ChatOptions, Exchange, ReasonletChat
from rankblend.reasonlets import (
    Capture,
    Graph,
    Node,
    Outcome,
    Provenance,
    ReasonletMatch,
    ReasonletMemory,
    ReasonletOptions,
    ReasonletValidationError,
)
from rankblend.relevance import ScopeBlend, ScopeBlendMode

Telemetry = Callable[[], Emitted]
SYSTEM = {"role": "system", "content": "Be kind."}


def options(**more: Any) -> ChatOptions:
    return ChatOptions(**{"default_scope": SCOPE, **more})


class TestRecall:
    def test_question_when_a_procedure_is_known_then_it_is_offered_after_the_system_messages(
        self, emitted: Telemetry
    ) -> None:
        async def main() -> None:
            memory, model = ReasonletMemory(embed), Model()
            await remember(memory, REPLY, name="orders.get → payments.refund")
            chat = ReasonletChat(model, memory, queue=Captured(), options=options())
            messages = [SYSTEM, {"role": "developer", "content": "Short."}, said("Hi"), user()]
            before = list(messages)
            assert await chat(messages) is REPLY
            assert messages == before
            (asked,) = model.asked
            assert asked is not messages
            assert asked[:2] + asked[3:] == before
            assert asked[2]["role"] == "system"
            assert asked[2]["content"].splitlines() == [
                "A known procedure for a similar question: orders.get → payments.refund",
                "Similarity 1.00, success rate 0.55, 1 run.",
                "Steps:",
                "1. orders.get (id)",
                "2. payments.refund (amount, id)",
                "Follow it as far as it fits the question at hand.",
            ]

        asyncio.run(main())
        assert emitted().recalls == {("injected",): 1}

    def test_question_when_asked_then_the_best_match_is_asked_for_with_the_cut_off(self) -> None:
        asked = []

        class Asked:
            async def recall(self, question: str, **how: Any) -> list[ReasonletMatch]:
                asked.append((question, how))
                return []

        chat = ReasonletChat(
            Model(), Asked(), queue=Captured(), options=options(min_similarity=0.75)
        )
        asyncio.run(chat([user()]))
        ((question, how),) = asked
        assert question == QUESTION
        assert how == {
            "scope": chat.pipeline.options.default_scope,
            "top": 1,
            "min_similarity": 0.75,
        }

    def test_question_when_nothing_is_known_then_the_callers_own_list_is_passed_on(
        self, emitted: Telemetry
    ) -> None:
        model, messages = Model(), [user()]
        chat = ReasonletChat(model, ReasonletMemory(embed), queue=Captured(), options=options())
        asyncio.run(chat(messages))
        assert model.asked[0] is messages
        assert emitted().recalls == {("empty",): 1}

    @pytest.mark.parametrize(
        "last",
        [
            [calls(call("a")), result("call-a")],
            [said("And so")],
            [user([{"type": "image_url", "image_url": {}}])],
            [user("  ")],
        ],
    )
    def test_continuation_when_the_last_message_is_no_user_text_then_there_is_no_recall(
        self, last: list[Any], emitted: Telemetry
    ) -> None:
        async def main() -> None:
            memory, model = ReasonletMemory(embed), Model()
            await remember(memory, REPLY)
            chat = ReasonletChat(model, memory, queue=Captured(), options=options())
            messages = [user(), *last]
            await chat(messages)
            assert model.asked[0] is messages

        asyncio.run(main())
        told = emitted()
        assert told.recalls == {("skipped", "continuation"): 1}
        assert told.of("mnemosyne.recall.duration") == {}

    def test_formatter_when_given_then_its_text_is_offered(self) -> None:
        async def main() -> None:
            memory, model = ReasonletMemory(embed), Model()
            await remember(memory, REPLY)
            chat = ReasonletChat(
                model,
                memory,
                queue=Captured(),
                options=options(formatter=lambda m: "Like last time"),
            )
            await chat([user()])
            assert model.asked[0][0] == {"role": "system", "content": "Like last time"}

        asyncio.run(main())

    def test_offer_when_made_then_it_holds_no_question_no_value_and_no_free_property(self) -> None:
        async def main() -> None:
            memory, model = ReasonletMemory(embed), Model()
            node = Node("n", "tool", tool="pay\nIgnore\u202e all", properties={"note": "secret"})
            graph = Graph([node, Node("m", "answer")], properties={"secret": "secret"})
            await memory.remember(
                Capture(
                    SCOPE, "secret question", graph, Outcome(success=True), Provenance("secret"),
                    name="n" * 300,
                )
            )  # fmt: skip
            chat = ReasonletChat(model, memory, queue=Captured(), options=options())
            await chat([user()])
            text = model.asked[0][0]["content"]
            assert "secret" not in text
            assert text.splitlines()[0] == f"A known procedure for a similar question: {'n' * 200}"
            assert text.splitlines()[3:5] == ["1. pay Ignore all", "2. answer"]

        asyncio.run(main())


class TestScope:
    def test_call_when_it_names_a_scope_then_that_counts_and_not_the_default(self) -> None:
        async def main() -> None:
            memory, model, queue = ReasonletMemory(embed), Model(), Captured()
            await remember(memory, REPLY)
            chat = ReasonletChat(model, memory, queue=queue, options=options())
            await chat([user()], scope="tenant:other")
            assert len(model.asked[0]) == 1
            await chat([user()])
            assert len(model.asked[1]) == 2
            assert [str(each.scope) for each in queue.captures] == ["tenant:other", SCOPE]

        asyncio.run(main())

    @pytest.mark.parametrize("switches", [{}, {"recall": False}, {"capture": False}])
    def test_call_when_it_has_no_scope_then_it_passes_untouched_and_is_counted(
        self, switches: dict[str, bool], emitted: Telemetry
    ) -> None:
        model, queue, messages = Model(), Captured(), [user()]
        chosen = ChatOptions(expose_find_procedure=True, **switches)
        chat = ReasonletChat(model, ReasonletMemory(embed), queue=queue, options=chosen)
        assert asyncio.run(chat(messages, temperature=0)) is REPLY
        assert model.asked[0] is messages
        assert model.keywords == [{"temperature": 0}]
        assert queue.captures == []
        told = emitted()
        assert told.recalls == {("skipped", "no_scope"): 1}
        assert told.captures == {}

    def test_call_when_it_has_no_scope_and_both_are_off_then_nothing_is_counted(
        self, emitted: Telemetry
    ) -> None:
        chosen = ChatOptions(recall=False, capture=False, expose_find_procedure=True)
        asyncio.run(ReasonletChat(Model(), ReasonletMemory(embed), options=chosen)([user()]))
        assert emitted().events == {}

    def test_call_when_its_scope_or_subject_is_invalid_then_it_is_refused_before_the_model(
        self,
    ) -> None:
        model = Model()
        chat = ReasonletChat(model, ReasonletMemory(embed), queue=Captured())
        with pytest.raises(ReasonletValidationError) as caught:
            asyncio.run(chat([user()], scope="nowhere", subject_id=" "))
        assert [problem.partition(":")[0] for problem in caught.value.problems] == [
            "subject_id",
            "scope",
        ]
        assert model.asked == []

    @pytest.mark.parametrize(("scope", "capture"), [(None, True), (SCOPE, False)])
    def test_call_when_nothing_is_captured_of_it_then_its_subject_is_not_looked_at(
        self, scope: str | None, capture: bool
    ) -> None:
        model, messages = Model(), [user()]
        chosen = ChatOptions(capture=capture)
        chat = ReasonletChat(model, ReasonletMemory(embed), queue=Captured(), options=chosen)
        assert asyncio.run(chat(messages, scope=scope, subject_id="x" * 10_000)) == REPLY
        assert model.asked[0] is messages

    def test_subject_when_given_then_it_ends_in_the_provenance(self) -> None:
        queue = Captured()
        chat = ReasonletChat(
            Model(), ReasonletMemory(embed), queue=queue, options=options(source="support")
        )
        asyncio.run(chat([user()], subject_id="user-7"))
        assert queue.captures[0].provenance == Provenance("support", subject_id="user-7")


class TestSwitches:
    def test_recall_when_off_then_only_captures(self, emitted: Telemetry) -> None:
        async def main() -> None:
            memory, model, queue = ReasonletMemory(embed), Model(), Captured()
            await remember(memory, REPLY)
            chat = ReasonletChat(model, memory, queue=queue, options=options(recall=False))
            messages = [user()]
            await chat(messages)
            assert model.asked[0] is messages
            assert queue.captures[0].parent_id is None

        asyncio.run(main())
        assert emitted().recalls == {}

    def test_capture_when_off_then_only_recalls_and_needs_no_queue(
        self, emitted: Telemetry
    ) -> None:
        async def main() -> None:
            memory, model = ReasonletMemory(embed), Model()
            await remember(memory, REPLY)
            await ReasonletChat(model, memory, options=options(capture=False))([user()])
            assert len(model.asked[0]) == 2

        asyncio.run(main())
        told = emitted()
        assert told.recalls == {("injected",): 1}
        assert told.captures == {}


class TestCapture:
    def test_call_when_finished_then_the_whole_exchange_is_captured(self) -> None:
        times = iter([10.0, 12.5])
        queue = Captured()
        chat = ReasonletChat(
            Model(), ReasonletMemory(embed), queue=queue, options=options(),
            clock=lambda: next(times),
        )  # fmt: skip
        asyncio.run(chat([user("earlier"), *trip("old"), said("So"), user()]))
        (capture,) = queue.captures
        assert capture.question == QUESTION
        assert capture.answer == "Refunded."
        assert steps(capture) == ["orders.get(id)", "payments.refund(amount, id)"]
        assert capture.name == "orders.get → payments.refund"
        assert capture.outcome == Outcome(success=True, duration=timedelta(seconds=2.5))
        assert capture.parent_id is None

    def test_capture_when_something_was_offered_then_that_is_its_parent(self) -> None:
        async def main() -> None:
            memory, queue = ReasonletMemory(embed), Captured()
            (known,) = await remember(memory, trip("another"))
            await ReasonletChat(Model(), memory, queue=queue, options=options())([user()])
            assert queue.captures[0].parent_id == known

        asyncio.run(main())

    def test_capture_when_the_offer_belongs_to_a_scope_above_then_it_has_no_parent(self) -> None:
        async def main() -> None:
            blend = ReasonletOptions(scope_blend=ScopeBlend(ScopeBlendMode.BLEND))
            memory, model, queue = ReasonletMemory(embed, options=blend), Model(), Captured()
            await remember(memory, REPLY)
            chat = ReasonletChat(model, memory, queue=queue, options=options())
            await chat([user()], scope=f"{SCOPE}/user:7")
            assert len(model.asked[0]) == 2
            assert queue.captures[0].parent_id is None
            await memory.remember(queue.captures[0])

        asyncio.run(main())

    def test_capture_when_the_callers_list_changes_meanwhile_then_it_is_as_the_call_came(
        self,
    ) -> None:
        queue = Captured()

        def own_loop(messages: list[Any], **_: Any) -> Any:
            messages.extend(REPLY)
            return REPLY

        chat = ReasonletChat(
            Model([own_loop]), ReasonletMemory(embed), queue=queue, options=options()
        )
        asyncio.run(chat([user()]))
        assert steps(queue.captures[0]) == ["orders.get(id)", "payments.refund(amount, id)"]

    def test_capture_when_is_failed_is_given_then_it_decides(self) -> None:
        queue = Captured()
        chosen = options(is_failed=lambda message: message["tool_call_id"].startswith("orders"))
        asyncio.run(
            ReasonletChat(Model(), ReasonletMemory(embed), queue=queue, options=chosen)([user()])
        )
        assert steps(queue.captures[0]) == ["payments.refund(amount, id)"]

    @pytest.mark.parametrize(
        ("messages", "reply", "reason"),
        [
            ([user()], [calls(call("a"))], "pending_tool_calls"),
            ([user()], [*trip("a"), calls(call("a", "2"))], "pending_tool_calls"),
            ([user()], said("Just so"), "no_tool_calls"),
            ([user()], [], "no_tool_calls"),
            ([user()], trip("a", failed="a"), "no_tool_calls"),
            ([said("Hi")], REPLY, "no_question"),
        ],
    )
    def test_call_when_it_holds_no_procedure_then_it_is_skipped_with_the_reason(
        self, messages: list[Any], reply: Any, reason: str, emitted: Telemetry
    ) -> None:
        queue = Captured()
        chat = ReasonletChat(Model([reply]), ReasonletMemory(embed), queue=queue, options=options())
        assert asyncio.run(chat(messages)) is reply
        assert queue.captures == []
        assert emitted().captures == {("skipped", reason): 1}

    def test_call_when_the_model_raises_then_it_passes_and_nothing_is_captured(
        self, emitted: Telemetry
    ) -> None:
        failure, queue = ConnectionError("down"), Captured()
        chat = ReasonletChat(
            Model([failure]), ReasonletMemory(embed), queue=queue, options=options()
        )
        with pytest.raises(ConnectionError) as caught:
            asyncio.run(chat([user()]))
        assert caught.value is failure
        assert queue.captures == []
        assert emitted().captures == {}

    def test_reader_when_given_then_other_shapes_of_answers_are_captured(self) -> None:
        class Reply:
            messages = REPLY

        queue = Captured()
        chat = ReasonletChat(
            Model([Reply()]), ReasonletMemory(embed), queue=queue, options=options(),
            read=lambda reply: reply.messages,
        )  # fmt: skip
        assert isinstance(asyncio.run(chat([user()])), Reply)
        assert len(queue.captures) == 1

    def test_chat_when_it_is_no_coroutine_function_then_it_is_called_all_the_same(self) -> None:
        queue = Captured()
        chat = ReasonletChat(
            lambda messages: REPLY, ReasonletMemory(embed), queue=queue, options=options()
        )
        assert asyncio.run(chat([user()])) is REPLY
        assert len(queue.captures) == 1

    def test_exchange_when_it_is_not_captured_then_finishing_it_does_nothing(
        self, emitted: Telemetry
    ) -> None:
        exchange = Exchange([user()])
        exchange.finish(REPLY, duration=timedelta(0))
        assert emitted().events == {}


class TestOrder:
    """Where the middleware stands: outside the tool loop, or inside it."""

    TRIPS = (calls(call("orders.get", id=7)), calls(call("pay")), said("Refunded."))

    @staticmethod
    async def loop(chat: Callable[..., Any], messages: list[Any]) -> list[Any]:
        """A tool loop: calls until there is no tool call; returns what is new."""
        new: list[Any] = []
        while True:
            reply = await chat([*messages, *new])
            new.append(reply)
            if not reply.get("tool_calls"):
                return new
            new += [result(each["id"]) for each in reply["tool_calls"]]

    def test_order_when_outside_the_tool_loop_then_one_call_is_one_question(
        self, emitted: Telemetry
    ) -> None:
        async def main() -> None:
            memory, queue, model = ReasonletMemory(embed), Captured(), Model(list(self.TRIPS))
            (known,) = await remember(memory, REPLY)

            async def with_tools(messages: Any) -> Any:
                return await self.loop(model, messages)

            await ReasonletChat(with_tools, memory, queue=queue, options=options())([user()])
            (capture,) = queue.captures
            assert steps(capture) == ["orders.get(id)", "pay()"]
            assert capture.parent_id == known

        asyncio.run(main())
        told = emitted()
        assert told.recalls == {("injected",): 1}
        assert told.captures == {}

    def test_order_when_inside_the_tool_loop_then_only_the_final_trip_and_without_a_parent(
        self, emitted: Telemetry
    ) -> None:
        async def main() -> None:
            memory, queue, model = ReasonletMemory(embed), Captured(), Model(list(self.TRIPS))
            await remember(memory, REPLY)
            chat = ReasonletChat(model, memory, queue=queue, options=options())
            await self.loop(chat, [user()])
            (capture,) = queue.captures
            assert steps(capture) == ["orders.get(id)", "pay()"]
            assert capture.parent_id is None

        asyncio.run(main())
        told = emitted()
        assert told.recalls == {("injected",): 1, ("skipped", "continuation"): 2}
        assert told.captures == {("skipped", "pending_tool_calls"): 2}


class TestConstruction:
    def test_chat_when_misconfigured_then_it_fails_at_once_with_everything(self) -> None:
        with pytest.raises(ReasonletValidationError) as caught:
            ReasonletChat(Model(), None)  # type: ignore[arg-type]
        assert caught.value.problems == (
            "memory: expected a ReasonletMemory or a factory of one, got NoneType",
            "queue: expected a CaptureQueue, or ChatOptions(capture=False)",
        )

    def test_chat_when_a_part_is_of_another_kind_then_it_fails_at_once(self) -> None:
        memory = ReasonletMemory(embed)
        for arguments in ({"queue": 7}, {"options": {}}, {"queue": Captured(), "read": 1}):
            with pytest.raises(ReasonletValidationError):
                ReasonletChat(Model(), memory, **arguments)  # type: ignore[arg-type]
        with pytest.raises(ReasonletValidationError, match="chat: expected a callable, got str"):
            ReasonletChat("model", memory, queue=Captured())  # type: ignore[arg-type]

    def test_options_when_invalid_then_all_of_them_are_told(self) -> None:
        with pytest.raises(ReasonletValidationError) as caught:
            ChatOptions(
                default_scope="nowhere", recall=1, capture=None, expose_find_procedure="no",
                min_similarity=2, recall_timeout=0, source="", formatter=3, is_failed=None,
            )  # type: ignore[arg-type]  # fmt: skip
        assert [problem.partition(":")[0] for problem in caught.value.problems] == [
            "default_scope", "recall", "capture", "expose_find_procedure", "min_similarity",
            "recall_timeout", "source", "formatter", "is_failed",
        ]  # fmt: skip

    def test_options_when_a_time_out_is_a_number_then_it_is_seconds(self) -> None:
        assert ChatOptions(recall_timeout=1.5).recall_timeout == timedelta(seconds=1.5)
        assert ChatOptions().recall_timeout == timedelta(seconds=2)
