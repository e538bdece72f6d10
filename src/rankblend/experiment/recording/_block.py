"""Some queries of a recording as flat arrays, as they lie in the file."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankblend.experiment.measures import Judgments
from rankblend.experiment.recording._arrow import CANDIDATES
from rankblend.experiment.recording._gather import evidence_column, proposal_column
from rankblend.experiment.recording._manifest import Manifest, RecordedStore
from rankblend.experiment.recording._pools import Demand
from rankblend.relevance import Scope
from rankblend.stores import Keys

if TYPE_CHECKING:
    import pyarrow as pa


class Lists(NamedTuple):
    """One list a query, end to end.

    Attributes:
        values: Shape (total,).
        offsets: int64, shape (q + 1,): list i is ``values[offsets[i] : offsets[i + 1]]``.
    """

    values: NDArray[Any]
    offsets: NDArray[np.int64]

    def of(self, query: int) -> NDArray[Any]:
        """The list of one query."""
        return self.values[self.offsets[query] : self.offsets[query + 1]]


class Memories:
    """The memories of a recording by number; read when asked for.

    Args:
        table: The struct array that references point into.
    """

    def __init__(self, table: Any) -> None:
        self._table = table

    @cached_property
    def ids(self) -> list[str]:
        """The id of each."""
        found: list[str] = self._table.field("id").to_pylist()
        return found

    @cached_property
    def digests(self) -> NDArray[np.int64]:
        """int64, shape (m,): of the normalized text."""
        return np.asarray(self._table.field("digest").to_numpy(), np.int64)

    @cached_property
    def tokens(self) -> NDArray[np.int64]:
        """int64, shape (m,): length of the text."""
        return np.asarray(self._table.field("tokens").to_numpy(), np.int64)

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """float32, shape (m, d): unit vectors, rows of NaN where there is none."""
        if not len(self._table):
            return np.empty((0, 0), np.float32)
        flat = self._table.field("vector")
        values = flat.values.to_numpy()[flat.offsets[0].as_py() : flat.offsets[-1].as_py()]
        return np.asarray(values, np.float32).reshape(len(self._table), -1)

    def keys(self, numbers: NDArray[np.int32]) -> Keys:
        """Which memories these are, shape (n,)."""
        scopes, codes = self._scopes
        return Keys(scopes, codes[numbers].tolist(), self._ids[numbers].tolist())

    def layers_of(self, numbers: NDArray[np.int32]) -> tuple[str, ...]:
        """Their layers."""
        return tuple(self._layers[numbers].tolist())

    @cached_property
    def _ids(self) -> NDArray[np.object_]:
        return np.array(self.ids, object)

    @cached_property
    def _layers(self) -> NDArray[np.object_]:
        return np.array(self._table.field("layer").to_pylist(), object)

    @cached_property
    def _scopes(self) -> tuple[list[Scope], NDArray[np.int32]]:
        """The scopes that occur, and which of them each memory's is."""
        coded = self._table.field("scope").dictionary_encode()
        return [
            Scope.parse(text) for text in coded.dictionary.to_pylist()
        ], coded.indices.to_numpy()


class Block:
    """Consecutive queries of a recording.

    Candidates of all its queries lie end to end; ``candidates.offsets`` says where each query's
    begin. Within a query they are in the order of their ids.

    Args:
        manifest: Of the recording.
        batch: The record batch.
        memories: What its references point into.
        first: Position of its first query in the recording.

    Attributes:
        memo: What others worked out on it and want to find again.
    """

    def __init__(
        self, manifest: Manifest, batch: pa.RecordBatch, memories: Memories, first: int
    ) -> None:
        self.manifest = manifest
        self.memories = memories
        self.first = first
        self.memo: dict[str, object] = {}
        self._batch = batch
        self._lists: dict[str, Lists] = {}
        self._stores = {store.name: store for store in manifest.stores}

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def texts(self, column: str) -> list[str]:
        """A text column: ``id``, ``scope``, ``family`` or ``cluster``."""
        found: list[str] = self._batch.column(column).to_pylist()
        return found

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Ids of the queries."""
        return tuple(self.texts("id"))

    @cached_property
    def blank(self) -> NDArray[np.bool_]:
        """bool, shape (q,): queries without words."""
        return np.asarray(self._batch.column("blank").to_numpy(zero_copy_only=False), np.bool_)

    @cached_property
    def judgments(self) -> Judgments:
        """Of its queries."""
        judged, grades = self._batch.column("judged").to_pylist(), self.lists("grades")
        return Judgments(
            self.ids,
            tuple(
                dict(zip(names, grades.of(query).tolist(), strict=True))
                for query, names in enumerate(judged)
            ),
        )

    @cached_property
    def candidates(self) -> Lists:
        """int32 numbers of memories."""
        lists = self._batch.column(CANDIDATES)
        return Lists(lists.values.indices.to_numpy(), lists.offsets.to_numpy().astype(np.int64))

    def lists(self, column: str) -> Lists:
        """A list column by its name in the file."""
        found = self._lists.get(column)
        if found is None:
            lists = self._batch.column(column)
            found = self._lists[column] = Lists(
                lists.values.to_numpy(), lists.offsets.to_numpy().astype(np.int64)
            )
        return found

    def store(self, name: str) -> RecordedStore:
        """A store of the manifest."""
        return self._stores[name]

    def proposals(self, store: str, demand: Demand, *, level: int | None) -> Lists:
        """One store's proposals: positions among the candidates of each query."""
        return self.lists(proposal_column(self._stores[store], level=level, seeding=demand.seeding))

    def evidence(self, store: str, name: str, demand: Demand) -> tuple[Lists, Lists]:
        """Values and reasons of one column."""
        column = evidence_column(self._stores[store], name, seeding=demand.seeding)
        return self.lists(f"value:{column}"), self.lists(f"reason:{column}")

    def levels(self, demand: Demand) -> Sequence[int | None]:
        """The levels whose proposals make the pools of a demand."""
        return tuple(range(self.manifest.levels)) if demand.by_level else (None,)

    @cached_property
    def has_verified(self) -> bool:
        """Whether any query has candidates joined by a verified link."""
        return bool(len(self.lists("verified").values))

    @cached_property
    def judged_rows(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Which of all candidates are judged, int64, and their grades, float64."""
        rows, grades = [], []
        ids, offsets = self.memories.ids, self.candidates.offsets.tolist()
        numbers = self.candidates.values.tolist()
        for query, judged in enumerate(self.judgments.grades):
            if judged:
                start, end = offsets[query], offsets[query + 1]
                names = [ids[number] for number in numbers[start:end]]
                for name, grade in judged.items():
                    at = bisect_left(names, name)  # ids ascend
                    if at < len(names) and names[at] == name:
                        rows.append(start + at)
                        grades.append(grade)
        return np.array(rows, np.int64), np.array(grades, np.float64)
