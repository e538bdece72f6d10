"""The dependencies of a memory, each asked by its own rules of failure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sized
from typing import Any, Protocol, TypeVar

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.embedders import checked
from rankblend.errors import EmbeddingError
from rankblend.reasonlets.capture import UNSPECIFIED, Capture, judged_answer
from rankblend.reasonlets.dependency import Down, Refused, Said, consult
from rankblend.reasonlets.errors import (
    CaptureBlockedError,
    ReasonletAdapterError,
    ReasonletUnavailableError,
)
from rankblend.reasonlets.options import ReasonletOptions
from rankblend.reasonlets.protocols import (
    CaptureGuard,
    ExtractedIntent,
    GuardVerdict,
    IntentExtractor,
    Judgement,
    RunEvaluator,
)
from rankblend.reasonlets.telemetry import EVALUATE, GUARD

__all__ = ["Advice"]


class _SupportsValidate(Protocol):
    def validate(self) -> tuple[str, ...]:
        """Everything that is wrong."""
        ...


_V = TypeVar("_V", bound=_SupportsValidate)


@frozen(eq=False)
class Advice:
    """Embedder, guard, extractor and evaluator of one memory; None where there is none."""

    embedder: Callable[..., Any]
    guard: CaptureGuard | None
    extractor: IntentExtractor | None
    evaluator: RunEvaluator | None
    options: ReasonletOptions

    async def admit(self, capture: Capture) -> None:
        """Let the guard see a capture; it fails closed.

        Raises:
            CaptureBlockedError: It blocked.
            ReasonletUnavailableError: It is down.
            ReasonletAdapterError: It answered nonsense.
        """
        if self.guard is None:
            return
        with GUARD.observe() as observed:
            answer = await consult(self.guard, capture, timeout=self.options.guard_timeout)
            if isinstance(answer, Refused) and answer.code == "blocked":
                verdict: Any = GuardVerdict(blocked=True, detector=answer.detector)
            else:
                verdict = _said("guard", answer)
            blocked = _valid("guard", verdict, GuardVerdict).blocked
            observed.outcome = "blocked" if blocked else "allowed"
        if blocked:
            raise CaptureBlockedError(str(verdict.detector))

    async def intent(self, capture: Capture) -> str:
        """The intent to be stored: a guess is better than none, none better than an invented one.

        Raises:
            ReasonletUnavailableError: The extractor was needed and is down.
            ReasonletAdapterError: It answered another code or an invalid intent.
        """
        if capture.intent is not None:
            return capture.intent
        if self.extractor is None:
            return UNSPECIFIED
        answer = await consult(self.extractor, capture.question)
        return _valid("extractor", _said("extractor", answer), ExtractedIntent).intent

    async def filter(self, question: str, intent: str | None) -> str | None:
        """The intent to search for: only one that is given, or extracted with confidence.

        Raises:
            ReasonletAdapterError: The extractor answered another code or an invalid intent.
        """
        if intent is not None or self.extractor is None:
            return intent
        answer = await consult(self.extractor, question)
        if isinstance(answer, Down):
            return None
        guess = _valid("extractor", _said("extractor", answer), ExtractedIntent)
        return guess.intent if guess.confidence >= self.options.min_intent_confidence else None

    async def embed(self, question: str, dimension: int | None) -> NDArray[np.float32]:
        """The unit vector of a question: float32, shape (d,).

        Args:
            question: Not blank.
            dimension: Of the store; None while it has none.

        Raises:
            ReasonletUnavailableError: The embedder is down, or what it made is of no use.
        """
        answer = await consult(self.embedder, [question])
        if not isinstance(answer, Said):
            code = answer.code if isinstance(answer, Refused) else answer.kind
            raise ReasonletUnavailableError("embedder", code)
        if _is_nothing(answer.value):
            raise ReasonletUnavailableError("embedder")
        vector, problem = _usable(question, answer.value, dimension)
        if vector is None:
            raise ReasonletUnavailableError("embedder", problem)
        return vector

    async def judge(self, question: str | None, answer: str | None) -> bool | None:
        """An evaluator's verdict; None when the agent's own has to do.

        Raises:
            ReasonletAdapterError: The evaluator answered another code or an invalid verdict.
        """
        usable = judged_answer(answer)
        if self.evaluator is None or usable is None or question is None:
            return None
        with EVALUATE.observe() as observed:
            said = await consult(
                self.evaluator, question, usable, timeout=self.options.evaluation_timeout
            )
            if isinstance(said, Down):
                observed.outcome, observed.error_type = "unavailable", said.kind or "unavailable"
                return None
            verdict = _valid("evaluator", _said("evaluator", said), Judgement)
            observed.outcome = "judged"
            return verdict.success


def _said(what: str, answer: Said[Any] | Down | Refused) -> Any:
    """What it said.

    Raises:
        ReasonletUnavailableError: It is down.
        ReasonletAdapterError: It answered a code that means nothing here.
    """
    if isinstance(answer, Down):
        raise ReasonletUnavailableError(what, answer.kind)
    if isinstance(answer, Refused):
        raise ReasonletAdapterError(what, f"it answered the code {answer.code}")
    return answer.value


def _valid(what: str, value: object, kind: type[_V]) -> _V:
    """The value, when it is a valid one of its kind; an invalid one is a bug of the adapter."""
    if not isinstance(value, kind):
        raise ReasonletAdapterError(what, f"expected {kind.__name__}, got {type(value).__name__}")
    problems = value.validate()
    if problems:
        raise ReasonletAdapterError(what, problems[0])
    return value


def _is_nothing(vectors: object) -> bool:
    """Whether an embedder returned no number at all: None, no row, or one row without any."""
    if vectors is None:
        return True
    if not isinstance(vectors, Sized) or isinstance(vectors, str | bytes | Mapping):
        return False
    if len(vectors) != 1:
        return len(vectors) == 0
    (row,) = vectors if isinstance(vectors, Iterable) else (None,)
    return isinstance(row, Sized) and len(row) == 0


def _usable(
    question: str, vectors: Any, dimension: int | None
) -> tuple[NDArray[np.float32] | None, str]:
    """The vector, or why it is of no use: ``length`` with both lengths, ``non-finite``, ``norm``."""
    try:
        return checked(lambda _: vectors, [question], dimension).rows[0], ""
    except EmbeddingError as error:
        reason = error.reason
    if reason == "length":
        return None, f"length: expected {dimension}, got {np.asarray(vectors).shape[-1]}"
    return None, reason
