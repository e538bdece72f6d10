"""The memories as they were at one moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from rankblend.stores._record import Key, Record
from rankblend.stores.catalog._codec import text_digest
from rankblend.stores.catalog._columns import Columns
from rankblend.stores.catalog._view import MemoryView


class Snapshot(MemoryView):
    """A view of some records that never changes: what `Catalog.snapshot` returns.

    Args:
        records: One per key, with their serials.
        normalize: How texts are normalized before they are compared.
        generation: The last write of the catalog that is included.
    """

    def __init__(
        self,
        records: Sequence[Record],
        *,
        normalize: Callable[[str], str],
        generation: int = 0,
    ) -> None:
        self.generation = generation
        self._records = {record.key: record for record in records}
        self._of_serial = {record.serial: record for record in records}
        columns = Columns(generation)
        columns.put_records(records, [text_digest(each.text, normalize) for each in records])
        super().__init__(columns, self._metadata_of)

    def get(self, key: Key) -> Record | None:
        """The record with this key, or None."""
        return self.records([key])[0]

    def records(self, keys: Iterable[Key]) -> list[Record | None]:
        """The record of each key, None where there is none."""
        found = map(self._records.get, keys)
        return [None if record is None else _apart(record) for record in found]

    def contents(self, serials: NDArray[np.int64]) -> list[Record | None]:
        """`MemoryView.contents`."""
        found = map(self._of_serial.get, serials.tolist())
        return [None if record is None else _apart(record) for record in found]

    def iter_records(self) -> Iterator[Record]:
        """All records, in the order given."""
        return map(_apart, self._records.values())

    def _metadata_of(
        self, serials: Sequence[int] | None
    ) -> Iterable[tuple[int, Mapping[str, object]]]:
        asked = self._of_serial.values() if serials is None else map(self._of_serial.get, serials)
        return [(each.serial, each.metadata) for each in asked if each is not None]


def _apart(record: Record) -> Record:
    """A record whose metadata may be changed by whoever gets it: the snapshot keeps its own."""
    return evolve(record, metadata=_copied(record.metadata)) if record.metadata else record


def _copied(value: Any) -> Any:
    """A JSON value in containers of its own."""
    if isinstance(value, Mapping):
        return {name: _copied(each) for name, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value
