"""The errors of the procedural memory: each has a ``code``, none repeats what it was given.

::

    RankblendError
    ├─ ReasonletError                    has a code
    │  ├─ ReasonletValidationError       validation: all problems at once (InvalidArgumentError)
    │  ├─ ReasonletUnavailableError      unavailable: a dependency or the store is down
    │  ├─ ReasonletNotFoundError         not_found: not in this scope (LookupError)
    │  ├─ ReasonletConflictError         conflict: it cannot be done in this state
    │  └─ CaptureBlockedError            blocked: the guard refused the capture
    └─ ReasonletAdapterError             no code: an adapter broke its contract; a bug

Messages and attributes hold types, lengths, field names and codes: never a question, an answer, an
argument, or the message of another exception.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from rankblend.errors import InvalidArgumentError, RankblendError

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


class _RestorableError(RankblendError):
    """Comes out of a pickle or a copy as it went in, whatever its constructor asks for."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args, dict(vars(self)))


def _restored(
    kind: type[BaseException], arguments: tuple[object, ...], attributes: dict[str, object]
) -> BaseException:
    made = kind.__new__(kind, *arguments)
    made.args = arguments
    vars(made).update(attributes)
    return made


class ReasonletError(_RestorableError):
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


class ReasonletAdapterError(_RestorableError, RuntimeError):
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
