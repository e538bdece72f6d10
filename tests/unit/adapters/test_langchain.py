"""LangChain: the middleware around its own agents, with its own fake models, and the retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from chat_world import (
    QUESTION,
    REPLY,
    SCOPE,
    Captured,
    Emitted,
    OtherMemory,
    embed,
    remember,
    steps,
)
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import (
    AIMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.runnables import RunnableParallel
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt
from pydantic import Field

from rankblend import Memory
from rankblend.adapters import langchain as middleware_module
from rankblend.adapters.langchain import (
    MemoryRetriever,
    ProcedureMiddleware,
    find_procedure_tool,
    plain_message,
)
from rankblend.chat import CaptureQueue, ChatOptions, FindProcedure
from rankblend.reasonlets import ReasonletMemory, ReasonletValidationError

Telemetry = Callable[[], Emitted]
HERE = ChatOptions(default_scope=SCOPE)
ASKED: Any = {"messages": [HumanMessage(QUESTION)]}
SECRET = "planted secret 4711"


class Model(FakeMessagesListChatModel):
    """The library's fake model, which notes what it is asked and accepts any tools."""

    asked: list[Any] = Field(default_factory=list)
    bound: list[Any] = Field(default_factory=list)

    def bind_tools(self, tools: Sequence[Any], **keywords: Any) -> Any:
        self.bound.append([each.name for each in tools])
        return self

    def _generate(self, messages: Any, *arguments: Any, **keywords: Any) -> Any:
        self.asked.append(messages)
        return super()._generate(messages, *arguments, **keywords)


def _calling(*names: str, **arguments: Any) -> AIMessage:
    asked = [{"name": n, "args": arguments, "id": f"{n}-{at}"} for at, n in enumerate(names)]
    return AIMessage("", tool_calls=asked)


@tool
def look_up(order: int) -> str:
    """Look an order up."""
    return "paid"


@tool
def refund(order: int, amount: int) -> str:
    """Refund an order."""
    return "done"


def _model(*replies: AIMessage) -> Model:
    said = replies or (
        _calling("look_up", order=7),
        _calling("refund", order=7, amount=3),
        AIMessage("Refunded."),
    )
    return Model(responses=list(said))


def _agent(model: Model, middleware: ProcedureMiddleware, **more: Any) -> Any:
    return create_agent(model, tools=[look_up, refund], middleware=[middleware], **more)


async def _learnt() -> ReasonletMemory:
    memory = ReasonletMemory(embed)
    await remember(memory, REPLY, name="refund")
    return memory


def test_agent_when_a_procedure_is_known_then_every_model_call_of_the_run_is_offered_it() -> None:
    model = _model()

    async def main() -> Any:
        async with await _learnt() as memory:
            middleware = ProcedureMiddleware(memory, queue=Captured(), options=HERE)
            agent = _agent(model, middleware, system_prompt="Be kind.")
            return await agent.ainvoke(ASKED)

    state = asyncio.run(main())
    assert state["messages"][-1].content == "Refunded."
    # Nothing of it stays in the state of the agent.
    assert set(state) == {"messages"}
    assert not [each for each in state["messages"] if isinstance(each, SystemMessage)]
    assert len(model.asked) == 3
    for asked in model.asked:
        assert asked[0].content == "Be kind."
        assert isinstance(asked[1], SystemMessage)
        assert "orders.get (id)" in asked[1].content
        assert asked[2].content == QUESTION


def test_offer_when_the_messages_begin_with_system_messages_then_it_comes_after_them() -> None:
    model = _model(AIMessage("Refunded."))
    rules = [SystemMessage("Be kind."), ChatMessage("Be brief.", role="developer")]

    async def main() -> None:
        async with await _learnt() as memory:
            middleware = ProcedureMiddleware(memory, queue=Captured(), options=HERE)
            asked: Any = {"messages": [*rules, HumanMessage(QUESTION)]}
            await _agent(model, middleware).ainvoke(asked)

    asyncio.run(main())
    said = [message.content for message in model.asked[0]]
    assert said[:2] == ["Be kind.", "Be brief."]
    assert "orders.get (id)" in said[2]
    assert said[3:] == [QUESTION]


