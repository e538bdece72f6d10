"""What a memory may ask besides its store: who guards, who names intents, who judges.

Each is any callable; an ordinary function runs in a thread of its own, an ``async`` one in the
event loop. Raising an exception that carries one of our codes is an *answer*; raising anything else
means that it is *down*.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import Protocol

from attrs import frozen

from rankblend.reasonlets.capture import Capture
from rankblend.reasonlets.checks import (
    MAX_INTENT,
    MAX_REFERENCE,
    bool_problems,
    text_problems,
    unit_problems,
)

__all__ = [
    "CaptureGuard",
    "ExtractedIntent",
    "GuardVerdict",
    "IntentExtractor",
    "Judgement",
    "RunEvaluator",
]


@frozen
class GuardVerdict:
    """Whether a capture may be remembered.

    Args:
        blocked: It may not.
        detector: What fired; required when blocked.
    """

    blocked: bool
    detector: str | None = None

    @classmethod
    def allow(cls) -> GuardVerdict:
        """It may."""
        return cls(blocked=False)

    @classmethod
    def block(cls, detector: str) -> GuardVerdict:
        """It may not, because this detector fired."""
        return cls(blocked=True, detector=detector)

    def validate(self) -> tuple[str, ...]:
        """Everything that is wrong, one line each."""
        return tuple(self._problems())

    def _problems(self) -> Iterator[str]:
        yield from bool_problems("blocked", self.blocked)
        optional = self.blocked is not True
        yield from text_problems("detector", self.detector, limit=MAX_REFERENCE, optional=optional)


@frozen
class ExtractedIntent:
    """What a question is about.

    Args:
        intent: A short label, at most 100 code points.
        confidence: In [0, 1].
    """

    intent: str
    confidence: float

    def validate(self) -> tuple[str, ...]:
        """Everything that is wrong, one line each."""
        return tuple(self._problems())

    def _problems(self) -> Iterator[str]:
        yield from text_problems("intent", self.intent, limit=MAX_INTENT)
        yield from unit_problems("confidence", self.confidence)


@frozen
class Judgement:
    """An evaluator's verdict on a run."""

    success: bool

    def validate(self) -> tuple[str, ...]:
        """Everything that is wrong, one line each."""
        return tuple(bool_problems("success", self.success))


class CaptureGuard(Protocol):
    """Sees every valid capture before anything else is done with it."""

    def __call__(self, capture: Capture, /) -> GuardVerdict | Awaitable[GuardVerdict]:
        """Allow it, or block it."""
        ...


class IntentExtractor(Protocol):
    """Names the intent of a question."""

    def __call__(self, question: str, /) -> ExtractedIntent | Awaitable[ExtractedIntent]:
        """The intent, and how sure it is."""
        ...


class RunEvaluator(Protocol):
    """Judges whether an answer answers its question."""

    def __call__(self, question: str, answer: str, /) -> Judgement | Awaitable[Judgement]:
        """The verdict."""
        ...
