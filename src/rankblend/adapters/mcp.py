"""MCP: a memory file as a server of tools; ``rankblend mcp`` runs it over standard input and output.

The scope is the server's: a client can name a place below it where that was allowed, and never one
above or beside it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from attrs import define, field, frozen

from rankblend.chat import plain_match
from rankblend.errors import (
    EmbeddingError,
    InvalidArgumentError,
    InvalidScopeError,
    MissingDependencyError,
    StoreError,
)
from rankblend.reasonlets import (
    Outcome,
    Provenance,
    ReasonletError,
    ReasonletMemory,
    ReasonletUnavailableError,
)
from rankblend.recall import Match, Memory
from rankblend.relevance import Scope
from rankblend.version import __version__

try:
    import mcp.server  # noqa: F401
except ImportError:
    raise MissingDependencyError("mcp", "mcp", "the MCP server") from None

from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp.types import Tool as DeclaredTool

__all__ = ["MemoryTools", "Tool", "make_server", "serve"]


def failure_of(error: Exception) -> dict[str, object]:
    """A failure as JSON-ready data.

    ``error`` is ``validation`` (with ``problems``), another code of the procedural memory,
    ``unavailable`` or ``internal``. Of errors whose words may hold a path or a value only the type
    is told.
    """
    if isinstance(error, InvalidArgumentError):
        # The memory's own messages end with the value refused; those of procedures never do.
        problems = [problem.partition(", got ")[0] for problem in error.problems]
        return {"error": "validation", "problems": problems}
    if isinstance(error, InvalidScopeError):
        return {"error": "validation", "problems": ["below: expected kind:id levels"]}
    if isinstance(error, ReasonletError):
        return {"error": error.code, "message": str(error)}
    kind = "unavailable" if isinstance(error, StoreError | EmbeddingError) else "internal"
    return {"error": kind, "type": type(error).__name__}


_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


@frozen
class Parameter:
    """One parameter of a tool.

    Args:
        name: Its name.
        kind: Its JSON type; the items of an array are strings.
        description: For the model.
        required: Whether it must be given.
        limits: More of its JSON Schema, e.g. ``{"minimum": 0}``; checked where the value is used.
    """

    name: str
    kind: str
    description: str
    required: bool = False
    limits: Mapping[str, object] = field(factory=dict, hash=False)

    def schema(self) -> dict[str, object]:
        """Its JSON Schema."""
        items: dict[str, object] = {"items": {"type": "string"}} if self.kind == "array" else {}
        return {"type": self.kind, "description": self.description, **items, **self.limits}

    def accepts(self, value: object) -> bool:
        """Whether a value is of its type."""
        if isinstance(value, bool) and self.kind != "boolean":
            return False
        if isinstance(value, list) and not all(isinstance(item, str) for item in value):
            return False
        return isinstance(value, _KINDS[self.kind])


def input_schema(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments."""
    return {
        "type": "object",
        "properties": {parameter.name: parameter.schema() for parameter in parameters},
        "required": [parameter.name for parameter in parameters if parameter.required],
        "additionalProperties": False,
    }


def problems_of(parameters: Sequence[Parameter], arguments: Mapping[str, object]) -> Iterator[str]:
    """What is wrong with the arguments of a call: names and types, never a value.

    An argument that is null is as good as none.
    """
    known = {parameter.name for parameter in parameters}
    unknown = len(arguments.keys() - known)
    if unknown:
        yield f"{unknown} unknown arguments; known: {', '.join(sorted(known))}"
    for parameter in parameters:
        value = arguments.get(parameter.name)
        if value is None:
            if parameter.required:
                yield f"{parameter.name}: required"
        elif not parameter.accepts(value):
            items = " of strings" if parameter.kind == "array" else ""
            yield f"{parameter.name}: expected {parameter.kind}{items}"


SOURCE = "mcp"
"""Provenance of the runs that clients record."""

_UNIT = {"minimum": 0, "maximum": 1}
_BELOW = Parameter(
    "below",
    "string",
    "A place below the server's scope, e.g. user:7/session:3; only where the server allows it.",
)
_QUERY = Parameter("query", "string", "The question, in words.", required=True)


