"""What is handed over to be remembered: a question, the graph that answered it, how it went."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from attrs import field, frozen

from rankblend.kernels.text import is_blank
from rankblend.relevance import Scope
from rankblend.stores.procedures._checks import (
    MAX_ANSWER,
    MAX_DURATION,
    MAX_INTENT,
    MAX_NAME,
    MAX_REFERENCE,
    Checked,
    Checks,
    read_duration,
    read_scope,
)
from rankblend.stores.procedures._graph import Graph, PicklesByFields

UNSPECIFIED = "unspecified"
"""The intent of a capture that names none when no extractor is there."""
MAX_TAGS = 50
_TAG_NAME, _TAG_VALUE = 100, 1_000


def _tags(value: Any) -> Any:
    return MappingProxyType(dict(value)) if isinstance(value, Mapping) else value


@frozen
class Outcome(Checked):
    """How a run went, as the agent sees it.

    Args:
        success: Whether it worked.
        duration: How long it took (a duration, or seconds), at most ten years; or None.
        score: Its quality in [0, 1], or None; stored, not ranked by.
    """

    success: bool
    duration: timedelta | None = field(default=None, converter=read_duration)
    score: float | None = None

    def check(self, checks: Checks) -> None:
        """Note everything that is wrong."""
        checks.flag("success", self.success)
        checks.duration("duration", self.duration, positive=False, most=MAX_DURATION, optional=True)
        checks.unit("score", self.score, optional=True)


@frozen
class Provenance(Checked, PicklesByFields):
    """Where a procedure or a run comes from.

    Args:
        source: What produced it, e.g. the name of an agent.
        run_id: The run's id in the caller's own system.
        subject_id: The person it is about; what erasure by subject goes by.
        tags: At most `MAX_TAGS` texts by name.
    """

    source: str
    run_id: str | None = None
    subject_id: str | None = None
    tags: Mapping[str, str] = field(factory=dict, converter=_tags, hash=False)

    def check(self, checks: Checks) -> None:
        """Note everything that is wrong."""
        checks.text("source", self.source, limit=MAX_REFERENCE)
        for name in ("run_id", "subject_id"):
            checks.text(name, getattr(self, name), limit=MAX_REFERENCE, optional=True)
        if not isinstance(self.tags, Mapping):
            checks.add("tags", f"expected a mapping, got {type(self.tags).__name__}")
            return
        if len(self.tags) > MAX_TAGS:
            checks.add("tags", f"expected at most {MAX_TAGS}, got {len(self.tags):,}")
        for at, (name, value) in enumerate(self.tags.items()):
            checks.text(f"tags[{at}]: name", name, limit=_TAG_NAME)
            checks.text(f"tags[{at}]: value", value, limit=_TAG_VALUE, blank=True)


@frozen
class Capture(Checked):
    """One answered question, to be remembered as a procedure, a version of one, or a run.

    Constructing one checks nothing; `ReasonletMemory.remember` reports everything at once.

    Args:
        scope: Where it belongs; a `Scope` or its text.
        question: In the user's words; at most 32,000 code points.
        graph: The steps.
        outcome: How the run went.
        provenance: Where it comes from.
        name: For people; None: the first line of the question.
        intent: The kind of problem, e.g. ``refund``; None: the extractor's, else ``unspecified``.
        parent_id: The procedure it followed or improves on.
        answer: The final reply. Only an evaluator sees it; it is never stored.
    """

    scope: Scope = field(converter=read_scope)
    question: str = field(repr=False)
    graph: Graph = field(repr=False)
    outcome: Outcome
    provenance: Provenance
    name: str | None = field(default=None, repr=False)
    intent: str | None = None
    parent_id: str | None = None
    answer: str | None = field(default=None, repr=False)

    def check(self, checks: Checks) -> None:
        """Note everything that is wrong."""
        checks.scope("scope", self.scope)
        checks.question("question", self.question)
        for name, kind in (("graph", Graph), ("outcome", Outcome), ("provenance", Provenance)):
            checks.part(name, getattr(self, name), kind)
        checks.question("name", self.name, limit=None, optional=True)
        checks.text("intent", self.intent, limit=MAX_INTENT, optional=True)
        checks.id("parent_id", self.parent_id, optional=True)
        if self.answer is not None and not isinstance(self.answer, str):
            checks.add("answer", f"expected text or None, got {type(self.answer).__name__}")


def judged_answer(answer: str | None) -> str | None:
    """The answer an evaluator may see, or None: a blank, oversized or broken one is not judged.

    It is the agent's own output, so it makes no call fail.
    """
    checks = Checks()
    checks.text("answer", answer, limit=MAX_ANSWER)
    return None if checks.lines else answer


def named_after(name: str | None, question: str) -> str:
    """The name given, else the question's first line with text; cut to 200 code points."""
    if name is not None and len(name) <= MAX_NAME:
        return name
    lines = question.splitlines() if name is None else [name]
    first = next(line.strip() for line in lines if not is_blank(line))
    return first[:MAX_NAME].rstrip()
