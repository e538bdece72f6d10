"""Every error and warning rankblend raises, in one tree.

::

    RankblendError
    ├─ InvalidSignalError(ValueError)        a signal value that is not a real in [0, 1]
    ├─ InvalidWeightError(ValueError)        a weight that is not a finite number ≥ 0
    ├─ InvalidScopeError(ValueError)         a scope that cannot be read
    ├─ InvalidArgumentError(ValueError)      arguments of a call; all problems at once
    ├─ InvalidArrayError(ValueError)         an array of the wrong shape, dtype or range
    ├─ ProfileError(ValueError)              a ranking profile; all problems with their paths
    ├─ EvidenceError(ValueError)             release evidence that cannot be read, found or written
    ├─ RecordingError(ValueError)            a recording that cannot be read, or lacks what is asked
    ├─ UnknownNameError(LookupError)         a name that is not registered, with the nearest known
    ├─ MemoryContractError(ValueError)       a store or caller broke a promise (scored the invisible, …)
    ├─ ScopeMismatchError(ValueError)        a write to a memory stored at another, visible scope
    ├─ MemoryNotFoundError(LookupError)      no such memory here, or not visible: the same words
    ├─ StoreError(RuntimeError)
    │  ├─ StoreFailedError                   a store raised during a strict recall
    │  ├─ StoreTimeoutError(TimeoutError)    a store did not answer in time during a strict recall
    │  ├─ StoreClosedError                   used after close
    │  ├─ CatalogCorruptError                the file is not a readable catalog
    │  ├─ CatalogVersionError                written by a newer rankblend
    │  ├─ CatalogBusyError                   another writer holds the file
    │  ├─ CatalogFullError                   no space left; nothing was changed
    │  ├─ CatalogReadOnlyError               the file cannot be written
    │  └─ EmbedderMismatchError              opened with another embedder than it was written with
    ├─ EmbeddingError(RuntimeError)          an embedder failed or returned unusable vectors
    ├─ ConfoundedPlanError(ValueError)       arms differ in more than what is studied; all at once
    ├─ LedgerError(RuntimeError)             a ledger that cannot be read or written
    │  └─ HeldOutSpentError                  held-out queries that were looked at already
    ├─ MissingDependencyError(ImportError)   an optional part is not installed; names the extra
    ├─ PluginError(RuntimeError)             a plug-in could not be loaded
    ├─ ReasonletError                        of procedures; each has a ``code``
    │  ├─ ReasonletValidationError           validation: all problems at once (InvalidArgumentError)
    │  ├─ ReasonletUnavailableError          unavailable: a dependency or the store (RuntimeError)
    │  ├─ ReasonletNotFoundError             not_found: not in this scope (LookupError)
    │  ├─ ReasonletConflictError             conflict: not in this state (RuntimeError)
    │  ├─ CaptureBlockedError                blocked: the guard refused (PermissionError)
    │  └─ TranscriptError(ValueError)        a transcript that holds no procedure
    │     ├─ NoQuestionError                 no_question: no message of a user has text
    │     └─ NoToolCallsError                no_tool_calls: none after the question succeeded
    └─ ReasonletAdapterError(RuntimeError)   an adapter broke its contract; a bug, so no code

    RankblendWarning(UserWarning)
    ├─ PluginWarning                         a plug-in was skipped
    ├─ EmbedderWarning                       a file does not tell whose embedder it was
    └─ CacheWarning                          an index cache was unusable and was rebuilt

Each class also inherits from the built-in exception a caller would expect, carries its data as
attributes, and comes out of a pickle or a copy as it went in. Messages say what was expected, what was got, where, and what to do; they never contain
the text of a query or of a memory, those of procedures no argument and no message of another exception either.
"""

from __future__ import annotations

import difflib
import pickle
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