def test_agent_when_done_then_it_is_captured_whole_with_what_was_offered_as_its_parent() -> None:
    queue = Captured()

    async def main() -> str:
        async with ReasonletMemory(embed) as memory:
            (known,) = await remember(memory, REPLY)
            middleware = ProcedureMiddleware(
                memory, queue=queue, options=HERE, subject_id=lambda runtime: "ana"
            )
            await _agent(_model(), middleware).ainvoke(ASKED)
            return known

    known = asyncio.run(main())
    (capture,) = queue.captures
    assert steps(capture) == ["look_up(order)", "refund(amount, order)"]
    assert (capture.question, capture.answer) == (QUESTION, "Refunded.")
    assert (capture.parent_id, capture.provenance.subject_id) == (known, "ana")
    assert capture.outcome.duration is not None


def test_agent_when_the_scope_is_in_the_runtime_then_each_run_has_its_own() -> None:
    @dataclass
    class Context:
        tenant: str

    queue = Captured()

    async def main() -> None:
        async with ReasonletMemory(embed) as memory:
            middleware = ProcedureMiddleware(
                memory, queue=queue, scope=lambda runtime: f"tenant:{runtime.context.tenant}"
            )
            model = _model(*_model().responses * 2)
            agent = _agent(model, middleware, context_schema=Context)
            for tenant in ("acme", "other"):
                await agent.ainvoke(ASKED, context=Context(tenant))

    asyncio.run(main())
    assert [str(capture.scope) for capture in queue.captures] == ["tenant:acme", "tenant:other"]


def test_agent_when_it_remembers_a_conversation_then_only_the_last_question_is_captured() -> None:
    queue = Captured()

    async def main() -> None:
        async with ReasonletMemory(embed) as memory:
            middleware = ProcedureMiddleware(memory, queue=queue, options=HERE)
            model = _model(*_model().responses, _calling("look_up", order=8), AIMessage("Paid."))
            agent = _agent(model, middleware, checkpointer=InMemorySaver())
            thread: Any = {"configurable": {"thread_id": "1"}}
            await agent.ainvoke(ASKED, thread)
            await agent.ainvoke({"messages": [HumanMessage("And order 8?")]}, thread)

    asyncio.run(main())
    first, second = queue.captures
    assert (first.answer, second.answer) == ("Refunded.", "Paid.")
    assert (second.question, steps(second)) == ("And order 8?", ["look_up(order)"])


def test_agent_when_streamed_then_it_is_captured_at_its_end_and_not_when_left() -> None:
    queue = Captured()

    async def main() -> None:
        async with ReasonletMemory(embed) as memory:
            middleware = ProcedureMiddleware(memory, queue=queue, options=HERE)
            left = _agent(_model(), middleware).astream(ASKED, stream_mode="messages")
            await anext(left)
            await left.aclose()
            assert queue.captures == []
            async for _ in _agent(_model(), middleware).astream(ASKED, stream_mode="messages"):
                pass

    asyncio.run(main())
    assert len(queue.captures) == 1


def test_agent_when_interrupted_and_resumed_then_it_is_captured_once_at_its_end() -> None:
    queue = Captured()

    @tool
    def approve(order: int) -> str:
        """Ask a person."""
        return str(interrupt("may it be refunded?"))

    async def main() -> None:
        async with await _learnt() as memory:
            middleware = ProcedureMiddleware(memory, queue=queue, options=HERE)
            model = _model(_calling("approve", order=7), AIMessage("Refunded."))
            agent: Any = create_agent(
                model, tools=[approve], middleware=[middleware], checkpointer=InMemorySaver()
            )
            thread: Any = {"configurable": {"thread_id": "1"}}
            await agent.ainvoke(ASKED, thread)
            assert queue.captures == []
            await agent.ainvoke(Command(resume="yes"), thread)
            assert "orders.get (id)" in model.asked[1][0].content

    asyncio.run(main())
    (capture,) = queue.captures
    assert (steps(capture), capture.answer) == (["approve(order)"], "Refunded.")


