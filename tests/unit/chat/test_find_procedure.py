"""The tool with which a model looks procedures up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from chat_world import (
    QUESTION,
    REPLY,
    SCOPE,
    Captured,
    Emitted,
    Model,
    OtherMemory,
    call,
    calls,
    embed,
    remember,
    result,
    said,
    steps,
    timeless,
    trip,
    user,
)

from rankblend.chat import ChatOptions, FindProcedure, ReasonletChat
from rankblend.reasonlets import (
    ReasonletMemory,
    ReasonletUnavailableError,
    ReasonletValidationError,
)


def looking(tool_name: str = "find_procedure", *, then: list[Any] = REPLY, times: int = 1) -> Any:
    """A model that looks up with the tool it was given, then does something."""

    async def chat(messages: Any, tools: Any = ()) -> list[Any]:
        (tool,) = (each for each in tools if isinstance(each, FindProcedure))
        new: list[Any] = []
        for at in range(times):
            new.append(calls(call(tool_name, f"look-{at}", question=QUESTION)))
            new.append(result(f"look-{at}", await tool(question=f"{QUESTION} {at}")))
        return [*new, *then]

    return chat


def options(**more: Any) -> ChatOptions:
    return ChatOptions(default_scope=SCOPE, expose_find_procedure=True, **more)


class TestAnswer:
    def test_look_up_when_something_is_known_then_matches_with_steps_and_no_values(self) -> None:
        async def main() -> str:
            memory = ReasonletMemory(embed)
            await remember(memory, REPLY, name="Refund")
            return await FindProcedure(memory, SCOPE)(QUESTION)

        text = asyncio.run(main())
        assert json.loads(text) == [
            {
                "name": "Refund",
                "similarity": 1.0,
                "success_rate": 0.5455,
                "runs": 1,
                "steps": [
                    {"tool": "orders.get", "arguments": ["id"]},
                    {"tool": "payments.refund", "arguments": ["amount", "id"]},
                ],
            }
        ]

    def test_look_up_when_nothing_is_known_or_the_scope_is_another_then_an_empty_array(
        self,
    ) -> None:
        async def main() -> str:
            memory = ReasonletMemory(embed)
            await remember(memory, REPLY)
            return await FindProcedure(memory, "tenant:other")(QUESTION)

        assert asyncio.run(main()) == "[]"

    @pytest.mark.parametrize("question", [" ", None, "x" * 40_000])
    def test_look_up_when_the_question_is_invalid_then_unavailable(self, question: Any) -> None:
        tool = FindProcedure(ReasonletMemory(embed), SCOPE)
        assert asyncio.run(tool(question)) == '{"error":"unavailable"}'

    def test_look_up_when_the_memory_fails_or_lies_then_unavailable(self) -> None:
        def down() -> None:
            raise ReasonletUnavailableError("store", "secret")

        def broken() -> None:
            raise RuntimeError("secret")

        for does in (down, broken, lambda: None, lambda: ["secret"]):
            tool = FindProcedure(OtherMemory(does), SCOPE)
            assert asyncio.run(tool(QUESTION)) == '{"error":"unavailable"}'

    def test_look_up_when_the_memory_hangs_then_unavailable_after_the_time_out(self) -> None:
        tool = FindProcedure(OtherMemory(asyncio.Event().wait), SCOPE, timeout=0.001)
        assert asyncio.run(tool(QUESTION)) == '{"error":"unavailable"}'

    def test_look_up_when_whoever_is_told_of_it_fails_then_unavailable(self) -> None:
        def broken(matches: Any) -> None:
            raise RuntimeError("secret")

        async def main() -> str:
            async with ReasonletMemory(embed) as memory:
                await remember(memory, REPLY)
                return await FindProcedure(memory, SCOPE, found=broken)(QUESTION)

        assert asyncio.run(main()) == '{"error":"unavailable"}'

    def test_tool_when_declared_then_in_the_shape_of_the_chat_api(self) -> None:
        definition = FindProcedure(ReasonletMemory(embed), SCOPE).definition
        assert definition["type"] == "function"
        assert definition["function"]["name"] == "find_procedure"
        assert definition["function"]["parameters"]["required"] == ["question"]
        json.dumps(definition)

    def test_tool_when_misconfigured_then_everything_is_told_at_once(self) -> None:
        with pytest.raises(ReasonletValidationError) as caught:
            FindProcedure(None, "nowhere", min_similarity=-1, timeout=-1, found=0)  # type: ignore[arg-type]
        assert [problem.partition(":")[0] for problem in caught.value.problems] == [
            "memory",
            "scope",
            "min_similarity",
            "timeout",
            "found",
        ]


class TestInTheMiddleware:
    def test_tool_when_not_exposed_then_the_tools_stay_as_they_are(self) -> None:
        model = Model()
        chat = ReasonletChat(
            model, ReasonletMemory(embed), queue=Captured(), options=ChatOptions(SCOPE)
        )
        asyncio.run(chat([user()]))
        assert model.keywords == [{}]

    def test_tool_when_exposed_then_it_is_added_to_a_copy_and_bound_to_the_calls_scope(
        self,
    ) -> None:
        async def main() -> None:
            model = Model()
            chat = ReasonletChat(model, ReasonletMemory(embed), queue=Captured(), options=options())
            mine = [{"type": "function", "function": {"name": "mine"}}]
            await chat([user()], tools=mine)
            await chat([user(), said("Hi")], scope="tenant:other")  # a continuation, too
            assert len(mine) == 1
            first, second = (keywords["tools"] for keywords in model.keywords)
            assert first[0] is mine[0]
            assert [str(tools[-1].scope) for tools in (first, second)] == [SCOPE, "tenant:other"]

        asyncio.run(main())

    @pytest.mark.parametrize(
        "own",
        [
            {"type": "function", "function": {"name": "find_procedure"}},
            {"name": "find_procedure", "input_schema": {}},
            FindProcedure(ReasonletMemory(embed), SCOPE),
            type("Tool", (), {"name": "find_procedure"})(),
        ],
        ids=["declared", "declared flat", "ours", "an object"],
    )
    def test_tool_when_there_is_one_of_that_name_then_that_is_kept(self, own: Any) -> None:
        model = Model()
        chat = ReasonletChat(model, ReasonletMemory(embed), queue=Captured(), options=options())
        tools = [own]
        asyncio.run(chat([user()], tools=tools))
        assert model.keywords[0]["tools"] is tools

    def test_tool_when_the_tools_are_no_sequence_then_none_is_added(self) -> None:
        model, tools = Model(), {"mine": 1}
        chat = ReasonletChat(model, ReasonletMemory(embed), queue=Captured(), options=options())
        asyncio.run(chat([user()], tools=tools))
        assert model.keywords[0]["tools"] is tools

    def test_look_ups_when_made_then_they_are_not_in_the_capture(self) -> None:
        async def main() -> None:
            memory, queue = ReasonletMemory(embed), Captured()
            chat = ReasonletChat(looking(), memory, queue=queue, options=options())
            await chat([user()])
            assert steps(queue.captures[0]) == ["orders.get(id)", "payments.refund(amount, id)"]
            assert queue.captures[0].parent_id is None

        asyncio.run(main())

    def test_look_ups_when_there_is_nothing_else_then_no_tool_calls(
        self, emitted: Callable[[], Emitted]
    ) -> None:
        chat = ReasonletChat(
            looking(then=[said("No idea")]), ReasonletMemory(embed), queue=Captured(),
            options=options(),
        )  # fmt: skip
        asyncio.run(chat([user()]))
        assert emitted().captures == {("skipped", "no_tool_calls"): 1}


class TestParent:
    def test_parent_when_something_was_injected_then_that_before_any_look_up(self) -> None:
        async def main() -> None:
            memory, queue = timeless(), Captured()
            ids = await remember(memory, trip("other"), REPLY)
            (best,) = await memory.recall(QUESTION, scope=SCOPE, top=1)
            assert best.reasonlet.id == ids[0]
            chat = ReasonletChat(looking(), memory, queue=queue, options=options())
            await chat([user()])
            assert queue.captures[0].parent_id == ids[0]  # the look-up found the same graph, ids[1]

        asyncio.run(main())

    def test_parent_when_only_looked_up_then_the_match_whose_graph_equals_the_run(self) -> None:
        async def main() -> None:
            memory, queue = timeless(), Captured()
            ids = await remember(memory, trip("other"), REPLY)
            chat = ReasonletChat(looking(), memory, queue=queue, options=options(recall=False))
            await chat([user()])
            assert queue.captures[0].parent_id == ids[1]
            receipt = await memory.remember(queue.captures[0])
            assert receipt.produced == "execution"

        asyncio.run(main())

    def test_parent_when_no_graph_equals_then_the_top_of_the_first_look_up_that_found_any(
        self,
    ) -> None:
        async def main() -> None:
            memory, queue = timeless(), Captured()
            ids = await remember(memory, trip("one"), trip("two"))
            empty = iter([True, False])

            class Memory:
                async def recall(self, question: str, **how: Any) -> Any:
                    return [] if next(empty, False) else await memory.recall(question, **how)

            model = looking(times=2)
            chat = ReasonletChat(model, Memory(), queue=queue, options=options(recall=False))
            await chat([user()])
            assert queue.captures[0].parent_id == ids[0]
            receipt = await memory.remember(queue.captures[0])
            assert (receipt.produced, receipt.version) == ("version", "1.1")

        asyncio.run(main())

    def test_parent_when_a_hosts_own_tool_looked_up_then_none_and_still_not_in_the_capture(
        self,
    ) -> None:
        async def main() -> None:
            memory, queue = timeless(), Captured()
            await remember(memory, REPLY)
            own = FindProcedure(memory, SCOPE)
            for exposed in (True, False):
                chosen = ChatOptions(SCOPE, recall=False, expose_find_procedure=exposed)
                chat = ReasonletChat(looking(), memory, queue=queue, options=chosen)
                await chat([user()], tools=[own])
            assert [capture.parent_id for capture in queue.captures] == [None, None]
            assert all(steps(c)[0] == "orders.get(id)" for c in queue.captures)

        asyncio.run(main())
