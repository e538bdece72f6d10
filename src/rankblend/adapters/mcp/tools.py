"""What a memory file can do for an MCP client, independent of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any

from attrs import define, field, frozen

from rankblend.adapters.mcp.failures import failure_of
from rankblend.adapters.mcp.parameters import Parameter, problems_of
from rankblend.chat.procedures import plain_match
from rankblend.errors import InvalidArgumentError
from rankblend.reasonlets import Outcome, Provenance, ReasonletMemory, ReasonletUnavailableError
from rankblend.recall import Match, Memory
from rankblend.relevance.scope import Scope

__all__ = ["SOURCE", "MemoryTools", "Tool"]

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