def test_agent_when_many_runs_never_end_then_the_oldest_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(middleware_module, "MAX_OPEN_RUNS", 2)
    queue = Captured()

    async def main() -> None:
        async with ReasonletMemory(embed) as memory:
            middleware = ProcedureMiddleware(memory, queue=queue, options=HERE)
            state: Any = {"messages": [HumanMessage(QUESTION, id="1")]}
            begun = [await middleware.abefore_agent(state, Runtime()) for _ in range(3)]
            for keys in begun:
                done: Any = [*state["messages"], _calling("look_up"),
                             ToolMessage("paid", tool_call_id="look_up-0"), AIMessage("Paid.")]  # fmt: skip
                for at, message in enumerate(done, start=1):
                    message.id = str(at)
                await middleware.aafter_agent({**state, **keys, "messages": done}, Runtime())

    asyncio.run(main())
    assert len(queue.captures) == 2


def test_agent_when_it_fails_then_nothing_is_captured() -> None:
    queue = Captured()

    class Failing(Model):
        def _generate(self, *arguments: Any, **keywords: Any) -> Any:
            raise ConnectionError("no model")

    async def main() -> None:
        async with ReasonletMemory(embed) as memory:
            middleware = ProcedureMiddleware(memory, queue=queue, options=HERE)
            with pytest.raises(ConnectionError):
                await _agent(Failing(responses=[]), middleware).ainvoke(ASKED)

    asyncio.run(main())
    assert queue.captures == []


def test_agent_when_the_memory_throws_or_there_is_no_scope_then_it_runs_as_without_it(
    emitted: Telemetry,
) -> None:
    def does() -> Any:
        raise RuntimeError(SECRET)

    models = [_model(), _model()]

    async def main() -> None:
        memory = OtherMemory(does)
        async with CaptureQueue(memory) as queue:
            for model, options in zip(models, (HERE, ChatOptions()), strict=True):
                middleware = ProcedureMiddleware(memory, queue=queue, options=options)
                state = await _agent(model, middleware).ainvoke(ASKED)
                assert state["messages"][-1].content == "Refunded."

    asyncio.run(main())
    assert all(len(model.asked[0]) == 1 for model in models)
    seen = emitted()
    assert seen.recalls == {("exception", "RuntimeError"): 1, ("skipped", "no_scope"): 1}
    assert seen.captures == {("exception", "RuntimeError"): 1}
    assert SECRET not in seen.text


def test_agent_when_called_without_an_event_loop_then_it_is_the_same() -> None:
    memory = asyncio.run(_learnt())
    queue = CaptureQueue(memory)
    model = _model()
    with ProcedureMiddleware(memory, queue=queue, options=HERE) as middleware:
        state = _agent(model, middleware).invoke(ASKED)
    assert state["messages"][-1].content == "Refunded."
    assert "orders.get (id)" in model.asked[2][0].content
    assert asyncio.run(memory.statistics()).runs == 2
    asyncio.run(memory.aclose())


def test_middleware_when_misconfigured_then_it_fails_at_construction() -> None:
    memory = ReasonletMemory(embed)
    with pytest.raises(ReasonletValidationError, match="queue: expected"):
        ProcedureMiddleware(memory)
    options = ChatOptions(expose_find_procedure=True)
    with pytest.raises(ReasonletValidationError, match="find_procedure_tool"):
        ProcedureMiddleware(memory, queue=CaptureQueue(memory), options=options)


@pytest.mark.parametrize("blocking", [False, True])
def test_tool_when_the_model_looks_a_procedure_up_then_it_gets_it_and_that_is_no_step(
    blocking: bool,
) -> None:
    queue = Captured()
    model = _model(
        _calling("find_procedure", question="refund"),
        _calling("look_up", order=7),
        AIMessage("Paid."),
    )

    async def main() -> Any:
        async with await _learnt() as memory:
            options = ChatOptions(default_scope=SCOPE, recall=False)
            middleware = ProcedureMiddleware(memory, queue=queue, options=options)
            tools = [look_up, find_procedure_tool(FindProcedure(memory, SCOPE))]
            agent = create_agent(model, tools=tools, middleware=[middleware])
            if blocking:
                return await asyncio.to_thread(agent.invoke, ASKED)
            return await agent.ainvoke(ASKED)

    state = asyncio.run(main())
    assert model.bound[0] == ["look_up", "find_procedure"]
    assert '"name": "refund"' in state["messages"][2].content
    (capture,) = queue.captures
    assert (steps(capture), capture.parent_id) == (["look_up(order)"], None)


