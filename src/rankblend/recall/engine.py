"""What answers a recall: a view of the memories and the stores beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError, StoreError
from rankblend.recall.equivalents import Equivalents
from rankblend.recall.lock import SharedLock, asked_by
from rankblend.recall.permissions import Permissions
from rankblend.relevance.evidence import is_identifier
from rankblend.relevance.scope import Scope
from rankblend.stores.activity import ActivityStore
from rankblend.stores.catalog import Condition, Filters, MemoryView
from rankblend.stores.catalog_store import CatalogStore
from rankblend.stores.graph import GraphStore
from rankblend.stores.keywords import KeywordStore
from rankblend.stores.layers import LayerPolicy
from rankblend.stores.protocol import Edge, Key, Record, Store, StoreQuery, SupportsWrite
from rankblend.stores.vectors import VectorStore

__all__ = ["CATALOG_STORES", "Engine", "default_stores"]

CATALOG_STORES = ("activity", "catalog")


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
        behind: Stores that failed to follow a write → class name of what they raised; they count
            as failed.
        unread: Stores that hold nothing yet: they are filled when they are first asked.

    Raises:
        InvalidArgumentError: Store names are no identifiers or not unique.
    """

    def __init__(
        self, view: MemoryView, stores: Iterable[Store], layers: Mapping[str, LayerPolicy]
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
        self.present: MemoryView | None = None
        self.stores: dict[str, Store] = dict(zip(names, everyone, strict=True))
        self.emits = tuple((store.name, tuple(store.emits)) for store in everyone)
        self.behind: dict[str, str] = {}
        self.unread: set[str] = set()
        self.equivalents = Equivalents()
        self.lock = SharedLock()

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
            if isinstance(store, GraphStore):
                calls += [partial(store.remove_edges, edges_removed)] if edges_removed else []
                calls += [partial(store.add_edges, edges)] if edges else []
            self.tell(name, *calls)

    def tell(self, name: str, *calls: Callable[[], object]) -> None:
        """Have a store take in something; one that fails counts as failed from now on."""
        try:
            for call in calls:
                asked_by(self.lock, call)()
        except Exception as error:
            # Whatever it was: it is written, and the other stores must learn of it.
            self.behind[name] = type(error).__name__

    def graphs(self) -> Iterator[GraphStore]:
        """The graph stores among the stores."""
        for store in self.stores.values():
            if isinstance(store, GraphStore):
                yield store

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