__all__ = [
    "CacheWarning",
    "CaptureBlockedError",
    "CatalogBusyError",
    "CatalogCorruptError",
    "CatalogFullError",
    "CatalogReadOnlyError",
    "CatalogVersionError",
    "ConfoundedPlanError",
    "EmbedderMismatchError",
    "EmbedderWarning",
    "EmbeddingError",
    "EvidenceError",
    "HeldOutSpentError",
    "InvalidArgumentError",
    "InvalidArrayError",
    "InvalidScopeError",
    "InvalidSignalError",
    "InvalidWeightError",
    "LedgerError",
    "MemoryContractError",
    "MemoryNotFoundError",
    "MissingDependencyError",
    "NoQuestionError",
    "NoToolCallsError",
    "PluginError",
    "PluginWarning",
    "ProfileError",
    "RankblendError",
    "RankblendWarning",
    "ReasonletAdapterError",
    "ReasonletConflictError",
    "ReasonletError",
    "ReasonletNotFoundError",
    "ReasonletUnavailableError",
    "ReasonletValidationError",
    "RecordingError",
    "ScopeMismatchError",
    "StoreClosedError",
    "StoreError",
    "StoreFailedError",
    "StoreTimeoutError",
    "TranscriptError",
    "UnknownNameError",
    "nearest_name",
]


class _Restorable(Exception):  # noqa: N818 - no error of its own, but how all are pickled
    """Comes out of a pickle or a copy as it went in, whatever its constructor asks for."""

    def __reduce__(self) -> tuple[Any, ...]:
        attributes = {name: _portable(value) for name, value in vars(self).items()}
        return _restored, (type(self), self.args, attributes)


def _restored(
    kind: type[_Restorable], arguments: tuple[object, ...], attributes: dict[str, object]
) -> _Restorable:
    base: type[Any] = kind
    while "__new__" not in vars(base):  # of several built-in classes the one that lays it out
        base = base.__base__ or BaseException
    make: Any = base.__new__
    made: _Restorable = make(kind, *arguments)
    # What follows in the order of its classes is the built-in one, which keeps the message.
    super(_Restorable, made).__init__(*arguments)
    vars(made).update(attributes)
    return made


def _portable(value: object) -> object:
    """A value that is pickled as part of an error: one that cannot be must not hide the error."""
    try:
        pickle.dumps(value)
    except Exception:
        return shown_value(value)
    return value


class RankblendError(_Restorable):
    """Base of every error raised on purpose by rankblend."""

    def __str__(self) -> str:
        """The message; it can always be printed and written to a log."""
        return _printable(super().__str__())


class ProblemsError(RankblendError):
    """An error that reports every problem found, not only the first.

    Attributes:
        problems: One line each, ``path: what was expected, what was got``.
    """

    def __init__(self, problems: Iterable[str], *, heading: str) -> None:
        self.problems: tuple[str, ...] = tuple(map(_printable, problems))
        lines = "\n".join(f"  {problem}" for problem in self.problems)
        super().__init__(self.problems[0] if len(self.problems) == 1 else f"{heading}\n{lines}")


class RankblendWarning(_Restorable, UserWarning):
    """Base of every warning rankblend issues."""