@frozen
class Tool:
    """One tool.

    Attributes:
        name, description: For the model.
        parameters: Its arguments.
        call: What it does with valid arguments.
        writes: Whether it changes anything.
    """

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    call: Callable[[Scope, Mapping[str, Any]], Awaitable[dict[str, object]]] = field(repr=False)
    writes: bool = False


def _scope(value: Scope | str) -> Scope:
    return Scope.of(value)


@define(eq=False)
class MemoryTools:
    """The tools over one memory and its procedures, at one scope.

    Args:
        memory: The memory.
        procedures: The procedures; None where there is no embedder to find them with.
        scope: Of the server.
        allow_below: Whether a call may name a place below that scope.
    """

    memory: Memory
    procedures: ReasonletMemory | None
    scope: Scope = field(converter=_scope)
    allow_below: bool = field(default=False, kw_only=True)

    def tools(self) -> tuple[Tool, ...]:
        """All tools, in the order they are listed."""
        at_most = Parameter("top", "integer", "At most this many.", limits={"minimum": 1})
        return (
            Tool(
                "recall",
                "Recalls what is remembered about a question, best first, with scores.",
                (_QUERY, at_most, _BELOW),
                self._recall,
            ),
            Tool(
                "remember",
                "Remembers a text. With an id known at this scope it becomes its new revision.",
                (
                    Parameter("text", "string", "What to remember.", required=True),
                    Parameter("id", "string", "Its id; a new random one when none is given."),
                    Parameter("layer", "string", "Its layer, e.g. semantic (default), episodic."),
                    Parameter("salience", "number", "How important it is.", limits=_UNIT),
                    Parameter("confidence", "number", "How sure it is.", limits=_UNIT),
                    Parameter("links", "array", "Ids of memories or names of entities."),
                    Parameter("metadata", "object", "JSON values to keep with it."),
                    _BELOW,
                ),
                self._remember,
                writes=True,
            ),
            Tool(
                "explain",
                "Explains why a memory stands where it stands for a question, or is not found.",
                (_QUERY, Parameter("id", "string", "Of the memory.", required=True), _BELOW),
                self._explain,
            ),
            Tool(
                "find_procedure",
                "Looks up procedures that answered similar questions before, best first: their "
                "steps (tools and argument names), and how often they ran and worked.",
                (Parameter("question", "string", "In the user's words.", required=True),
                 Parameter("top", "integer", "At most this many.",
                           limits={"minimum": 1, "maximum": 50}), _BELOW),
                self._find_procedure,
            ),
            Tool(
                "record_outcome",
                "Records how following a procedure went, so that it is ranked by what works.",
                (
                    Parameter("procedure", "string", "Id, from find_procedure.", required=True),
                    Parameter("success", "boolean", "Whether it worked.", required=True),
                    Parameter("score", "number", "How well.", limits=_UNIT),
                    Parameter("seconds", "number", "How long it took.", limits={"minimum": 0}),
                    Parameter("run_id", "string", "Of the run in your own system."),
                    _BELOW,
                ),
                self._record_outcome,
                writes=True,
            ),
        )  # fmt: skip

    async def call(
        self, tool: Tool, arguments: Mapping[str, Any]
    ) -> tuple[dict[str, object], bool]:
        """Call a tool.

        Returns:
            Its answer and True, or `failure_of` what went wrong and False. It never raises an
            exception but a cancellation.
        """
        try:
            problems = tuple(problems_of(tool.parameters, arguments))
            if problems:
                raise InvalidArgumentError(problems)
            given = {name: value for name, value in arguments.items() if value is not None}
            scope = self._scope_of(given.pop("below", None))
            return await tool.call(scope, given), True
        except Exception as error:
            return failure_of(error), False

    def _scope_of(self, below: str | None) -> Scope:
        """The server's scope or one below it: levels are only ever added."""
        if below is None:
            return self.scope
        if not self.allow_below:
            problem = "below: this server has one scope only; it is fixed where the server starts"
            raise InvalidArgumentError(problem)
        return self.scope / below

    async def _recall(self, scope: Scope, given: Mapping[str, Any]) -> dict[str, object]:
        recall = await self.memory.arecall(given["query"], scope=scope, top=given.get("top"))
        matches = [_plain(match) for match in recall]
        return {"matches": matches, "degraded": recall.degraded}

    async def _remember(self, scope: Scope, given: Mapping[str, Any]) -> dict[str, object]:
        return {"id": await asyncio.to_thread(self.memory.remember, scope=scope, **given)}

    async def _explain(self, scope: Scope, given: Mapping[str, Any]) -> dict[str, object]:
        recall = await self.memory.arecall(given["query"], scope=scope)
        return recall.explain(given["id"]).plain()

    async def _find_procedure(self, scope: Scope, given: Mapping[str, Any]) -> dict[str, object]:
        procedures = self._procedures()
        matches = await procedures.recall(given["question"], scope=scope, top=given.get("top"))
        found = [{"id": match.reasonlet.id, **plain_match(match)} for match in matches]
        return {"procedures": found}

    async def _record_outcome(self, scope: Scope, given: Mapping[str, Any]) -> dict[str, object]:
        seconds = given.get("seconds")
        receipt = await self._procedures().record_execution(
            scope,
            given["procedure"],
            outcome=Outcome(
                success=given["success"],
                duration=None if seconds is None else _duration(seconds),
                score=given.get("score"),
            ),
            provenance=Provenance(SOURCE, run_id=given.get("run_id")),
        )
        return {"procedure": receipt.id, "version": receipt.version, "run": receipt.execution}

    def _procedures(self) -> ReasonletMemory:
        if self.procedures is None:
            raise ReasonletUnavailableError("embedder")
        return self.procedures


