"""What answers a recall: a view of the memories and the stores beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TypeVar, cast

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from rankblend.errors import CatalogCorruptError, InvalidArgumentError, StoreError
from rankblend.recall._ask import SharedLock, Turns, asked_by
from rankblend.recall._observe import Permissions
from rankblend.relevance import Scope, is_identifier
from rankblend.stores import (
    Edge,
    Key,
    Keys,
    LayerPolicy,
    Record,
    Store,
    StoreQuery,
    SupportsEdges,
    SupportsWalk,
    SupportsWrite,
)
from rankblend.stores.catalog import ActivityStore, CatalogStore, CatalogView, Condition, Filters
from rankblend.stores.graph import GraphStore
from rankblend.stores.keywords import KeywordStore
from rankblend.stores.vectors import VectorStore

EQUIVALENT = "equivalent"


class Equivalents:
    """Which memories are linked as verified equivalents; an unverified link does nothing."""

    def __init__(self) -> None:
        self._links: dict[str, dict[Key, tuple[str, ...]]] = {}  # by id: quicker to look up
        self._edges: dict[tuple[str, str, str, str], Edge] = {}

    def put(self, records: Iterable[Record]) -> None:
        """Take the links of memories, replacing what they linked before."""
        for record in records:
            targets = tuple(
                link.target for link in record.links if link.kind == EQUIVALENT and link.verified
            )
            if targets:
                self._links.setdefault(record.id, {})[record.key] = targets
            elif record.id in self._links:
                self.remove([record.key])

    def remove(self, keys: Iterable[Key]) -> None:
        """Drop the links of memories."""
        for key in keys:
            held = self._links.get(key.id, {})
            held.pop(key, None)
            if not held:
                self._links.pop(key.id, None)

    def put_edges(self, edges: Iterable[Edge]) -> None:
        """Take edges written apart from memories."""
        for edge in edges:
            self._edges.pop(edge.identity, None)
            if edge.kind == EQUIVALENT and edge.verified:
                self._edges[edge.identity] = edge

    def edges(self) -> Iterable[Edge]:
        """The edges that are held."""
        return self._edges.values()

    def remove_edges(self, edges: Iterable[Edge]) -> None:
        """Drop edges."""
        for edge in edges:
            self._edges.pop(edge.identity, None)

    def pairs(self, query: StoreQuery, keys: Sequence[Key]) -> list[tuple[str, str]]:
        """Pairs of ids that visible, verified links join; both ends are among the keys."""
        if not self._links and not self._edges:
            return []
        own = keys.ids if isinstance(keys, Keys) else [key.id for key in keys]
        ids = set(own)
        found = [
            (identifier, target)
            for at, identifier in enumerate(own)
            if identifier in self._links
            for target in self._links[identifier].get(keys[at], ())
            if target in ids
        ]
        found += [
            (edge.source, edge.target)
            for edge in self._edges.values()
            if edge.source in ids and edge.target in ids and query.distance(edge.scope) >= 0
        ]
        return found


CATALOG_STORES = ("activity", "catalog")
T = TypeVar("T")


def is_immediate(store: Store) -> bool:
    """Whether a store answers from memory, so that it may be waited for under a lock.

    Its class says so itself: one made of another may be anything.
    """
    return bool(vars(type(store)).get("immediate", False))


def default_stores(*, tokenizer: Callable[[str], Sequence[str]] | None = None) -> tuple[Store, ...]:
    """Fresh stores beside the catalog's own two: vectors, keywords and graph.

    ``Memory.open(path, stores=[*default_stores(), mine])`` adds a store of one's own.
    """
    return (VectorStore(), KeywordStore(tokenizer=tokenizer), GraphStore())


class Engine:
    """Memories of one moment and the stores that know about them.

    Args:
        view: Decides who sees what; a catalog, or a snapshot of one.
        stores: Stores beside the view's own ``catalog`` and ``activity``.
        layers: Policies of the layers.

    Attributes:
        stores: By name.
        emits: Name and evidence of each store.
        permissions: What the layers may contribute.
        present: Of an engine for the past: the memories of today.
        turns: Of stores that are not immediate and keep memories themselves: when they are shown a
            write.
        behind: Stores that failed to follow a write → class name of what they raised; they count
            as failed.
        unread: Stores that hold nothing yet: they are filled when they are first asked.

    Raises:
        InvalidArgumentError: Store names are no identifiers or not unique.
    """

    def __init__(
        self, view: CatalogView, stores: Iterable[Store], layers: Mapping[str, LayerPolicy]
    ) -> None:
        everyone: tuple[Store, ...] = (CatalogStore(view), ActivityStore(view), *stores)
        names = [store.name for store in everyone]
        problems = [
            f"stores: {name!r} is no identifier" for name in names if not is_identifier(name)
        ]
        problems += [
            f"stores: two stores are called {name!r}"
            for name in dict.fromkeys(names)
            if names.count(name) > 1
        ]
        if problems:
            raise InvalidArgumentError(problems)
        self.view = view
        self.layers = layers
        self.permissions = Permissions(layers)
        self.present: CatalogView | None = None
        self.stores: dict[str, Store] = dict(zip(names, everyone, strict=True))
        self.emits = tuple((store.name, tuple(store.emits)) for store in everyone)
        # Once, because to ask a protocol takes 20 µs; a store made anew can do the same.
        self._walking = [
            name for name, each in self.stores.items() if isinstance(each, SupportsWalk)
        ]
        self._linking = {
            name for name, each in self.stores.items() if isinstance(each, SupportsEdges)
        }
        self.behind: dict[str, str] = {}
        self.unread: set[str] = set()
        self.equivalents = Equivalents()
        self.lock = SharedLock()
        self.turns = {
            store.name: Turns()
            for store in everyone
            if isinstance(store, SupportsWrite) and not is_immediate(store)
        }

    @property
    def generation(self) -> int:
        """Changes with every write; the past has only one."""
        return 0

    def asked(self, name: str, call: Callable[[], T]) -> Callable[[], T]:
        """The call of a store, marked as made during a recall, and in turn with its writes."""
        turns = self.turns.get(name)
        if turns is None:
            return asked_by(call, self.lock)
        return partial(turns.ask, asked_by(call, self.lock, turns.lock))

    def follow(
        self,
        *,
        changed: Sequence[Record] = (),
        removed: Sequence[Key] = (),
        edges: Sequence[Edge] = (),
        edges_removed: Sequence[Edge] = (),
        without: frozenset[str] = frozenset(),
    ) -> None:
        """Show every store what was written; the caller holds the lock for writing.

        Args:
            changed: Current records of memories written.
            removed: Keys of memories erased, before ``changed`` is looked at.
            edges: Edges written.
            edges_removed: Edges erased.
            without: Stores that know already.
        """
        self.equivalents.remove(removed)
        self.equivalents.put(changed)
        self.equivalents.remove_edges(edges_removed)
        self.equivalents.put_edges(edges)
        for name, store in self.stores.items():
            if name in without or name in self.unread:
                continue
            calls: list[Callable[[], object]] = []
            if isinstance(store, SupportsWrite):
                calls += [partial(store.remove, removed)] if removed else []
                calls += [partial(store.add, changed)] if changed else []
            if name in self._linking and isinstance(store, SupportsEdges):
                calls += [partial(store.remove_edges, edges_removed)] if edges_removed else []
                calls += [partial(store.add_edges, edges)] if edges else []
            self.tell(name, *calls)

    def tell(self, name: str, *calls: Callable[[], object]) -> None:
        """Have a store take in something; one that fails counts as failed from now on."""

        def take_in() -> None:
            try:
                for call in calls:
                    call()
            except CatalogCorruptError:  # what it was to be told could not be read
                raise
            except Exception as error:
                # Whatever it was: it is written, and the other stores must learn of it.
                self.behind[name] = type(error).__name__

        if calls and name in self.turns:
            self.turns[name].show(asked_by(take_in, self.lock, self.turns[name].lock))
        elif calls:
            asked_by(take_in, self.lock)()

    def walkers(self) -> Iterator[tuple[str, SupportsWalk]]:
        """The stores that walk along links, by name."""
        for name in self._walking:
            yield name, cast("SupportsWalk", self.stores[name])

    def admit(
        self,
        query: StoreQuery,
        *,
        filters: Filters,
        include_expired: bool,
        without_layers: frozenset[str] = frozenset(),
    ) -> StoreQuery:
        """The query with its limits: layer policies, filters, expiry, shadows."""
        if without_layers:
            others = Condition("layer", tuple(("ne", layer) for layer in sorted(without_layers)))
            filters = Filters((*filters.conditions, others))
        admitted: NDArray[np.bool_] | None = self.view.admit(
            query, layers=self.layers, filters=filters, include_expired=include_expired
        )
        return evolve(query, admitted=admitted)

    def sight(self, scope: Scope, now: float) -> StoreQuery:
        """What a scope sees at a time, with layer policies and expiry: for look-ups by id."""
        query = StoreQuery("", (scope,), now=now)
        return self.admit(query, filters=Filters(), include_expired=False)

    def holds(self, key: Key) -> bool:
        """Whether a memory is stored at exactly this scope, shown or not."""
        return self.view.locate(StoreQuery("", (key.scope,)), [key.id])[0] == key

    def refresh(self) -> None:
        """See what was written elsewhere; nothing is, in the past."""

    def close(self) -> None:
        """Close the stores: all of them, also when one of them raises.

        Raises:
            StoreError: One of them could not be closed.
        """
        with ExitStack() as closing:
            for name, store in self.stores.items():
                closing.callback(_close, name, store)


def _close(name: str, store: Store) -> None:
    try:
        store.close()
    except Exception as error:
        raise StoreError(
            f"store {name!r} failed to close ({type(error).__name__}); the memory is closed and "
            "everything written is kept. See what it holds open"
        ) from error