def _printable(text: str) -> str:
    """A text with its lone surrogates, which UTF-8 cannot hold, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def shown_value(value: object) -> str:
    """A short, safe rendering of a refused value: numbers and names, never long text."""
    try:
        text = repr(value)
    except ValueError:  # an int, or one inside, of more digits than Python prints
        return type(value).__name__
    return text if len(text) <= 40 else f"{text[:37]}... ({type(value).__name__})"


class InvalidSignalError(RankblendError, ValueError):
    """A signal value is neither absent nor a finite real number in [0, 1].

    Attributes:
        signal: The name of the signal.
        value: The refused value.
    """

    def __init__(self, signal: str, value: object) -> None:
        self.signal = signal
        self.value = value
        super().__init__(
            f"signal {signal!r}: expected None or a finite number in [0, 1], "
            f"got {shown_value(value)}; a raw measurement is evidence and needs a curve first"
        )


class InvalidWeightError(RankblendError, ValueError):
    """A weight is not a finite number ≥ 0, or the weights have no finite sum.

    Attributes:
        name: The signal the weight belongs to, or None when the sum is at fault.
        value: The refused value.
    """

    def __init__(self, name: str | None, value: object) -> None:
        self.name = name
        self.value = value
        what = f"weight {name!r}" if name is not None else "the sum of the weights"
        super().__init__(f"{what}: expected a finite number ≥ 0, got {shown_value(value)}")


class InvalidScopeError(RankblendError, ValueError):
    """A scope is not a root-first path of 1 to 64 ``kind:id`` levels."""


class InvalidArgumentError(ProblemsError, ValueError):
    """One or more arguments of a call are invalid; nothing was done."""

    def __init__(self, problems: Iterable[str] | str) -> None:
        found = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__(found, heading=f"{len(found)} invalid arguments:")


class InvalidArrayError(RankblendError, ValueError):
    """An array has the wrong shape, dtype or range.

    Attributes:
        name: The parameter.
        expected: What it should have been.
        got: What it was.
    """

    def __init__(self, name: str, expected: str, got: str) -> None:
        self.name = name
        self.expected = expected
        self.got = got
        super().__init__(f"{name}: expected {expected}, got {got}")


class ProfileError(ProblemsError, ValueError):
    """A ranking profile is invalid; every problem is listed with its path.

    Attributes:
        profile: The name or path of the profile.
    """

    def __init__(self, profile: str, problems: Iterable[str]) -> None:
        self.profile = profile
        found = tuple(problems)
        super().__init__(found, heading=f"profile {profile!r} has {len(found)} problems:")


class UnknownNameError(RankblendError, LookupError):
    """A name is not registered.

    Attributes:
        kind: What the name should have named, e.g. ``"profile"``.
        name: The unknown name.
        known: All known names, sorted.
        nearest: The most similar known name, or None.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind = kind
        self.name = name
        self.known: tuple[str, ...] = tuple(sorted(known))
        self.nearest = nearest_name(name, self.known)
        hint = (
            f'did you mean "{self.nearest}"?'
            if self.nearest
            else f"known: {', '.join(self.known) or 'none'}"
        )
        super().__init__(f'unknown {kind} "{name}": {hint}')


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name most like ``name``, or None when nothing is similar."""
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None


class MemoryContractError(RankblendError, ValueError):
    """A store or a caller broke a promise that keeps results right or private."""


class ScopeMismatchError(RankblendError, ValueError):
    """A write named a scope, but the memory is stored at another one visible from it."""

    def __init__(self, ids: Sequence[str], scope: str) -> None:
        self.ids: tuple[str, ...] = tuple(ids)
        super().__init__(
            f"{', '.join(map(repr, self.ids))}: visible from {scope!r} but stored at another "
            "scope; a write touches only memories stored at exactly the scope it names"
        )


class MemoryNotFoundError(RankblendError, LookupError):
    """No such memory, or it is not visible from the scope named: the same words for both."""

    def __init__(self, ids: Sequence[str], scope: str) -> None:
        self.ids: tuple[str, ...] = tuple(ids)
        super().__init__(f"{', '.join(map(repr, self.ids))}: not visible from {scope!r} or unknown")


class EmbeddingError(RankblendError, RuntimeError):
    """An embedder failed, or returned vectors that cannot be used.

    Attributes:
        embedder: The name of the embedder.
        reason: ``raised``, ``shape``, ``rows``, ``length``, ``non-finite`` or ``norm``; over HTTP
            also ``timeout``, ``connection``, ``status`` or ``response``; for a model in files also
            ``model``.
    """

    def __init__(self, embedder: str, reason: str, detail: str) -> None:
        self.embedder = embedder
        self.reason = reason
        super().__init__(f"embedder {embedder!r}: {detail}")


class StoreError(RankblendError, RuntimeError):
    """Base of everything that goes wrong inside a store."""


class StoreFailedError(StoreError):
    """A store raised while answering a strict recall; the original is the cause.

    Attributes:
        store: The name of the store.
    """

    def __init__(self, store: str, during: str) -> None:
        self.store = store
        self.during = during
        super().__init__(
            f"store {store!r} failed during {during}; without strict=True the recall goes on "
            "without its evidence"
        )


class StoreTimeoutError(StoreError, TimeoutError):
    """A store did not answer a strict recall in time."""

    def __init__(self, store: str, seconds: float) -> None:
        self.store = store
        self.seconds = seconds
        super().__init__(
            f"store {store!r} did not answer within {seconds:g} s; raise store_timeout, or recall "
            "without strict=True to go on without its evidence"
        )


class StoreClosedError(StoreError):
    """A memory or store was used after it was closed."""


class CatalogCorruptError(StoreError):
    """The file exists but is not a readable catalog; it was left untouched."""


class CatalogVersionError(StoreError):
    """The catalog was written by a newer version of rankblend."""

    def __init__(self, found: int, supported: int) -> None:
        self.found = found
        self.supported = supported
        super().__init__(
            f"the catalog has schema version {found}, this rankblend reads up to {supported}; "
            "upgrade rankblend to open it"
        )


class CatalogBusyError(StoreError):
    """Another writer held the catalog for longer than the busy timeout; nothing was written."""


class CatalogFullError(StoreError):
    """There is no space left for the write; nothing was changed."""


class CatalogReadOnlyError(StoreError):
    """The catalog cannot be written: read-only file or folder; nothing was changed."""


class EmbedderMismatchError(StoreError):
    """The memory was written with another embedder.

    Attributes:
        stored: Name and dimension the memory was written with.
        given: Name and dimension of the embedder it was opened with.
    """

    def __init__(self, stored: str, given: str) -> None:
        self.stored = stored
        self.given = given
        super().__init__(
            f"this memory was written with embedder {stored}, but was opened with {given}; their "
            "vectors cannot be compared. Open it with the same embedder, or write all vectors anew "
            "with: rankblend reembed --db FILE --embedder NAME"
        )


class EvidenceError(ProblemsError, ValueError):
    """Release evidence cannot be read, found or written; every problem at once."""

    def __init__(self, problems: Iterable[str] | str) -> None:
        found = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__(found, heading=f"{len(found)} problems with release evidence:")


class RecordingError(ProblemsError, ValueError):
    """A recording cannot be read, or does not hold what a profile needs; all that is missing."""

    def __init__(self, problems: Iterable[str] | str) -> None:
        found = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__(found, heading=f"{len(found)} problems with the recording:")


class ConfoundedPlanError(ProblemsError, ValueError):
    """Arms of a plan differ from its baseline in more than what is studied.

    Attributes:
        studied: The paths in which they were meant to differ.
    """

    def __init__(self, problems: Iterable[str], studied: Iterable[str]) -> None:
        self.studied: tuple[str, ...] = tuple(studied)
        found = tuple(problems)
        remedy = f"studied: {', '.join(self.studied) or 'nothing'}; state what else is studied"
        super().__init__(found, heading=f"{len(found)} confounding differences ({remedy}):")


class LedgerError(RankblendError, RuntimeError):
    """A ledger that is none, was written by a newer rankblend, or cannot be written."""


class HeldOutSpentError(LedgerError):
    """Held-out queries can confirm once, and only what was chosen without them.

    Attributes:
        profiles: How many profiles have been measured on these queries before.
    """

    def __init__(self, profiles: int, detail: str) -> None:
        self.profiles = profiles
        super().__init__(f"held-out queries: {detail}; hold out others to confirm again")


class MissingDependencyError(RankblendError, ImportError):
    """An optional part of rankblend needs a package that is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(f"{purpose} needs {package}: pip install 'rankblend[{extra}]'")


