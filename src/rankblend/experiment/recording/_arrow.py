"""Recordings as Arrow: what is gathered becomes record batches, and batches become a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import MissingDependencyError
from rankblend.experiment.recording._gather import Row, Standing
from rankblend.recall import StoredMemory
from rankblend.stores import Key

if TYPE_CHECKING:
    import pyarrow as pa

CANDIDATES = "candidates"


def import_pyarrow() -> Any:
    """pyarrow, with its IPC part.

    Raises:
        MissingDependencyError: It is not installed (extra ``experiments``).
    """
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError:
        raise MissingDependencyError("pyarrow", "experiments", "recording") from None
    return pyarrow


def rows_to_batch(rows: Sequence[Row], look_up: Callable[[Key], StoredMemory]) -> pa.RecordBatch:
    """Some queries as one record batch.

    Args:
        rows: The queries, at least one.
        look_up: A memory as it is stored, for its times and links.
    """
    arrow = import_pyarrow()
    standing: dict[Key, Standing] = {}
    for row in rows:
        for memory in row.memories:
            standing.setdefault(memory.key, memory)
    number = {key: position for position, key in enumerate(standing)}
    columns: dict[str, Any] = {
        "id": arrow.array([row.query.id for row in rows], arrow.string()),
        "scope": arrow.array([str(row.query.scope) for row in rows], arrow.string()),
        "family": arrow.array([row.query.family for row in rows], arrow.string()),
        "cluster": arrow.array([row.query.cluster for row in rows], arrow.string()),
        "now": arrow.array([row.now for row in rows], arrow.float64()),
        "blank": arrow.array([row.blank for row in rows], arrow.bool_()),
        "judged": arrow.array([list(row.query.relevant) for row in rows],
                              arrow.list_(arrow.string())),
        "grades": list_column([np.array(list(row.query.relevant.values()), np.float64)
                               for row in rows], np.float64),
        "distance": list_column([row.distance for row in rows], np.int32),
        "verified": list_column([row.verified for row in rows], np.int32),
    }  # fmt: skip
    for name in rows[0].proposed:
        columns[name] = list_column([row.proposed[name] for row in rows], np.int32)
    for name in rows[0].values:
        columns[f"value:{name}"] = list_column([row.values[name] for row in rows], np.float64)
        columns[f"reason:{name}"] = list_column([row.reasons[name] for row in rows], np.int8)
    batch = arrow.RecordBatch.from_pydict(columns)
    references = list_column(
        [np.array([number[memory.key] for memory in row.memories], np.int32) for row in rows],
        np.int32,
    )
    return with_memories(batch, references, _memories(arrow, list(standing.values()), look_up))


def with_memories(batch: pa.RecordBatch, references: Any, memories: Any) -> pa.RecordBatch:
    """A batch with its column of candidates: references, int32, into a table of memories."""
    arrow = import_pyarrow()
    coded = arrow.DictionaryArray.from_arrays(references.values, memories)
    return batch.append_column(CANDIDATES, arrow.ListArray.from_arrays(references.offsets, coded))


def list_column(rows: Sequence[NDArray[Any]], dtype: type[np.generic]) -> Any:
    """One list a row, as an Arrow array of this type."""
    arrow = import_pyarrow()
    offsets = np.zeros(len(rows) + 1, np.int32)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    values = np.concatenate([np.empty(0, dtype), *rows]).astype(dtype, copy=False)
    return arrow.ListArray.from_arrays(arrow.array(offsets), arrow.array(values))


def _memories(
    arrow: Any, standing: Sequence[Standing], look_up: Callable[[Key], StoredMemory]
) -> Any:
    stored = [look_up(memory.key) for memory in standing]
    link = arrow.struct([("target", arrow.string()), ("kind", arrow.string()),
                         ("weight", arrow.float64()), ("verified", arrow.bool_())])  # fmt: skip
    fields = {
        "scope": arrow.array([str(memory.key.scope) for memory in standing], arrow.string()),
        "id": arrow.array([memory.key.id for memory in standing], arrow.string()),
        "layer": arrow.array([memory.layer for memory in standing], arrow.string()),
        "digest": arrow.array([memory.digest for memory in standing], arrow.int64()),
        "tokens": arrow.array([memory.tokens for memory in standing], arrow.int64()),
        "vector": list_column([memory.vector for memory in standing], np.float32),
        "created": _seconds(arrow, (one.created for one in stored)),
        "at": _seconds(arrow, (one.at for one in stored)),
        "used": _seconds(arrow, (one.used for one in stored)),
        "links": arrow.array(
            [
                [
                    {"target": to.target, "kind": to.kind, "weight": to.weight,
                     "verified": to.verified}
                    for to in one.links
                ]
                for one in stored
            ],
            arrow.list_(link),
        ),
    }  # fmt: skip
    return arrow.StructArray.from_arrays(list(fields.values()), list(fields))


def _seconds(arrow: Any, times: Iterable[Any]) -> Any:
    return arrow.array(
        [None if time is None else time.timestamp() for time in times], arrow.float64()
    )
