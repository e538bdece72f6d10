"""The values of filter fields for some rows: times and numbers from columns, metadata as codes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rankblend.stores._record import LABELS
from rankblend.stores.catalog._columns import Columns, FieldCodes
from rankblend.stores.catalog._filters import TEXT_FIELDS

MetadataSource = Callable[[Sequence[int] | None], Iterable[tuple[int, Mapping[str, object]]]]
"""Serial and metadata of the memories that have any: of some serials, or of all (None)."""

# Up to so many memories are read one by one (about 2 ms); for more, the field is read for all
# memories once and kept in memory, so that the next filter on it reads nothing.
_READ_DIRECTLY = 512


class RowFields:
    """A `FieldReader` for some rows of the columns."""

    def __init__(self, columns: Columns, rows: NDArray[np.int64], metadata: MetadataSource) -> None:
        self._columns = columns
        self._rows = rows
        self._metadata = metadata
        self._read: list[Mapping[str, object]] | None = None

    def numbers(self, name: str) -> NDArray[np.float64]:
        """A time or number field, shape (rows,); NaN = absent."""
        return self._columns.values(name, self._rows)

    def coded(self, name: str) -> tuple[NDArray[np.int32], Sequence[object]]:
        """A text field or a metadata field: code per row, and the value of each code."""
        if name in TEXT_FIELDS:
            return self._text(name)
        kept = self._columns.kept_field(name)
        if kept is None and len(self._rows) > _READ_DIRECTLY:
            kept = self._columns.keep_field(name, self._metadata(None))
        if kept is not None:
            return kept.codes[self._rows], kept.values
        direct = FieldCodes(name, 0)
        codes = [direct.code(each) for each in self._directly()]
        return np.array(codes, dtype=np.int32), direct.values

    def _text(self, name: str) -> tuple[NDArray[np.int32], Sequence[object]]:
        if name == "id":
            ids = self._columns.rows.ids
            return np.arange(len(self._rows), dtype=np.int32), [ids[r] for r in self._rows.tolist()]
        column = "slot" if name == "key" else name
        codes = self._columns.array(column)[self._rows].astype(np.int32)
        if name == "layer":
            return codes, self._columns.layers
        # −1 is absent: one place for it before all others.
        return codes + 1, [None, *(self._columns.slots if name == "key" else LABELS[name])]

    def _directly(self) -> list[Mapping[str, object]]:
        if self._read is None:
            serials = self._columns.rows.serials[self._rows].tolist()
            found = dict(self._metadata(serials))
            self._read = [found.get(serial, {}) for serial in serials]
        return self._read