class PluginError(RankblendError, RuntimeError):
    """A plug-in was asked for by name and could not be loaded; the original is the cause."""


class PluginWarning(RankblendWarning):
    """A plug-in was skipped: it is a duplicate, has an invalid name or failed to load."""


class EmbedderWarning(RankblendWarning):
    """A file notes an embedder by a name that several could have; how to note a better one."""


class CacheWarning(RankblendWarning):
    """An index cache was missing, stale or corrupt and was rebuilt from the catalog."""


CODES = frozenset(
    {
        "validation",
        "unavailable",
        "not_found",
        "conflict",
        "blocked",
        "no_question",
        "no_tool_calls",
    }
)


class ReasonletError(RankblendError):
    """Something the caller can act on; ``code`` says what.

    Attributes:
        code: One of `CODES`.
    """

    code: ClassVar[str]


class ReasonletValidationError(ReasonletError, InvalidArgumentError):
    """What was given cannot be used; every problem is listed, nothing was done.

    Attributes:
        problems: One line each, ``field: what was expected``.
    """

    code = "validation"


class ReasonletUnavailableError(ReasonletError, RuntimeError):
    """Something this needed is down, or what it gave is of no use.

    Attributes:
        what: ``embedder``, ``extractor``, ``guard`` or ``store``.
        detail: The exception's type or the reason; None where there is nothing to tell.
    """

    code = "unavailable"

    def __init__(self, what: str, detail: str | None = None) -> None:
        self.what = what
        self.detail = detail
        super().__init__(f"the {what} is unavailable{f' ({detail})' if detail else ''}")


