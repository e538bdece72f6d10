"""The memories as they were at one moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rankblend.stores.catalog.columns import Columns
from rankblend.stores.catalog.encoding import text_digest
from rankblend.stores.catalog.view import MemoryView
from rankblend.stores.protocol import Key, Record

__all__ = ["Snapshot"]


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
        return self._records.get(key)

    def records(self, keys: Iterable[Key]) -> list[Record | None]:
        """The record of each key, None where there is none."""
        return [self._records.get(key) for key in keys]

    def iter_records(self) -> Iterator[Record]:
        """All records, in the order given."""
        return iter(self._records.values())

    def _metadata_of(
        self, serials: Sequence[int] | None
    ) -> Iterable[tuple[int, Mapping[str, object]]]:
        asked = self._of_serial.values() if serials is None else map(self._of_serial.get, serials)
        return [(each.serial, each.metadata) for each in asked if each is not None]
