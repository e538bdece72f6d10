"""The small facts about every current memory, in arrays: their rows, and the arrays as bytes.

One row per memory, in the row order of `ScopedRows`: by scope path and id, then a tail. About 90
bytes a memory beside its id; texts, metadata and vectors stay in the file.

Reading 100k rows of 16 columns into objects takes as long as reading all their bytes eight times;
restoring the arrays takes a tenth of that. The bytes are kept like the caches of other stores:
checked by digest, brought up to date from the change feed, and never needed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankblend.stores._arrays import grown
from rankblend.stores._protocol import StoreQuery
from rankblend.stores._record import FIELDS, LABELS, Key, Record
from rankblend.stores._rows import ScopedRows, latest
from rankblend.stores.catalog._codec import ScopeReader
from rankblend.stores.catalog._filters import metadata_value


class CatalogRows(ScopedRows):
    """The row space, with what the catalog asks of it besides."""

    def __init__(self) -> None:
        super().__init__()
        self._id_ranks: NDArray[np.int32] | None = None

    @property
    def any_shared(self) -> bool:
        """Whether any id is held at more than one scope."""
        return self._held.several > 0

    @property
    def id_ranks(self) -> NDArray[np.int32]:
        """int32, shape (sorted_rows,): where each row of the sorted part stands by id.

        Computed when first asked for after a compaction: 100k ids take about 50 ms.
        """
        if self._id_ranks is None or len(self._id_ranks) != self.sorted_rows:
            order = sorted(range(self.sorted_rows), key=self._ids.__getitem__)
            self._id_ranks = np.empty(len(order), dtype=np.int32)
            self._id_ranks[order] = np.arange(len(order), dtype=np.int32)
        return self._id_ranks

    def compact(self) -> NDArray[np.int64]:
        """`ScopedRows.compact`."""
        self._id_ranks = None
        return super().compact()

    def in_sight(self, query: StoreQuery) -> NDArray[np.int64]:
        """int64, ascending: all living rows at scopes the query sees, admitted or not."""
        ranges = self._table.ranges(self._table.sight(query))
        tail = np.arange(self.sorted_rows, self.size, dtype=np.int64)
        tail = tail[self.distances(query, tail) >= 0]
        rows = np.concatenate([*(np.arange(*span, dtype=np.int64) for span in ranges), tail])
        return np.compress(self.alive[rows], rows)


DTYPES: Mapping[str, type[np.generic]] = {
    **{each.name: each.kind.dtype for each in FIELDS if each.kind.dtype is not None},
    "digest": np.int64,
}
_LABEL_CODES = {
    name: {label: code for code, label in enumerate(levels)} for name, levels in LABELS.items()
}
_LABEL_VALUES = {name: np.array([*levels.values(), np.nan]) for name, levels in LABELS.items()}
# Metadata fields kept as codes; 4 bytes a memory each, the one not asked for longest goes first.
_KEPT_FIELDS = 16


class FieldCodes:
    """The values of one metadata field, numbered: a code per row, a value per code.

    Code 0 is "absent" (or null). Values are told apart by type as well: 1, 1.0 and True have three
    codes.
    """

    def __init__(self, field: str, capacity: int) -> None:
        self.field = field
        self.codes = np.zeros(capacity, dtype=np.int32)
        self.values: list[object] = [None]
        self._code_of: dict[tuple[type, object], int] = {(type(None), None): 0}

    def code(self, metadata: Mapping[str, object]) -> int:
        """The code of what some metadata says, a new one where needed."""
        value = metadata_value(metadata, self.field)
        known: tuple[type, object] = (type(value), value)
        if isinstance(value, list | dict):
            known = (type(value), repr(value))
        code = self._code_of.setdefault(known, len(self.values))
        if code == len(self.values):
            self.values.append(value)
        return code


class Columns:
    """Rows and arrays; every method expects the caller to hold the lock that guards them.

    Attributes:
        rows: Which row holds which key, and who sees it.
        generation: The last write of the catalog that is included.
        layers: The layer of each layer code.
        first_expiry: No memory expires before this.
        serial_limit: Every serial is below this.
    """

    def __init__(self, generation: int = 0) -> None:
        self.rows = CatalogRows()
        self.generation = generation
        self.layers: list[str] = []
        self.first_expiry = math.inf
        self.serial_limit = 0
        self.fields: dict[str, FieldCodes] = {}
        self._layer_code: dict[str, int] = {}
        self._slot_code: dict[str, int] = {}
        self._arrays = {name: np.empty(0, dtype) for name, dtype in DTYPES.items()}

    @classmethod
    def restored(
        cls,
        rows: CatalogRows,
        arrays: Mapping[str, NDArray[Any]],
        layers: list[str],
        slots: list[str],
        generation: int,
    ) -> Self:
        """Columns from their parts: one value per row in each array."""
        columns = cls(generation)
        columns.rows = rows
        columns._arrays = dict(arrays)
        columns.layers = layers
        columns._layer_code = {name: code for code, name in enumerate(layers)}
        columns._slot_code = {name: code for code, name in enumerate(slots)}
        columns.first_expiry = float(np.fmin.reduce(arrays["expires"], initial=math.inf))
        columns.serial_limit = int(rows.serials.max(initial=-1)) + 1
        return columns

    @property
    def slots(self) -> list[str]:
        """The slot of each slot code."""
        return list(self._slot_code)

    def __len__(self) -> int:
        """How many memories there are."""
        return len(self.rows)

    def array(self, name: str) -> NDArray[Any]:
        """One column as it is kept, shape (rows.size,); a view that the next write may outdate."""
        return self._arrays[name][: self.rows.size]

    def values(self, name: str, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """A column as numbers for some rows: float64, NaN = absent; labels as their values."""
        found = self._arrays[name][rows]
        if name in _LABEL_VALUES:
            return _LABEL_VALUES[name][found]
        return found.astype(np.float64, copy=False)

    def put_records(self, records: Sequence[Record], digests: Sequence[int]) -> None:
        """Enter memories, replacing those with the same key; ``digests`` are those of the texts."""
        if not self.rows.size:  # sorted at once, so that nothing has to be moved later
            order = latest(records, ordered=True)
            records, digests = [records[i] for i in order], [digests[i] for i in order]
        # Record by record: column by column each of them would be fetched a dozen times.
        values = zip(*map(attrgetter(*_RECORD_COLUMNS), records), strict=True)
        columns: dict[str, Sequence[Any]] = dict(zip(_RECORD_COLUMNS, values, strict=bool(records)))
        columns["digest"] = digests
        self.put(
            [record.key for record in records],
            [record.serial for record in records],
            columns,
            [record.metadata for record in records] if self.fields else None,
        )

    def put(
        self,
        keys: Sequence[Key],
        serials: Sequence[int],
        columns: Mapping[str, Sequence[Any]],
        metadata: Sequence[Mapping[str, object]] | None = None,
    ) -> None:
        """Enter memories, from one sequence per column.

        Args:
            keys: Their keys; of equal ones the last counts.
            serials: Their serials.
            columns: Name → values, None = absent; every column there is.
            metadata: What they say; None when no field is kept.
        """
        rows = self._rows_for(keys, serials)
        for name, given in columns.items():
            self._arrays[name][rows] = self._coded(name, given)
        if len(rows):
            self.first_expiry = min(
                self.first_expiry, np.fmin.reduce(self._arrays["expires"][rows], initial=math.inf)
            )
            self.serial_limit = max(self.serial_limit, max(serials) + 1)
        if metadata is not None:
            for kept in self.fields.values():
                kept.codes[rows] = [kept.code(each) for each in metadata]
        if self.rows.needs_compaction:
            self.compact()

    def keys_of(self, serials: Sequence[int]) -> list[Key]:
        """The keys of those of some serials that are held."""
        if not serials:
            return []
        rows = np.flatnonzero(np.isin(self.rows.serials, serials) & self.rows.alive)
        return [self.rows.key(row) for row in rows.tolist()]

    def use(self, keys: Iterable[Key], now: float) -> None:
        """Count a use of each memory; unknown keys are skipped."""
        found = [row for key in keys if (row := self.rows.row(key)) is not None]
        rows = np.array(found, dtype=np.int64)
        self._arrays["uses"][rows] += 1
        self._arrays["used"][rows] = np.fmax(self._arrays["used"][rows], now)

    def remove(self, keys: Iterable[Key]) -> None:
        """Drop memories; unknown keys are skipped."""
        self.rows.remove(keys)
        if self.rows.needs_compaction:
            self.compact()

    def keep_field(
        self, field: str, metadata: Iterable[tuple[int, Mapping[str, object]]]
    ) -> FieldCodes:
        """Number the values of a metadata field for all rows, and keep that up to date from now on.

        Args:
            field: The field.
            metadata: Serial and metadata of every memory that has any.
        """
        while len(self.fields) >= _KEPT_FIELDS:
            self.fields.pop(next(iter(self.fields)))
        kept = FieldCodes(field, len(self._arrays["at"]))
        row_of = dict(zip(self.rows.serials.tolist(), range(self.rows.size), strict=True))
        for serial, each in metadata:
            row = row_of.get(serial)
            if row is not None:
                kept.codes[row] = kept.code(each)
        self.fields[field] = kept
        return kept

    def kept_field(self, field: str) -> FieldCodes | None:
        """The numbered values of a field, if they are kept."""
        kept = self.fields.pop(field, None)
        if kept is not None:
            self.fields[field] = kept  # now the one asked for last
        return kept

    def _rows_for(self, keys: Sequence[Key], serials: Sequence[int]) -> NDArray[np.int64]:
        """The row of each key, a new one for those not held."""
        first = self.rows.size
        # By path and id: the hash of a key would take most of the time here.
        if not first and len({(key.scope.path, key.id) for key in keys}) == len(keys):
            self._reserve(len(keys))
            return self.rows.add(keys, serials)
        held = [self.rows.row(key) for key in keys]
        fresh: dict[tuple[str, str], int] = {}
        adds: list[int] = []
        rows: list[int] = []
        for i, (key, row) in enumerate(zip(keys, held, strict=True)):
            if row is None:
                row = fresh.setdefault((key.scope.path, key.id), first + len(fresh))
                if row - first == len(adds):
                    adds.append(i)
            rows.append(row)
        self._reserve(first + len(adds))
        self.rows.add([keys[i] for i in adds], [serials[i] for i in adds])
        found = np.array(rows, dtype=np.int64)
        self.rows.renumber(found, serials)
        return found

    def _coded(self, name: str, given: Sequence[Any]) -> NDArray[Any]:
        if name in _LABEL_CODES:
            known = _LABEL_CODES[name]
            return np.array([-1 if value is None else known[value] for value in given], np.int8)
        if name == "layer":
            return np.array([self._layer(value) for value in given], np.int16)
        if name == "slot":
            code_of = self._slot_code
            return np.array(
                [-1 if s is None else code_of.setdefault(s, len(code_of)) for s in given], np.int32
            )
        return np.array(given, dtype=DTYPES[name])  # None becomes NaN

    def _layer(self, name: str) -> int:
        code = self._layer_code.setdefault(name, len(self.layers))
        if code == len(self.layers):
            self.layers.append(name)
        return code

    def _reserve(self, size: int) -> None:
        capacity = len(self._arrays["at"])
        if size <= capacity:
            return
        # Exact when first filled (a bulk load stays tight), then half as much again.
        capacity = max(size, capacity + capacity // 2)
        old = self.rows.size
        for name, array in self._arrays.items():
            self._arrays[name] = grown(array[:old], capacity)
        for kept in self.fields.values():
            kept.codes = grown(kept.codes[:old], capacity)

    def _names_in_use(self, column: str, names: list[str]) -> tuple[list[str], dict[str, int]]:
        """The names that the codes of a column still need; the codes are renumbered."""
        codes = self._arrays[column]
        used = np.unique(codes[codes >= 0])
        if len(used) < len(names):
            renumbered = np.full(len(names) + 1, -1, dtype=codes.dtype)  # the last one is for −1
            renumbered[used] = np.arange(len(used), dtype=codes.dtype)
            self._arrays[column] = renumbered[codes]
            names = [names[code] for code in used.tolist()]
        return names, {name: code for code, name in enumerate(names)}

    def compact(self) -> None:
        """Sort all rows and drop the removed ones; rows asked for before are no longer valid."""
        order = self.rows.compact()
        for name, array in self._arrays.items():
            self._arrays[name] = array[order]
        # Names that only dropped memories had go with them: they are written to the file.
        self.layers, self._layer_code = self._names_in_use("layer", self.layers)
        _, self._slot_code = self._names_in_use("slot", self.slots)
        for field, kept in list(self.fields.items()):
            kept.codes = kept.codes[order]
            if len(kept.values) > 2 * len(order) + 1024:  # mostly values nobody has any more
                del self.fields[field]


_RECORD_COLUMNS = tuple(name for name in DTYPES if name != "digest")


NAME = "catalog.columns"  # not an identifier, so no store has this name
# Whatever changes the meaning of the bytes is in here: bytes of another layout are not read.
_LAYOUT = [
    1,
    {name: np.dtype(dtype).str for name, dtype in DTYPES.items()},
    {name: list(levels) for name, levels in LABELS.items()},
]


def dump_columns(columns: Columns) -> bytes:
    """All columns, compacted; the columns may have other rows afterwards."""
    columns.compact()
    rows = columns.rows
    header = {
        "layout": _LAYOUT,
        "paths": [scope.path for scope in rows.scopes],
        "ids": list(rows.ids),
        "layers": columns.layers,
        "slots": columns.slots,
    }
    arrays: list[NDArray[Any]] = [rows.scope_codes, rows.serials]
    arrays += (columns.array(name) for name in DTYPES)
    text = json.dumps(header, ensure_ascii=False).encode()
    return b"".join([len(text).to_bytes(8, "little"), text, *(array.tobytes() for array in arrays)])


def restore_columns(data: bytes, scopes: ScopeReader, generation: int) -> Columns | None:
    """The columns again, or None for bytes of another layout or of something else."""
    try:
        return _restored(data, scopes, generation)
    # whatever it may lead to that another version of rankblend means something else by them
    except (ValueError, TypeError, LookupError, AttributeError):
        return None


def _restored(data: bytes, scopes: ScopeReader, generation: int) -> Columns | None:
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    if header["layout"] != _LAYOUT:
        return None
    ids = header["ids"]

    def next_array(dtype: Any) -> NDArray[Any]:
        nonlocal start
        array = np.frombuffer(data, dtype, len(ids), start)
        start += array.nbytes
        return array.copy()

    codes, serials = next_array(np.int32), next_array(np.int64)
    rows = CatalogRows.restored([scopes(path) for path in header["paths"]], codes, ids, serials)
    arrays = {name: next_array(dtype) for name, dtype in DTYPES.items()}
    return Columns.restored(rows, arrays, header["layers"], header["slots"], generation)