class ReasonletNotFoundError(ReasonletError, LookupError):
    """No such thing in this scope; what is stored in another scope is unknown here.

    Attributes:
        what: ``reasonlet``, ``parent`` or ``execution``.
    """

    code = "not_found"

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"no such {what} in this scope")


class ReasonletConflictError(ReasonletError, RuntimeError):
    """It cannot be done in the state things are in; nothing was changed.

    Attributes:
        reason: ``active``, ``has versions`` or ``already stored``.
    """

    code = "conflict"

    def __init__(self, reason: str, remedy: str) -> None:
        self.reason = reason
        super().__init__(f"{reason}: {remedy}")


class CaptureBlockedError(ReasonletError, PermissionError):
    """The guard blocked a capture; nothing was stored.

    Attributes:
        detector: Which detector fired.
    """

    code = "blocked"

    def __init__(self, detector: str) -> None:
        self.detector = detector
        super().__init__(f"the capture was blocked by {detector!r}; nothing was stored")


class TranscriptError(ReasonletError, ValueError):
    """A transcript holds no procedure; nothing is wrong with it."""


class NoQuestionError(TranscriptError):
    """No message of a user has text."""

    code = "no_question"

    def __init__(self) -> None:
        super().__init__("the transcript has no user message with text")


class NoToolCallsError(TranscriptError):
    """No tool call after the question succeeded."""

    code = "no_tool_calls"

    def __init__(self) -> None:
        super().__init__("the transcript has no successful tool call after the question")


class ReasonletAdapterError(RankblendError, RuntimeError):
    """An adapter broke its contract: a bug to be fixed in it, not a condition to be handled.

    Attributes:
        what: ``embedder``, ``extractor``, ``guard``, ``evaluator`` or ``store``.
        problem: The code it answered, or the field that failed and why.
    """

    def __init__(self, what: str, problem: str) -> None:
        self.what = what
        self.problem = problem
        super().__init__(f"the {what} broke its contract: {problem}")


def code_of(error: BaseException) -> str | None:
    """The code an exception carries, or None when it carries none of `CODES`."""
    code = getattr(error, "code", None)
    return code if isinstance(code, str) and code in CODES else None


def raise_invalid(problems: Iterable[str]) -> None:
    """Raise `ReasonletValidationError` when there are problems."""
    found = tuple(problems)
    if found:
        raise ReasonletValidationError(found)
