"""Guards, extractors, evaluators: what they are, how they are waited for, what their answers mean.

Each is any callable; an ordinary function runs in a thread of its own, an ``async`` one in the
event loop. Raising an exception that carries one of our codes is an *answer*; raising anything else
means that it is *down*.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sized
from contextvars import copy_context
from datetime import timedelta
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.embedders import checked
from rankblend.errors import (
    CaptureBlockedError,
    EmbeddingError,
    ReasonletAdapterError,
    ReasonletUnavailableError,
    code_of,
)
from rankblend.reasonlets._options import ReasonletOptions
from rankblend.recall import away
from rankblend.stores.procedures import (
    MAX_INTENT,
    MAX_REFERENCE,
    UNSPECIFIED,
    Capture,
    Checked,
    Checks,
    judged_answer,
)
from rankblend.telemetry import Operation


@frozen
class GuardVerdict(Checked):
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

    def check(self, checks: Checks) -> None:
        """Note everything that is wrong."""
        checks.flag("blocked", self.blocked)
        optional = self.blocked is not True
        checks.text("detector", self.detector, limit=MAX_REFERENCE, optional=optional)


@frozen
class ExtractedIntent(Checked):
    """What a question is about.

    Args:
        intent: A short label, at most 100 code points.
        confidence: In [0, 1].
    """

    intent: str
    confidence: float

    def check(self, checks: Checks) -> None:
        """Note everything that is wrong."""
        checks.text("intent", self.intent, limit=MAX_INTENT)
        checks.unit("confidence", self.confidence)


@frozen
class Judgement(Checked):
    """An evaluator's verdict on a run."""

    success: bool

    def check(self, checks: Checks) -> None:
        """Note everything that is wrong."""
        checks.flag("success", self.success)


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


T = TypeVar("T")


@frozen(eq=False)
class Said(Generic[T]):
    """It answered."""

    value: T


@frozen
class Down:
    """It threw, timed out, or said that it is unavailable.

    Attributes:
        kind: Class name of what it threw; None when it said so itself.
        timed_out: Whether it is our own time-out that ended the waiting.
    """

    kind: str | None
    timed_out: bool = False


@frozen
class Refused:
    """It answered with one of our codes.

    Attributes:
        code: Another one than ``unavailable``.
        detector: Of a ``blocked``; None otherwise.
    """

    code: str
    detector: str | None = None


# The event loop refers to a task weakly: one that nobody waits for any more would be collected before
# it has ended, in the middle of whatever it does.
_running: set[asyncio.Future[Any]] = set()


async def consult(
    call: Callable[..., Any], *arguments: Any, timeout: timedelta | None = None
) -> Said[Any] | Down | Refused:
    """Call a dependency; whatever happens inside is a value, only the caller's cancellation raises.

    It runs in a task of its own. So a cancellation that the dependency raises itself (a time-out of
    its client, say) is told apart from the caller's, and neither the caller's cancellation nor the
    time-out waits for a dependency that ignores being cancelled.

    Args:
        call: A function, run in a thread of its own, or an ``async`` callable.
        *arguments: What it is given.
        timeout: How long it is waited for; None: no limit.
    """
    task = asyncio.ensure_future(_outcome(call, arguments))
    _running.add(task)
    task.add_done_callback(_running.discard)
    seconds = None if timeout is None else timeout.total_seconds()
    try:
        done, _ = await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not done:
        task.cancel()
        return Down("TimeoutError", timed_out=True)
    return Down("CancelledError") if task.cancelled() else task.result()


async def answer_of(call: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Call, and wait without blocking the event loop; an ordinary function runs in a thread.

    There it sees the caller's context variables.

    Raises:
        Exception: Whatever it raises.
    """
    if is_async(call):
        answer = call(*arguments, **keywords)
    else:
        context = copy_context()
        answer = await away(lambda _: context.run(call, *arguments, **keywords))
    return await answer if inspect.isawaitable(answer) else answer


async def _outcome(
    call: Callable[..., Any], arguments: tuple[Any, ...]
) -> Said[Any] | Down | Refused:
    """Never raises an exception, so that none is logged by the event loop when nobody waits."""
    try:
        return Said(await answer_of(call, *arguments))
    except asyncio.CancelledError:
        return Down("CancelledError")
    except Exception as error:
        code = code_of(error)
        if code is None:
            return Down(type(error).__name__)
        if code == "unavailable":
            return Down(None)
        return Refused(code, getattr(error, "detector", None))


def is_async(call: object) -> bool:
    """Whether it is an ``async`` function, or an object that is called like one."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(
        getattr(call, "__call__", None)  # noqa: B004
    )


def _explain(error: Exception) -> tuple[str, str]:
    """Our code, else whether it is a bug of an adapter, and the class name."""
    code = code_of(error)
    if code is not None:
        return code, code
    adapter = isinstance(error, ReasonletAdapterError)
    return "adapter_error" if adapter else "exception", type(error).__name__


RECALL = Operation(
    "mnemosyne.recall",
    "How long recalls take.",
    _explain,
    counts=(
        ("candidates", "How many procedures the store found."),
        ("returned", "How many procedures a recall returned."),
    ),
    unit="{reasonlet}",
)
EVALUATE = Operation("mnemosyne.evaluate", "How long evaluators take to judge a run.", _explain)
GUARD = Operation("mnemosyne.guard", "How long guards take to admit a capture.", _explain)


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