def _plain(match: Match) -> dict[str, object]:
    memory = match.memory
    return {
        "id": memory.id,
        "text": memory.text,
        "scope": str(memory.scope),
        "layer": memory.layer,
        "at": memory.at.isoformat(),
        "score": round(match.score, 4),
        "signals": {name: round(value, 4) for name, value in match.signals.present().items()},
        "metadata": dict(memory.metadata),
    }


def _duration(seconds: float) -> timedelta:
    try:
        return timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        raise InvalidArgumentError("seconds: expected a number of seconds ≥ 0") from None


_INSTRUCTIONS = (
    "A memory: recall before answering, remember what should last. Before a task with several "
    "steps ask find_procedure, and record_outcome after following one."
)


def make_server(tools: MemoryTools) -> Server[Any]:
    """A server of the official SDK, to be run over any of its transports.

    Every failure of a tool is an error result with `failure_of` it as JSON; none is a protocol
    error, and none is logged.
    """
    known = {tool.name: tool for tool in tools.tools()}

    async def list_tools(
        context: ServerRequestContext[Any],  # noqa: ARG001
        request: PaginatedRequestParams | None,  # noqa: ARG001
    ) -> ListToolsResult:
        return ListToolsResult(tools=[_declared(tool) for tool in known.values()])

    async def call_tool(
        context: ServerRequestContext[Any],  # noqa: ARG001
        request: CallToolRequestParams,
    ) -> CallToolResult:
        tool = known.get(request.name)
        if tool is None:
            return _result({"error": "validation", "problems": ["name: no such tool"]}, failed=True)
        answer, worked = await tools.call(tool, request.arguments or {})
        return _result(answer, failed=not worked)

    return Server(
        "rankblend",
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


async def serve(tools: MemoryTools) -> None:
    """Serve over standard input and output until the input ends."""
    server = make_server(tools)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def _declared(tool: Tool) -> DeclaredTool:
    return DeclaredTool(
        name=tool.name,
        description=tool.description,
        input_schema=input_schema(tool.parameters),
        annotations=ToolAnnotations(read_only_hint=not tool.writes, open_world_hint=False),
    )


def _result(answer: dict[str, object], *, failed: bool) -> CallToolResult:
    text = json.dumps(answer, ensure_ascii=False)
    return CallToolResult(
        content=[TextContent(text=text)],
        structured_content=None if failed else answer,
        is_error=failed,
    )
