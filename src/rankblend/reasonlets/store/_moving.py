"""Moving procedures between stores, and their times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from rankblend.reasonlets._errors import (
    ReasonletConflictError,
    ReasonletNotFoundError,
    ReasonletUnavailableError,
    ReasonletValidationError,
)
from rankblend.reasonlets.store._protocol import Entry
from rankblend.relevance import Scope


def as_time(seconds: float) -> datetime:
    """Seconds since the epoch as an aware UTC datetime."""
    return datetime.fromtimestamp(seconds, UTC)


def latest(*times: float | None) -> float | None:
    """The greatest of several times, None when there is none."""
    return max((time for time in times if time is not None), default=None)


def check_dimension(dimension: int | None, vector: NDArray[np.float32]) -> None:
    """Refuse a vector that cannot be compared with those that are stored.

    Raises:
        ReasonletUnavailableError: Another length; whoever made it is of no use here.
    """
    if dimension is not None and len(vector) != dimension:
        raise ReasonletUnavailableError(
            "embedder", f"length: expected {dimension}, got {len(vector)}"
        )


def check_entries(
    entries: Sequence[Entry],
    dimension: int | None,
    there: Mapping[str, tuple[Scope, str]],
    versions: AbstractSet[tuple[str, str]],
    executions: AbstractSet[str],
) -> None:
    """Refuse entries that would replace something, or hang in the air.

    Args:
        entries: What is to be added.
        dimension: Length of the stored vectors; None: while there is none.
        there: Id → scope and family of the procedures that are stored.
        versions: Their (family, version).
        executions: Ids of their runs.

    Raises:
        ReasonletUnavailableError: Vectors of another length.
        ReasonletConflictError: An id, a version or an execution is there already, or comes twice.
        ReasonletNotFoundError: A parent is neither stored nor among the entries, in the same scope.
        ReasonletValidationError: A parent is of another family.
    """
    for entry in entries:
        dimension = len(entry.vector) if dimension is None else dimension
        check_dimension(dimension, entry.vector)
    made = [entry.reasonlet for entry in entries]
    runs = [stored.id for entry in entries for stored in entry.runs]
    known = {**there, **{each.id: (each.scope, each.family) for each in made}}
    numbers = {*versions, *((each.family, each.version) for each in made)}
    if (
        len(known) < len(there) + len(made)
        or len(numbers) < len(versions) + len(made)
        or len({*executions, *runs}) < len(executions) + len(runs)
    ):
        raise ReasonletConflictError(
            "already stored", "import into a store that holds none of these procedures"
        )
    for each in made:
        if each.parent_id is None:
            continue
        scope, family = known.get(each.parent_id, (None, None))
        if scope != each.scope:
            raise ReasonletNotFoundError("parent")
        if family != each.family:
            raise ReasonletValidationError(["parent_id: of another family"])
