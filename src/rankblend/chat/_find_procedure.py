"""A tool with which the model itself looks up procedures that worked before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from attrs import field, frozen

from rankblend.chat._offer import matches_as_json
from rankblend.chat._provided import SupportsRecall, ask, blocking_problems
from rankblend.reasonlets import (
    Checks,
    ReasonletMatch,
    Said,
    read_duration,
    read_scope,
)
from rankblend.relevance import Scope

FIND_PROCEDURE = "find_procedure"

_UNAVAILABLE = '{"error":"unavailable"}'
_DESCRIPTION = (
    "Looks up procedures that answered similar questions before. Returns a JSON array, best first, "
    "of their steps (tools and argument names) with how often they ran and worked; empty when none "
    "is known."
)


def _nobody(matches: Sequence[ReasonletMatch]) -> None:
    """Nobody wants to know what was found."""


@frozen
class FindProcedure:
    """The tool ``find_procedure``, bound to a memory and a scope.

    Awaiting it with a question gives the text for the model; `definition` declares it in the shape
    of OpenAI's API. It never raises: a look-up that fails says ``{"error":"unavailable"}``.

    Args:
        memory: Where to look.
        scope: Whose procedures (a `Scope` or its text).
        min_similarity: In [0, 1]: the cut-off; None: the memory's own.
        timeout: How long a look-up is waited for (a duration, or seconds), > 0.
        found: Told of the matches of each look-up that found any; one that it fails on says
            ``{"error":"unavailable"}``.

    Raises:
        ReasonletValidationError: All invalid arguments at once.
    """

    memory: SupportsRecall
    scope: Scope = field(converter=read_scope)
    min_similarity: float | None = field(default=None, kw_only=True)
    timeout: timedelta = field(default=timedelta(seconds=2), converter=read_duration, kw_only=True)
    found: Callable[[Sequence[ReasonletMatch]], None] = field(default=_nobody, kw_only=True)

    def __attrs_post_init__(self) -> None:
        checks = Checks()
        self._check(checks)
        checks.raise_if_any()

    @property
    def name(self) -> str:
        """``find_procedure``."""
        return FIND_PROCEDURE

    @property
    def description(self) -> str:
        """What it does, for the model."""
        return _DESCRIPTION

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        question = {"type": "string", "description": "The question, in the user's words."}
        return {
            "type": "object",
            "properties": {"question": question},
            "required": ["question"],
            "additionalProperties": False,
        }

    @property
    def definition(self) -> dict[str, Any]:
        """Its declaration in the shape of OpenAI's chat API."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
        }
        return {"type": "function", "function": function}

    async def __call__(self, question: str) -> str:
        """Look up.

        Args:
            question: What a procedure is wanted for.

        Returns:
            A JSON array of matches with their steps, or ``{"error":"unavailable"}``.
        """
        answer = await ask(
            self.memory,
            question,
            scope=self.scope,
            top=None,
            min_similarity=self.min_similarity,
            timeout=self.timeout,
        )
        if not isinstance(answer, Said):
            return _UNAVAILABLE
        try:
            text = matches_as_json(answer.value)
            if answer.value:
                self.found(answer.value)
        except Exception:
            return _UNAVAILABLE
        return text

    def _check(self, checks: Checks) -> None:
        if not isinstance(self.memory, SupportsRecall):
            kind = type(self.memory).__name__
            checks.add("memory", f"expected something that recalls procedures, got {kind}")
        else:
            checks.extend("", blocking_problems("memory", self.memory, SupportsRecall))
        checks.scope("scope", self.scope)
        checks.unit("min_similarity", self.min_similarity, optional=True)
        checks.duration("timeout", self.timeout)
        checks.callable("found", self.found)


def accepts_find_procedure(tools: object) -> bool:
    """Whether the tool can be added to the tools of a call, where None and the like are no tools.

    Not when there is one of that name (a declaration, a tool object, a function), and not to what
    is no sequence.
    """
    if not tools:
        return True
    return isinstance(tools, Sequence) and all(_name_of(tool) != FIND_PROCEDURE for tool in tools)


def _name_of(tool: object) -> object:
    if isinstance(tool, Mapping):
        function = tool.get("function")
        return function.get("name") if isinstance(function, Mapping) else tool.get("name")
    return getattr(tool, "name", None) or getattr(tool, "__name__", None)
