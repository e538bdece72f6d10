"""Tables of several queries side by side, padded to one length: what is computed on at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.experiment.replay._batches import PATTERN_BITS, WeightBatch
from rankblend.experiment.replay._tables import QueryTable

_CELLS = 8_192  # of a stack, as long as a single query does not need more
_WORD = 8  # padded lengths are a multiple of it: marks are counted a word at a time
# Added to every present weight of the quotients, which are compared first: 0 / 0 becomes 0.
_LEAST = 2.0**-100

FloatArray = NDArray[np.float64]
Float32Array = NDArray[np.float32]
IntArray = NDArray[np.int64]


@frozen(eq=False)
class Stack:
    """G queries with at most M candidates and s inputs each; see `QueryTable`.

    Attributes:
        queries: int64, shape (G,): their numbers in the block.
        sizes: int64, shape (G,): how many of the M rows are candidates; the others are padding.
        padding: bool, shape (G, M).
        values: float64, shape (s, G, M), 0 in the padding.
        present: bool, shape (s, G, M).
        patterns: int64, shape (G, M): presence as one number a row, for up to 8 inputs.
        complete: Every input of every candidate counts as present.
        distances: int64, shape (G, M).
        one_distance: The candidates of each query are all at one distance.
        judged_queries: int64, shape (r,), ascending: positions in the stack.
        judged_rows: int64, shape (r,): which of the query's rows are judged.
        grades: float64, shape (r,).
        coverage: float64, shape (s, G).
        above: float32, shape (t, G·M): what the terms of a batch are multiplied with to make the
            numerators of scores; −1 in the padding.
        below: float32, shape (t, G·M): the same for the denominators.
    """

    queries: IntArray
    sizes: IntArray
    padding: NDArray[np.bool_]
    values: FloatArray
    present: NDArray[np.bool_]
    patterns: IntArray
    complete: bool
    distances: IntArray
    one_distance: bool
    judged_queries: IntArray
    judged_rows: IntArray
    grades: FloatArray
    coverage: FloatArray
    above: Float32Array
    below: Float32Array

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def width(self) -> int:
        """M."""
        return int(self.padding.shape[1])

    @property
    def judged_counts(self) -> IntArray:
        """int64, shape (G,)."""
        return np.bincount(self.judged_queries, minlength=len(self))


def stacked(tables: Sequence[QueryTable], batch: WeightBatch) -> list[Stack]:
    """The tables of a block's queries, those of similar length together."""
    sizes = np.array([table.values.shape[1] for table in tables], np.int64)
    return [
        _stack([tables[number] for number in numbers.tolist()], numbers, batch)
        for numbers in _cut(np.argsort(sizes, kind="stable"), sizes)
    ]


def _cut(order: IntArray, sizes: IntArray) -> Iterator[IntArray]:
    """Parts of the queries in ascending order of size, few enough for the cells of a stack."""
    start = 0
    for stop in range(1, len(order) + 1):
        following = order[stop] if stop < len(order) else None
        if following is None or (stop - start + 1) * _padded(int(sizes[following])) > _CELLS:
            yield order[start:stop]
            start = stop


def _padded(size: int) -> int:
    return max(-(-size // _WORD), 1) * _WORD


def _stack(tables: list[QueryTable], numbers: IntArray, batch: WeightBatch) -> Stack:
    sizes = np.array([table.values.shape[1] for table in tables], np.int64)
    shape = (len(tables), _padded(int(sizes.max())))
    inputs = len(batch.weights)
    values, present = np.zeros((inputs, *shape)), np.zeros((inputs, *shape), np.bool_)
    distances = np.zeros(shape, np.int64)
    for at, (table, size) in enumerate(zip(tables, sizes.tolist(), strict=True)):
        values[:, at, :size] = table.values
        present[:, at, :size] = table.present
        distances[at, :size] = table.distances
    padding = np.arange(shape[1]) >= sizes[:, None]
    above, below = _parts(values, present, padding, batch)
    return Stack(
        queries=numbers,
        sizes=sizes,
        padding=padding,
        values=values,
        present=present,
        patterns=_patterns(present),
        complete=bool((present | padding).all()),
        distances=distances,
        one_distance=all(len(set(table.distances[[0, -1]].tolist())) == 1
                         for table in tables if table.distances.size),
        judged_queries=np.repeat(np.arange(len(tables)), [len(table.judged) for table in tables]),
        judged_rows=np.concatenate([table.judged for table in tables]),
        grades=np.concatenate([table.grades for table in tables]),
        coverage=np.stack([table.coverage for table in tables], axis=1),
        above=above,
        below=below,
    )  # fmt: skip


def _parts(
    values: FloatArray, present: NDArray[np.bool_], padding: NDArray[np.bool_], batch: WeightBatch
) -> tuple[Float32Array, Float32Array]:
    """What the terms of the batch meet above and below the line: inputs, prior, and constants."""
    here = ~padding
    pulled = [] if batch.prior is None else [batch.prior * here]
    above = np.stack([*values, *pulled, np.where(padding, -1.0, 0.0)])
    below = np.stack([
        *(np.broadcast_to(here, present.shape) if batch.by_all else present),
        *(here for _ in pulled),
        np.where(padding, 1.0, _LEAST),
    ])  # fmt: skip
    return (
        above.reshape(len(above), -1).astype(np.float32),
        below.reshape(len(below), -1).astype(np.float32),
    )


def _patterns(present: NDArray[np.bool_]) -> IntArray:
    """Which inputs are present, shape (s, G, M), as one number a row; 0 beyond 8 inputs."""
    if len(present) > PATTERN_BITS:
        return np.zeros(present.shape[1:], np.int64)
    return np.tensordot(1 << np.arange(len(present)), present, axes=1)
