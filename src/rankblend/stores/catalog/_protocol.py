"""What a catalog is to everybody else: recall, procedures, transfer and the command line.

SQLite's is one implementation (`Catalog`). Nothing here is of a file, of SQL or of columns in memory,
except that memories have serials, small numbers that mark what may be shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankblend.relevance import Scope
from rankblend.stores._layers import LayerPolicy
from rankblend.stores._protocol import Contents, StoreQuery
from rankblend.stores._record import Edge, Key, Record
from rankblend.stores._rows import NumberedIds
from rankblend.stores.catalog._database import Compaction
from rankblend.stores.catalog._filters import Filters
from rankblend.stores.catalog._reads import Changes
from rankblend.stores.catalog._view import Facts, Seen


class CatalogView(Protocol):
    """The memories of one moment, the present or a past one: who sees which, and small facts."""

    def __len__(self) -> int:
        """How many memories there are."""
        ...

    def is_current(self) -> bool:
        """Whether this is all there is to see; a view of the past always is."""
        ...

    def records(self, keys: Iterable[Key]) -> list[Record | None]:
        """The record of each key, None where there is none."""
        ...

    def contents(self, serials: NDArray[np.int64]) -> list[Record | None]:
        """The record of each serial, None where there is none; its vector may be left out."""
        ...

    def iter_records(self) -> Iterator[Record]:
        """All records."""
        ...

    def admit(
        self,
        query: StoreQuery,
        *,
        layers: Mapping[str, LayerPolicy],
        filters: Filters | Mapping[str, object] | None = None,
        include_expired: bool = False,
    ) -> NDArray[np.bool_] | None:
        """Which visible memories may be shown, by serial; see `MemoryView.admit`."""
        ...

    def locate(self, query: StoreQuery, ids: Sequence[str]) -> list[Key | None]:
        """The memory each id names for this query, None when it sees none."""
        ...

    def serials_of(self, query: StoreQuery, ids: Sequence[str]) -> NDArray[np.int64]:
        """int64, shape (n,): the serial of the memory each id names, −1 where it sees none."""
        ...

    def seen(self, query: StoreQuery, ids: Sequence[str]) -> Seen:
        """The memories some ids name for this query, without those it does not see."""
        ...

    def facts(self, query: StoreQuery, ids: Sequence[str], names: Sequence[str]) -> Facts:
        """Ages, counts, numbers and labels by name for some ids; see `MemoryView.facts`."""
        ...

    def digests(self, query: StoreQuery, ids: Sequence[str]) -> list[int | None]:
        """64-bit digest of each memory's normalized text; None for an id the query does not see."""
        ...

    def leading(
        self,
        query: StoreQuery,
        limit: int,
        by: Sequence[str],
        *,
        level: int | None = None,
        present: bool = False,
    ) -> NumberedIds:
        """Ids of the visible memories with the greatest values; see `MemoryView.leading`."""
        ...


class CatalogProtocol(CatalogView, Contents, Protocol):
    """The durable truth: every revision, use and link, what was written since, and its transactions.

    Every method that writes is one transaction; see `Catalog` for what each does. ``also`` of `put`
    and `replace_vectors` gets the engine's own transaction, for tables that lie beside those of
    memories.
    """

    @property
    def path(self) -> str:
        """Where it is: a file, or ``":memory:"``."""
        ...

    @property
    def generation(self) -> int:
        """The number of the last write that the view includes."""
        ...

    @property
    def database(self) -> Any:
        """What tables beside those of memories are read and written through; the engine's own."""
        ...

    @property
    def dimension(self) -> int | None:
        """The length of all vectors; None while there is none."""
        ...

    def get(self, key: Key) -> Record | None:
        """The current record with this key, or None."""
        ...

    def revisions(self, key: Key) -> list[Record]:
        """Every revision of a memory, the current one last."""
        ...

    def linked(self, kind: str | None = None) -> list[Record]:
        """Memories that have links (of one kind); of each only key, serial and links."""
        ...

    def iter_edges(self, *, as_of: float = math.inf, kind: str | None = None) -> Iterator[Edge]:
        """Edges (of one kind) that hold at a time, by identity."""
        ...

    def snapshot(self, as_of: float, *, roots: Sequence[Scope] | None = None) -> CatalogView:
        """The memories of some roots as they were at a time."""
        ...

    def changes(self, since: int) -> Changes:
        """What was written after a generation, by anybody."""
        ...

    def refresh(self, since: int | None = None) -> Changes:
        """Bring the view up to date with what others wrote, and tell it."""
        ...

    def put(
        self,
        drafts: Iterable[Record],
        *,
        edges: Iterable[Edge] = (),
        embedder: str | None = None,
        dimension: int | None = None,
        undated: AbstractSet[int] = frozenset(),
        also: Callable[[Any], object] | None = None,
    ) -> list[Record]:
        """Write memories and edges; the current record of each draft's memory."""
        ...

    def forget(self, keys: Iterable[Key]) -> int:
        """Erase memories with everything of theirs; how many there were."""
        ...

    def reinforce(self, keys: Iterable[Key], now: float) -> int:
        """Count one use of each memory; how many there were."""
        ...

    def add_edges(self, edges: Iterable[Edge]) -> int:
        """Write edges; how many were given."""
        ...

    def remove_edges(self, edges: Iterable[Edge]) -> int:
        """Delete edges; how many there were."""
        ...

    def replace_vectors(
        self,
        vectors: Mapping[Key, NDArray[np.float32]],
        *,
        embedder: str,
        also: Callable[[Any], object] | None = None,
    ) -> None:
        """Replace all vectors by those of another embedder."""
        ...

    def get_meta(self, name: str) -> str | None:
        """A fact about the whole catalog, such as ``embedder``."""
        ...

    def set_meta(self, name: str, value: str) -> None:
        """Note a fact about the whole catalog."""
        ...

    def load_cache(self, store: str) -> tuple[int, bytes] | None:
        """What a store kept to open faster, with the generation it belongs to."""
        ...

    def save_cache(self, store: str, data: bytes, *, generation: int | None = None) -> None:
        """Keep bytes from which a store opens faster."""
        ...

    def discard_cache(self, store: str) -> None:
        """Note that a store could do nothing with what it kept."""
        ...

    def cache_is_due(self, store: str) -> bool:
        """Whether what a store kept is worth renewing."""
        ...

    def compact(self) -> Compaction:
        """Leave no byte of what was erased, and give the space back."""
        ...

    def check(self) -> None:
        """Read everything and check that it is whole."""
        ...

    def stop_waiting(self) -> None:
        """From now on give up at once when another is writing."""
        ...

    def close(self) -> None:
        """Let go of it; closing twice is harmless."""
        ...
