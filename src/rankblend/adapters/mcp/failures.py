"""What a client is told about a failure: a code and what to do, never what somebody wrote."""

from __future__ import annotations

from rankblend.errors import EmbeddingError, InvalidArgumentError, InvalidScopeError, StoreError
from rankblend.reasonlets import ReasonletError

__all__ = ["failure_of"]


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