def test_messages_when_read_then_roles_text_calls_and_failures_are_there() -> None:
    parts: Any = [{"type": "text", "text": "a"}, {"type": "image", "url": "u"}]
    assert plain_message(HumanMessage(parts)) == {"role": "user", "content": "a"}
    assert plain_message(ChatMessage("b", role="developer"))["role"] == "developer"
    assert plain_message(RemoveMessage("1"))["role"] == "remove"
    failed = plain_message(ToolMessage("no", tool_call_id="c", status="error"))
    assert (failed["tool_call_id"], failed["status"]) == ("c", "error")
    assert plain_message(_calling("look_up", order=7))["tool_calls"] == [
        {
            "id": "look_up-0",
            "type": "function",
            "function": {"name": "look_up", "arguments": {"order": 7}},
        }
    ]


@pytest.fixture
def notes() -> Iterator[Memory]:
    with Memory.open(":memory:") as memory:
        memory.remember("Refunds over 500 need approval", scope=SCOPE, id="policy", salience=0.9,
                        metadata={"page": 3})  # fmt: skip
        memory.remember("Ana wants a refund by transfer", scope=f"{SCOPE}/user:7", id="ana")
        memory.remember("Other tenants refund nothing", scope="tenant:other", id="other")
        yield memory


@pytest.mark.parametrize("called", ["invoke", "ainvoke"])
def test_retriever_when_asked_then_documents_are_the_matches_with_all_that_is_known(
    notes: Memory, called: str
) -> None:
    where = f"{SCOPE}/user:7"
    retriever = MemoryRetriever(
        memory=notes, scope=where, top=2, arguments={"weights": {"salience": 0.2}}
    )
    documents = getattr(retriever, called)("refund approval")
    if called == "ainvoke":
        documents = asyncio.run(documents)
    recall = notes.recall("refund approval", scope=where, top=2, weights={"salience": 0.2})
    assert [each.id for each in documents] == list(recall.ids) == ["policy", "ana"]
    first, match = documents[0], recall[0]
    assert first.page_content == "Refunds over 500 need approval"
    assert first.metadata["score"] == pytest.approx(match.score)
    assert first.metadata["signals"].keys() == dict(match.signals.present()).keys()
    assert (first.metadata["scope"], first.metadata["metadata"]) == (SCOPE, {"page": 3})
    assert first.metadata["degraded"] is False
    assert "text" not in first.metadata


def test_retriever_when_part_of_a_chain_then_it_is_a_runnable_like_any_other(
    notes: Memory,
) -> None:
    told: list[Any] = []

    class Handler(BaseCallbackHandler):
        def on_retriever_end(self, documents: Any, **_: Any) -> None:
            told.extend(documents)

    chain = RunnableParallel(found=MemoryRetriever(memory=notes, scope=SCOPE))
    answer = chain.invoke("refund approval", {"callbacks": [Handler()]})
    assert [each.id for each in answer["found"]] == [each.id for each in told] == ["policy"]
    assert "Refunds" not in repr(chain)


def test_retriever_when_misconfigured_then_it_fails_at_construction_and_repeats_nothing(
    notes: Memory,
) -> None:
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("memory\n", {"memory": {SECRET: 1}, "scope": SCOPE}),
        ("arguments: top has a place of its own", {"arguments": {"top": 2, SECRET: 1}}),
        ("top\n", {"top": SECRET}),
    ]
    for says, given in wrong:
        with pytest.raises(ValueError, match=says) as raised:
            MemoryRetriever(**{"memory": notes, "scope": SCOPE, **given})
        assert SECRET not in str(raised.value)
