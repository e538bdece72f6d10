"""LangChain: procedures for an agent (`ProcedureMiddleware`), memories for a chain (`MemoryRetriever`).

>>> from rankblend import Memory
>>> from rankblend.adapters.langchain import MemoryRetriever
>>> with Memory.open(":memory:") as memory:
...     _ = memory.remember("Refunds over 500 need approval", scope="tenant:acme")
...     documents = MemoryRetriever(memory=memory, scope="tenant:acme").invoke("refund approval")
>>> documents[0].page_content
'Refunds over 500 need approval'
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import timedelta
from typing import Annotated, Any, NotRequired, Self, cast

from attrs import field, frozen
from langgraph.runtime import Runtime
from pydantic import ConfigDict, Field, PrivateAttr

from rankblend.adapters._blocking import BlockingPipeline, offered_text, run_blocking, without_tool
from rankblend.adapters._matches import MemoryQuestions, metadata_of
from rankblend.caches import Lru
from rankblend.chat import (
    CaptureQueue,
    ChatOptions,
    Exchange,
    FindProcedure,
    Message,
    SupportsRecall,
    leading_system_messages,
)
from rankblend.errors import MissingDependencyError
from rankblend.recall import Memory, Recall
from rankblend.relevance import Scope

try:
    import langchain.agents.middleware  # noqa: F401
    import langchain_core.retrievers  # noqa: F401
except ImportError:
    raise MissingDependencyError("langchain", "langchain", "the LangChain adapter") from None

from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
)
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool, StructuredTool

__all__ = ["MemoryRetriever", "ProcedureMiddleware", "find_procedure_tool"]


_ROLES = ((HumanMessage, "user"), (SystemMessage, "system"), (ToolMessage, "tool"))


def plain_message(message: AnyMessage | BaseMessage) -> dict[str, Any]:
    """What a pipeline reads of a message: role, text, and the calls or the result in it.

    Example:
        >>> plain_message(ToolMessage("no such order", tool_call_id="c", status="error"))["status"]
        'error'
    """
    plain: dict[str, Any] = {"role": role_of(message), "content": str(message.text)}
    if isinstance(message, ToolMessage):
        plain |= {"tool_call_id": message.tool_call_id, "status": message.status}
    elif isinstance(message, AIMessage) and message.tool_calls:
        plain["tool_calls"] = [
            {
                "id": call["id"] or "",
                "type": "function",
                "function": {"name": call["name"], "arguments": call["args"]},
            }
            for call in message.tool_calls
        ]
    return plain


def role_of(message: BaseMessage) -> str:
    """Its role in the shape a pipeline reads."""
    if isinstance(message, AIMessage):
        return "assistant"
    if isinstance(message, ChatMessage):
        return message.role
    return next((role for kind, role in _ROLES if isinstance(message, kind)), message.type)


def find_procedure_tool(look_up: FindProcedure) -> BaseTool:
    """The tool with which a model looks up procedures that worked before.

    Its calls are never part of what `ProcedureMiddleware` captures, and set no parent.

    Args:
        look_up: The look-up, bound to a memory and a scope.
    """

    def find_procedure(question: str) -> str:
        return run_blocking(look_up(question))

    async def afind_procedure(question: str) -> str:
        return await look_up(question)

    return StructuredTool.from_function(
        func=find_procedure,
        coroutine=afind_procedure,
        name=look_up.name,
        description=look_up.description,
        args_schema=look_up.parameters,
    )


class MemoryRetriever(BaseRetriever):
    """Retrieves memories as documents, best first; sync and async.

    A document's id is the memory's, and its metadata is everything else about the match: score,
    signals, contributions and the memory's own fields (`metadata_of`).

    Args:
        memory: Whom to ask; it stays yours to close.
        scope: One scope or several, for every query.
        top: At most this many; None for the profile's number.
        arguments: More arguments of `Memory.recall`, e.g. ``{"profile": "hindsight"}``.

    Raises:
        ValidationError: Pydantic's, which is a ValueError: something else than a memory, or an
            argument given twice. It repeats no value.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, hide_input_in_errors=True)

    memory: Memory = Field(repr=False)
    scope: Any
    top: int | None = None
    arguments: dict[str, Any] = Field(default_factory=dict)
    _questions: MemoryQuestions = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Check what was given."""
        super().model_post_init(context)
        self._questions = MemoryQuestions.of(self.memory, self.scope, self.top, self.arguments)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002
    ) -> list[Document]:
        return _documents(self._questions.ask(query))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002
    ) -> list[Document]:
        return _documents(await self._questions.aask(query))


def _documents(recall: Recall) -> list[Document]:
    return [
        Document(match.memory.text, id=match.memory.id, metadata=metadata_of(match, recall))
        for match in recall
    ]


MAX_OPEN_RUNS = 1024


@frozen(eq=False)
class _Run:
    """One run of an agent, from before its first step to after its last."""

    exchange: Exchange
    offer: SystemMessage | None = field(repr=False)
    known: frozenset[str | None] = field(repr=False)
    start: float = field(repr=False)


class _OpenRuns:
    """Runs that have begun, by random keys; those that never end are forgotten, oldest first.

    They are not in the state of the agent, of which a checkpoint must be able to hold everything.
    """

    def __init__(self) -> None:
        self._runs: Lru[str, _Run] = Lru(MAX_OPEN_RUNS)

    def open(self, run: _Run) -> str:
        key = uuid.uuid4().hex
        self._runs.put(key, run)
        return key

    def get(self, key: str | None) -> _Run | None:
        return None if key is None else self._runs.peek(key)

    def close(self, key: str | None) -> _Run | None:
        return None if key is None else self._runs.pop(key)


class ProcedureState(AgentState[Any]):
    """The state of an agent with a procedural memory: the key of its run besides."""

    rankblend_run: NotRequired[Annotated[str, PrivateStateAttr]]


def _nobody(runtime: Runtime[Any]) -> None:
    """No run has a scope, or a subject, of its own."""


class ProcedureMiddleware(AgentMiddleware[ProcedureState, Any]):
    """Middleware for ``create_agent``: offers a known procedure, remembers the one that worked.

    No failure of the memory breaks a run or changes its answer. A run is not captured when it
    fails, is left before its end, is resumed in another process, or when `MAX_OPEN_RUNS` others
    begin before it ends.

    Use one from code with an event loop, or from code without, not from both: captures wait in one
    loop. Without one, `close` it (or leave its ``with`` block) so that what waits is remembered.

    Args:
        memory: Recalls procedures; or a factory of it, called when it is first needed.
        queue: Takes captures. Needed unless the options say that nothing is captured.
        options: What to do with a run; None: the defaults. To let the model look procedures up
            itself, give the agent a `find_procedure_tool`.
        scope: The scope of a run, from its runtime (``lambda runtime: runtime.context.tenant``);
            None from it, or none: the default scope of the options.
        subject_id: Whom a run is about, likewise.

    Raises:
        ReasonletValidationError: No memory, captures without a queue, or something else in their
            place; all of it at once.
    """

    state_schema = ProcedureState

    def __init__(
        self,
        memory: SupportsRecall | Callable[[], SupportsRecall],
        *,
        queue: CaptureQueue | None = None,
        options: ChatOptions | None = None,
        scope: Callable[[Runtime[Any]], Scope | str | None] = _nobody,
        subject_id: Callable[[Runtime[Any]], str | None] = _nobody,
    ) -> None:
        super().__init__()
        self._blocking = BlockingPipeline(
            memory,
            queue=queue,
            options=without_tool(options, "give the agent a find_procedure_tool instead"),
        )
        self._scope = scope
        self._subject_id = subject_id
        self._runs = _OpenRuns()

    def before_agent(self, state: ProcedureState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Recall, where there is no event loop."""
        messages, arguments = self._asked(state, runtime)
        exchange = self._blocking.begin(messages, **arguments)
        return self._begun(state, exchange)

    async def abefore_agent(self, state: ProcedureState, runtime: Runtime[Any]) -> dict[str, Any]:
        """Recall."""
        messages, arguments = self._asked(state, runtime)
        exchange = await self._blocking.pipeline.begin(messages, **arguments)
        return self._begun(state, exchange)

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        """Offer what was recalled."""
        return handler(self._offering(request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Offer what was recalled."""
        return await handler(self._offering(request))

    def after_agent(self, state: ProcedureState, runtime: Runtime[Any]) -> None:  # noqa: ARG002
        """Capture, where there is no event loop."""
        run = self._runs.close(state.get("rankblend_run"))
        if run is not None:
            self._blocking.finish(run.exchange, _new(state, run), seconds=_seconds(run))

    async def aafter_agent(self, state: ProcedureState, runtime: Runtime[Any]) -> None:  # noqa: ARG002
        """Capture."""
        run = self._runs.close(state.get("rankblend_run"))
        if run is not None:
            run.exchange.finish(_new(state, run), duration=timedelta(seconds=_seconds(run)))

    def close(self) -> None:
        """Let the memory remember what waits; only needed in code without an event loop."""
        self._blocking.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _asked(
        self, state: ProcedureState, runtime: Runtime[Any]
    ) -> tuple[list[Message], dict[str, Any]]:
        messages: list[Message] = [plain_message(message) for message in state["messages"]]
        return messages, {"scope": self._scope(runtime), "subject_id": self._subject_id(runtime)}

    def _begun(self, state: ProcedureState, exchange: Exchange) -> dict[str, Any]:
        text = offered_text(exchange)
        offer = None if text is None else SystemMessage(text)
        known = frozenset(message.id for message in state["messages"])
        run = _Run(exchange, offer, known, time.perf_counter())
        return {"rankblend_run": self._runs.open(run)}

    def _offering(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        """The request with the offer after its leading system messages.

        The agent's own system prompt is not among the messages and comes before all of them.
        """
        run = self._runs.get(cast("ProcedureState", request.state).get("rankblend_run"))
        if run is None or run.offer is None:
            return request
        messages: Sequence[AnyMessage] = request.messages
        leading = leading_system_messages([{"role": role_of(message)} for message in messages])
        return request.override(messages=[*messages[:leading], run.offer, *messages[leading:]])


def _new(state: ProcedureState, run: _Run) -> Iterator[Message]:
    """What the run brought; a generator, so that what goes wrong happens where it is counted."""
    for message in state["messages"]:
        if message.id not in run.known:
            yield plain_message(message)


def _seconds(run: _Run) -> float:
    return time.perf_counter() - run.start
