"""The engine over a catalog: every write reaches the file first, then all stores."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain, islice
from sqlite3 import Connection
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from rankblend.caches import Lru
from rankblend.embedders import Embedded
from rankblend.errors import CacheWarning, InvalidArgumentError, StoreError
from rankblend.forks import guard
from rankblend.recall._engine import CATALOG_STORES, EQUIVALENT, Engine, Equivalents
from rankblend.relevance import Scope
from rankblend.stores import (
    Edge,
    Key,
    LayerPolicy,
    Record,
    ScopedRows,
    Store,
    SupportsCache,
    SupportsEdges,
    SupportsLoad,
    SupportsRebuild,
    SupportsVectors,
    SupportsWrite,
    latest,
)
from rankblend.stores.catalog import CatalogProtocol, Compaction, relabel_vectors
from rankblend.stores.procedures import questions, replace_vectors
from rankblend.stores.procedures import relabel as relabel_procedures
from rankblend.values import is_text

_KEPT = 4


class Snapshots:
    """Engines for past moments: a query "as of" a time is answered as if it had been asked then.

    Building one costs as much as opening the memories of its root scopes.
    """

    def __init__(self, engine: LiveEngine) -> None:
        self._engine = engine
        self._kept: Lru[tuple[int, float, frozenset[Scope]], Engine] = Lru(_KEPT, once=True)

    def at(self, as_of: float, roots: AbstractSet[Scope]) -> Engine:
        """The engine for a time in seconds since the epoch and some root scopes."""
        # Under the memory's lock: who makes one waits for nobody who could wait for it.
        with self._engine.lock.reading():
            key = (self._engine.catalog.generation, as_of, frozenset(roots))
            return self._kept.get(key, partial(self._engine.at, as_of, roots))

    def clear(self) -> None:
        """Forget all snapshots."""
        self._kept.clear()


T = TypeVar("T")
_BATCH = 4096
_FILLS = 5  # readings of everything while others write, before they have to wait for one


class LiveEngine(Engine):
    """A catalog with its stores.

    The catalog is written first and is the only truth; the others follow from it and can always be
    filled again.

    Args:
        catalog: Open; closed with the engine.
        stores: Stores beside the catalog's own; closed with the engine.
        layers: Policies of the layers.
    """

    def __init__(
        self, catalog: CatalogProtocol, stores: Iterable[Store], layers: Mapping[str, LayerPolicy]
    ) -> None:
        super().__init__(catalog, stores, layers)
        self.catalog = catalog
        # The last write that all stores were shown, and whether something stopped them half-way.
        self._shown = catalog.generation
        self._torn = False
        guard(self)

    @property
    def generation(self) -> int:
        """Changes with every write that was seen."""
        return self.catalog.generation

    def after_fork(self, *, quiet: bool) -> None:
        """In the child: what another thread was writing is not whole."""
        self._torn |= self.lock.was_cut or not quiet

    def load(self) -> None:
        """Fill every store from the catalog, from what it kept there where that is still good."""
        with self.lock.writing():
            self.unread = self._deferred()
            with self._showing():
                self._filled(self._fill)
            self._catch_up()
        self._warn_if_behind()

    def save(self) -> None:
        """Keep what is slow to rebuild (tokenized texts) for the next opening."""
        if self._torn or self._shown != self.catalog.generation:
            return
        for name, store in self.stores.items():
            if not isinstance(store, SupportsCache) or name in self.behind:
                continue
            # A file that cannot be written now (read-only, full, busy) has lost nothing by it, and
            # nobody waits for that.
            with suppress(StoreError):
                self.catalog.stop_waiting()
                if len(store) and self.catalog.cache_is_due(name):
                    self._save(name, store)

    def _save(self, name: str, store: SupportsCache) -> None:
        try:
            data = self.asked(name, store.snapshot)()
        except Exception as error:
            _warn_of_cache(name, "give", error)
            return
        self.catalog.save_cache(name, data)

    def distrust(self) -> None:
        """Have the stores filled anew before they are asked again: they may be in disorder."""
        self._torn = True

    def refresh(self) -> None:
        """Get ready to be asked: `catch_up`, and fill the stores that nobody asked before."""
        self.catch_up()
        if self.unread and not self.lock.inside:
            with self.lock.writing():
                self._catch_up()
                unread, self.unread = self.unread, set()
                with self._showing():
                    self._filled(partial(self._load, unread))

    def catch_up(self) -> None:
        """See what other processes have written since the last look; cheap when nothing was.

        A store that asks the memory that is asking it sees what that recall sees.
        """
        if self.lock.inside:
            return
        if self._torn or self._shown != self.catalog.generation or not self.catalog.is_current():
            with self.lock.writing():
                self._catch_up()

    def put(
        self,
        records: Sequence[Record],
        *,
        edges: Sequence[Edge] = (),
        embedder: str | None = None,
        dimension: int | None = None,
        undated: AbstractSet[int] = frozenset(),
        also: Callable[[Connection], object] | None = None,
    ) -> list[Record]:
        """Store memories and links durably, in one transaction, and show them to every store."""
        with self.lock.writing():
            self._catch_up()
            stored = self.catalog.put(
                records,
                edges=edges,
                embedder=embedder,
                dimension=dimension,
                undated=undated,
                also=also,
            )
            changed = [stored[at] for at in latest(stored, ordered=True)]
            with self._showing():
                self.follow(changed=changed, edges=edges)
        self._warn_if_behind()
        return stored

    def forget(self, keys: Sequence[Key]) -> int:
        """Erase memories with all their revisions."""
        with self.lock.writing():
            self._catch_up()
            count = self.catalog.forget(keys)
            self._catch_up()  # which edges went with them, too
        self._warn_if_behind()
        return count

    def reinforce(self, keys: Sequence[Key], now: float) -> int:
        """Count one use of each."""
        with self.lock.writing():
            self._catch_up()
            count = self.catalog.reinforce(keys, now)
            self._shown = self.catalog.generation  # only the catalog's own stores know of uses
            return count

    def compact(self) -> Compaction:
        """Leave nothing of what was erased in the file, and give its space back."""
        with self.lock.writing():
            self._catch_up()
            return self.catalog.compact()

    def add_edges(self, edges: Sequence[Edge]) -> None:
        """Store edges between entities or memories and show them to the graph."""
        with self.lock.writing():
            self._catch_up()
            self.catalog.add_edges(edges)
            with self._showing():
                self.follow(edges=edges)
        self._warn_if_behind()

    def remove_edges(self, edges: Sequence[Edge]) -> int:
        """Erase edges; returns how many there were."""
        with self.lock.writing():
            self._catch_up()
            count = self.catalog.remove_edges(edges)
            with self._showing():
                self.follow(edges_removed=edges)
        self._warn_if_behind()
        return count

    def reembed(self, embed: Callable[[list[str]], Embedded], identity: Callable[[], str]) -> int:
        """Store other vectors for all memories and procedures, and fill the vector stores anew.

        Embedding takes long and holds no lock: what is written meanwhile, here or by another
        process, is embedded in a further round, and the last look is under the lock.

        Returns:
            How many memories have a vector now.
        """
        vector_of: dict[str, NDArray[np.float32] | None] = {}
        while True:
            texts = {record.key: record.text for record in self.catalog.iter_records()}
            with self.catalog.database.read() as connection:
                asked = sorted(questions(connection))
            wanted = dict.fromkeys((*texts.values(), *asked))
            missing = [text for text in wanted if text not in vector_of]
            rows, has_vector = embed(missing)
            for text, row, has in zip(missing, rows, has_vector, strict=True):
                vector_of[text] = row if has else None
            with self.lock.writing():
                self._catch_up()
                now = {record.key: record.text for record in self.catalog.iter_records()}
                if not all(text in vector_of for text in now.values()):
                    continue
                found = {key: vector_of[text] for key, text in now.items()}
                vectors = {key: vector for key, vector in found.items() if vector is not None}
                given = {text: row for text, row in vector_of.items() if row is not None}
                made_by = identity()
                also = partial(_embed_procedures, vectors=given, embedder=made_by)
                try:
                    self.catalog.replace_vectors(vectors, embedder=made_by, also=also)
                except _MoreToEmbedError:
                    continue
                with self._showing():
                    self._fill_anew()
                return len(vectors)

    def relabel(self, name: str) -> None:
        """Note another name for what made the vectors, of memories and procedures alike."""
        if not (is_text(name) and name.strip()):
            raise InvalidArgumentError("name: expected a text that is not blank")
        with self.lock.writing(), self.catalog.database.write() as connection:
            found = relabel_vectors(connection, name) + relabel_procedures(connection, name)
        if not found:
            raise InvalidArgumentError("this file notes no embedder, so there is none to rename")

    def at(self, as_of: float, roots: AbstractSet[Scope]) -> Engine:
        """A separate engine with the revisions of some roots that were valid at a time.

        Stores that can be made anew are, so that nothing later, not even a statistic, has any
        influence. Other stores are shared: they see the query and answer as they can.
        """
        rebuilt = self._rebuilt()
        stores: list[Store] = [
            store.fresh() if name in rebuilt else store  # type: ignore[attr-defined]
            for name, store in self.stores.items()
            if name not in CATALOG_STORES
        ]
        with self.lock.reading():
            past = Engine(
                self.catalog.snapshot(as_of, roots=sorted(roots, key=lambda root: root.path)),
                stores,
                self.layers,
            )
            edges = [
                edge for edge in self.catalog.iter_edges(as_of=as_of) if edge.scope.root in roots
            ]
            shared = frozenset(self.stores) - rebuilt
            past.behind.update({n: kind for n, kind in self.behind.items() if n in shared})
            past.lock, past.present = self.lock, self.catalog
            past.turns = {name: turns for name, turns in self.turns.items() if name in shared}
            past.follow(changed=list(past.view.iter_records()), edges=edges, without=shared)
        return past

    def close(self) -> None:
        """Close the stores, then the catalog."""
        try:
            super().close()
        finally:
            self.catalog.close()

    @contextmanager
    def _showing(self) -> Iterator[None]:
        """Stores while they are shown what the catalog holds.

        What stops them half-way (Ctrl-C) leaves them torn: they are filled anew before they are
        asked again. Errors of a store's own are none of that, see `follow`.
        """
        self._torn = True
        yield
        self._shown, self._torn = self.catalog.generation, False

    def _catch_up(self) -> None:
        """Show the stores what they have not seen yet; the caller holds the lock for writing."""
        changes = self.catalog.refresh(self._shown)
        torn = self._torn
        with self._showing():
            if torn or not changes.complete or (changes and self._reembedded()):
                self.follow(removed=changes.removed, without=self._rebuilt())
                self._fill_anew()
            elif changes:
                self.follow(
                    changed=changes.changed,
                    removed=changes.removed,
                    edges=changes.edges,
                    edges_removed=[
                        *changes.edges_removed,
                        *self._held(changes.edges_gone, self.stores.values()),
                    ],
                )

    def _held(self, gone: AbstractSet[int], stores: Iterable[Store]) -> set[Edge]:
        """The edges with some digests among those that are held here."""
        if not gone:
            return set()
        linking = (store.edges() for store in stores if isinstance(store, SupportsEdges))
        held = chain(self.equivalents.edges(), *linking)
        return {edge for edge in held if edge.digest in gone}

    def _rebuilt(self) -> frozenset[str]:
        """The stores that follow from the catalog alone, whatever befell them."""
        return frozenset(n for n, s in self.stores.items() if isinstance(s, SupportsRebuild))

    def _deferred(self) -> set[str]:
        """The stores that are filled when they are first asked: those of links, in one call."""
        return {
            name
            for name, store in self.stores.items()
            if isinstance(store, SupportsEdges)
            and isinstance(store, SupportsLoad)
            and not isinstance(store, SupportsCache)
        }

    def _reembedded(self) -> bool:
        """Whether somebody gave the file vectors of another length than a store holds."""
        dimension = self.catalog.dimension
        return any(
            isinstance(store, SupportsVectors) and store.dimension not in (None, dimension)
            for store in self.stores.values()
            if isinstance(store, SupportsRebuild)
        )

    def _filled(self, fill: Callable[[], None]) -> None:
        """Fill stores with just what the view includes; the caller holds the lock for writing.

        What another process writes meanwhile would be in a store and not in the view, and if it was
        removed before the view has it, nobody could name it: then everything is read again, in the
        end while nobody else may write.
        """
        fill()
        for _ in range(_FILLS):
            if self.catalog.is_current():
                return
            self.catalog.refresh()
            self._read_all()
        with suppress(StoreError), self.catalog.database.write():  # not of a file that is read only
            self.catalog.refresh()
            self._read_all()

    def _fill_anew(self) -> None:
        """Read everything, as of the last write."""
        self._filled(self._read_all)

    def _read_all(self) -> None:
        """Too much was written elsewhere to be told one by one: read everything."""
        self.equivalents = Equivalents()
        for name, store in self.stores.items():
            if isinstance(store, SupportsRebuild):
                self.stores[name] = cast("Store", store.fresh())
                self.behind.pop(name, None)
        self._fill()
        self._load(self._deferred() - self.unread)

    def _fill(self) -> None:
        """Show the stores everything there is; the caller holds the lock for writing.

        Not those that are filled when they are first asked.
        """
        rows, knowing = self.catalog.rows(), self._deferred()
        for name, store in self.stores.items():
            if name in knowing:
                continue
            if isinstance(store, SupportsCache) and self._restore(name, store, rows):
                knowing.add(name)
            elif isinstance(store, SupportsLoad) and not len(store):
                self._load({name})
                knowing.add(name)
        others = {n: store for n, store in self.stores.items() if n not in knowing}
        if any(isinstance(store, SupportsWrite) for store in others.values()):
            for records in _batched(self.catalog.iter_records(), _BATCH):
                self.follow(changed=records, without=frozenset(knowing))
        for name, store in others.items():
            if isinstance(store, SupportsEdges):
                self.tell(name, partial(_relink, store, list(self.catalog.iter_edges())))
        self.equivalents.put(self.catalog.linked(EQUIVALENT))
        self.equivalents.put_edges(self.catalog.iter_edges(kind=EQUIVALENT))

    def _restore(self, name: str, store: SupportsCache, rows: ScopedRows) -> bool:
        """Fill a store from what it kept in the catalog, unless that is of no use any more."""
        kept = self.catalog.load_cache(name)
        if kept is None:
            return False
        generation, data = kept
        current = generation == self.catalog.generation
        missed = self.catalog.changes(generation)
        if not (missed.complete and _taken(name, store, data, rows.shared() if current else None)):
            self.catalog.discard_cache(name)
            return False
        self.follow(
            changed=missed.changed,
            removed=missed.removed,
            edges=missed.edges,
            edges_removed=[
                *missed.edges_removed,
                *self._held(missed.edges_gone, [self.stores[name]]),
            ],
            without=frozenset(self.stores) - {name},
        )
        return True

    def _load(self, names: AbstractSet[str]) -> None:
        for name, store in self.stores.items():
            if name in names and isinstance(store, SupportsLoad):
                self.tell(name, partial(store.load_contents, self.catalog))

    def _warn_if_behind(self) -> None:
        for name, kind in self.behind.items():
            warnings.warn(
                f"store {name!r} failed to follow a write ({kind}); the memory is stored, but this "
                "store's evidence counts as failed until the memory is opened anew",
                CacheWarning,
                stacklevel=4,
            )


def _relink(store: SupportsEdges, edges: Sequence[Edge]) -> None:
    """Show a store all links; what it holds beside them is gone."""
    there = {edge.identity for edge in edges}
    store.remove_edges([edge for edge in store.edges() if edge.identity not in there])
    store.add_edges(edges)


def _taken(name: str, store: SupportsCache, data: bytes, rows: ScopedRows | None) -> bool:
    try:
        return store.restore(data, rows=rows)
    except Exception as error:
        _warn_of_cache(name, "take", error)
        return False


def _warn_of_cache(name: str, verb: str, error: Exception) -> None:
    warnings.warn(
        f"store {name!r} could not {verb} its cache ({type(error).__name__}); it is filled from the "
        "memories instead, which takes longer",
        CacheWarning,
        stacklevel=5,
    )


class _MoreToEmbedError(Exception):
    """Somebody remembered a procedure since the questions were embedded."""


def _embed_procedures(
    connection: Connection, *, vectors: Mapping[str, NDArray[np.float32]], embedder: str
) -> None:
    """Give the procedures of a file other vectors, inside the transaction of the memories'."""
    if not questions(connection) <= vectors.keys():
        raise _MoreToEmbedError
    replace_vectors(connection, vectors, embedder)


def _batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch
