"""Tests of what a store can do beyond the contract; each is skipped for a store that cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from numpy.typing import NDArray

from rankblend.stores import (
    Edge,
    Key,
    Record,
    ScopedRows,
    Store,
    SupportsCache,
    SupportsEdges,
    SupportsLoad,
    SupportsRebuild,
    SupportsVectors,
    SupportsWalk,
    SupportsWrite,
)
from rankblend.testing._subject import Filled, StoreHooks
from rankblend.testing._worlds import HOME, OTHER_ROOTS, TENANT, home_query, memory, standard_world

_MARKER = "quetzalcoatlus"  # a word that no other memory has
_EDGES = (
    Edge(HOME, "home-x", "user-b"),
    Edge(HOME, "home-m", "home-u", kind="follows", weight=0.5),
    Edge(TENANT, "tenant-m", "home-x"),
)


class HeldContents:
    """What a catalog would hold: all memories by scope and id, and links."""

    def __init__(self, held: Mapping[Key, Record], edges: Sequence[Edge] = ()) -> None:
        self._records = [held[key] for key in sorted(held)]
        self._edges = edges

    def iter_records(self) -> Iterator[Record]:
        """By scope path and id."""
        return iter(self._records)

    def iter_edges(self) -> Iterator[Edge]:
        """In the order given."""
        return iter(self._edges)

    def rows(self) -> ScopedRows:
        """One row for each memory."""
        rows = ScopedRows()
        rows.add([one.key for one in self._records], [one.serial for one in self._records])
        rows.compact()
        return rows

    def linked(self) -> list[Record]:
        """Those with links, and nothing else of them."""
        return [
            Record(one.key, "", one.serial, links=one.links) for one in self._records if one.links
        ]

    def load_vectors(
        self, serials: NDArray[np.int64], room: Callable[[int], NDArray[np.float32]]
    ) -> NDArray[np.bool_]:
        """By serial."""
        vectors = {one.serial: one.vector for one in self._records if one.vector is not None}
        has = np.array([serial in vectors for serial in serials.tolist()], np.bool_)
        if vectors:
            matrix = room(len(next(iter(vectors.values()))))
            for row in np.flatnonzero(has).tolist():
                matrix[row] = vectors[int(serials[row])]
        return has


class CapabilityTests(StoreHooks):
    """What a memory makes use of where a store has it: it must change nothing but the cost."""

    def test_load_then_the_store_answers_as_if_everything_had_been_added(self) -> None:
        """`SupportsLoad`: memories, and links for a store that keeps them; and it goes on."""
        self._capable(SupportsLoad)
        query = home_query(self.dimension)
        with self._world(_EDGES) as added, self.filled() as loaded:
            store = loaded.store
            assert isinstance(store, SupportsLoad)
            store.load_contents(HeldContents(added.held, _EDGES))
            loaded.take_over(added)
            self.assert_alike(loaded, added, query)
            assert len(store) == len(added.held)
            for filled in (loaded, added):
                filled.write([memory(HOME, "late", 4, dimension=self.dimension)])
                filled.erase([Key(HOME, "home-x")])
            self.assert_alike(loaded, added, query)

    def test_load_when_there_is_nothing_then_the_store_is_empty(self) -> None:
        """`SupportsLoad` of a memory that was just made."""
        self._capable(SupportsLoad)
        with self.filled() as loaded, self.filled() as empty:
            assert isinstance(loaded.store, SupportsLoad)
            loaded.store.load_contents(HeldContents({}))
            self.assert_alike(loaded, empty, home_query(self.dimension))

    def test_fresh_then_a_store_of_the_same_kind_knows_nothing(self) -> None:
        """`SupportsRebuild`: name and evidence are the same, nothing that is held is shared."""
        self._capable(SupportsRebuild)
        query = home_query(self.dimension)
        with self._world() as filled, self._world() as expected, self.filled() as empty:
            fresh = self._fresh(filled)
            assert (fresh.store.name, fresh.store.emits) == (filled.store.name, filled.store.emits)
            assert isinstance(fresh.store, SupportsWrite)
            assert len(fresh.store) == 0, "a fresh store holds something"
            self.assert_alike(fresh, empty, query)
            fresh.write([memory(HOME, "home-x", 4, number=3, dimension=self.dimension)])
            self.assert_alike(filled, expected, query)

    def test_fresh_when_filled_then_it_answers_as_the_store_does(self) -> None:
        """`SupportsRebuild`: with the same settings, whatever the first one went through."""
        self._capable(SupportsRebuild)
        world = standard_world(self.dimension)
        with self.filled(world) as filled:
            filled.erase([record.key for record in world[::3]])
            fresh = self._fresh(filled)
            fresh.write(list(filled.held.values()))
            self.assert_alike(fresh, filled, home_query(self.dimension))

    def test_cache_when_restored_then_the_store_answers_as_before(self) -> None:
        """`SupportsCache`: in a new store, which then is told what was written since."""
        self._capable(SupportsCache)
        query = home_query(self.dimension)
        with self._world() as filled, self.filled() as restored:
            data = self._snapshot(filled)
            assert isinstance(restored.store, SupportsCache)
            assert restored.store.restore(data), "its own bytes are refused"
            restored.take_over(filled)
            self.assert_alike(restored, filled, query)
            for one in (filled, restored):
                one.erase([Key(HOME, "home-c")])
                one.write([memory(HOME, "late", 4, dimension=self.dimension)])
            self.assert_alike(restored, filled, query)

    def test_cache_when_a_memory_was_removed_then_no_byte_of_it_is_kept(self) -> None:
        """`SupportsCache`: forgotten means gone, in the file, too."""
        self._capable(SupportsCache)
        secret = evolve(memory(HOME, _MARKER, 2, dimension=self.dimension), text=f"{_MARKER} tea")
        with self.filled([*standard_world(self.dimension), secret]) as filled:
            filled.erase([secret.key])
            data = self._snapshot(filled)
            assert _MARKER[:-2].encode() not in data, "a snapshot holds what was removed"

    def test_cache_when_it_is_of_no_use_then_it_is_refused_and_nothing_changes(self) -> None:
        """`SupportsCache`: bytes of somebody else, or none."""
        self._capable(SupportsCache)
        with self._world() as filled, self._world() as expected:
            store = filled.store
            assert isinstance(store, SupportsCache)
            for data in (b"", b"\x00" * 64, b"{}", b"somebody else's bytes " * 20):
                assert not store.restore(data), f"took {data[:12]!r} for a snapshot"
            self.assert_alike(filled, expected, home_query(self.dimension))

    def test_edges_when_removed_then_nothing_of_them_is_left(self) -> None:
        """`SupportsEdges`: as if they had never been; unknown ones are ignored, twice is once."""
        self._capable(SupportsEdges)
        query = home_query(self.dimension)
        with self._world(_EDGES[1:]) as fresh, self._world(_EDGES) as filled:
            store = filled.store
            assert isinstance(store, SupportsEdges)
            store.add_edges(_EDGES[:1])
            assert {edge.identity for edge in store.edges()} == {e.identity for e in _EDGES}
            store.remove_edges([_EDGES[0], Edge(HOME, "nobody", "home-m"), _EDGES[0]])
            self.assert_alike(filled, fresh, query)
            assert {edge.identity for edge in store.edges()} == {e.identity for e in _EDGES[1:]}

    def test_edges_when_they_cannot_be_seen_then_they_play_no_part(self) -> None:
        """`SupportsEdges`: a link belongs to a scope, as a memory does."""
        self._capable(SupportsEdges)
        hidden = [Edge(scope, "home-m", "home-x") for scope in OTHER_ROOTS]
        hidden += [Edge(scope, "home-u", "tenant-m") for scope in OTHER_ROOTS]
        with self._world(_EDGES) as calm, self._world([*_EDGES, *hidden]) as crowded:
            self.assert_alike(crowded, calm, home_query(self.dimension))

    def test_vectors_are_those_of_visible_memories(self) -> None:
        """`SupportsVectors`: float32 of unit length; NaN for the rest, each id by itself."""
        self._capable(SupportsVectors)
        bare = Record(Key(HOME, "bare"), "refund", created=1.0, at=1.0)
        with self.filled([*standard_world(self.dimension), bare]) as filled:
            store, query = filled.store, home_query(self.dimension)
            assert isinstance(store, SupportsVectors)
            assert store.dimension == self.dimension
            visible = filled.visible(query)
            ids = [*visible, "nobody", *(r.id for r in filled.held.values() if "hidden" in r.id)]
            vectors = store.vectors_of(self.ask(query), ids)
            assert vectors.dtype == np.float32, f"{vectors.dtype}, expected float32"
            assert vectors.shape == (len(ids), self.dimension), f"shape {vectors.shape}"
            there = np.isin(ids, visible) & (np.array(ids) != "bare")
            assert np.isnan(vectors[~there]).all(), "a vector of what has none, or is not visible"
            lengths = np.linalg.norm(vectors[there].astype(np.float64), axis=1)
            assert np.allclose(lengths, 1.0, atol=1e-5), "vectors that are not of unit length"
            held = {r.id: r.vector for r in filled.held.values() if r.id in visible}
            given = np.array([held[id_] for id_ in np.array(ids)[there].tolist()])
            assert np.allclose(vectors[there], given, atol=1e-6), "other vectors than were given"
            backwards = store.vectors_of(self.ask(query), ids[::-1])[::-1]
            assert np.array_equal(backwards, vectors, equal_nan=True)

    def test_walk_shows_what_the_query_sees_and_what_cut_it_short(self) -> None:
        """`SupportsWalk`: as networkx, and ``capped`` is always there."""
        self._capable(SupportsWalk)
        hidden = [Edge(scope, "elsewhere", "home-x") for scope in OTHER_ROOTS]
        with self._world([*_EDGES, *hidden]) as filled:
            store, query = filled.store, self.ask(home_query(self.dimension))
            assert isinstance(store, SupportsWalk)
            nodes = set(store.to_networkx(query).nodes)
            assert {"home-x", "user-b"} <= nodes, "links that the query sees are missing"
            assert "elsewhere" not in nodes, "a node that the query cannot see"
            assert not [node for node in nodes if "hidden" in node], "a memory that is not visible"
            assert all(isinstance(cut, str) for cut in store.trace(query)["capped"])

    def _capable(self, capability: Any) -> None:
        store = self.make_store()
        try:
            if not isinstance(store, capability):
                pytest.skip(f"the store has no {capability.__name__}")
        finally:
            store.close()

    def _fresh(self, filled: Filled) -> Filled:
        assert isinstance(filled.store, SupportsRebuild)
        fresh = filled.store.fresh()
        assert isinstance(fresh, Store), "fresh() gives no store"
        return Filled(self, fresh)

    @staticmethod
    def _snapshot(filled: Filled) -> bytes:
        assert isinstance(filled.store, SupportsCache)
        return filled.store.snapshot()

    @contextmanager
    def _world(self, edges: Sequence[Edge] = ()) -> Iterator[Filled]:
        """A store holding the standard world, and some links where it keeps links."""
        with self.filled(standard_world(self.dimension)) as filled:
            if isinstance(filled.store, SupportsEdges):
                filled.store.add_edges(edges)
            yield filled
