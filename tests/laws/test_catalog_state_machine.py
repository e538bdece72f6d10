"""The catalog against a plain model: any sequence of writes, reopening, and a second reader."""

from __future__ import annotations

import math
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from numpy.typing import NDArray

from rankblend.relevance import Scope
from rankblend.stores import Edge, Key, Link, Record, StoreQuery
from rankblend.stores.catalog import Catalog

SCOPES = [Scope.parse(text) for text in ("t:1", "t:1/u:1", "t:1/u:10", "t:10")]
KEYS = [Key(scope, identifier) for scope in SCOPES for identifier in ("a", "b")]
NODES = ["a", "b", "Ada"]

keys = st.sampled_from(KEYS)
times = st.sampled_from([0.0, 1.0, 2.0, 3.0])
drafts = st.builds(
    lambda key, text, at, created, salience, slot, links, metadata, vector: Record(
        key,
        text,
        at=at,
        created=created,
        salience=salience,
        slot=slot,
        links=links,
        metadata=metadata,
        vector=vector,
        layer="semantic" if slot is None else "procedural",
    ),
    keys,
    st.sampled_from(["x", "y", "Y ", "z"]),
    times,
    times,
    st.sampled_from([None, 0.0, 0.5]),
    st.sampled_from([None, "s"]),
    st.sampled_from([(), (Link("b"),), (Link("Ada", "knows", 0.5),)]),
    st.sampled_from([{}, {"lang": "en"}]),
    st.sampled_from([None, (1.0, 0.0), (0.0, 1.0)]).map(
        lambda v: None if v is None else np.array(v, dtype=np.float32)
    ),
)
edges = st.builds(
    Edge,
    st.sampled_from(SCOPES),
    st.sampled_from(NODES),
    st.sampled_from(NODES),
    st.sampled_from(["related", "knows"]),
    st.sampled_from([0.5, 1.0]),
)


def content(record: Record) -> tuple[Any, ...]:
    """What a revision says."""
    vector = None if record.vector is None else tuple(record.vector.tolist())
    return (
        record.text,
        record.at,
        record.salience,
        record.slot,
        record.layer,
        record.links,
        dict(record.metadata),
        vector,
    )


def loaded_vectors(
    catalog: Catalog,
) -> tuple[list[Key], NDArray[np.int64], NDArray[np.float32]]:
    """Keys, serials and vectors, as an index loads them."""
    rows, matrix = catalog.rows(), np.zeros((0, 0), np.float32)

    def room(dimension: int) -> NDArray[np.float32]:
        nonlocal matrix
        matrix = np.zeros((rows.size, dimension), np.float32)
        return matrix

    filled = catalog.load_vectors(rows.serials, room)
    keys = [rows.key(row) for row in np.flatnonzero(filled)]
    return keys, rows.serials[filled], matrix[filled] if filled.any() else matrix


@define
class Memory:
    """One memory of the model: revisions in order of writing, and when it was used."""

    created: float
    revisions: list[Record]
    uses: list[float] = field(factory=list)

    def ordered(self, as_of: float = math.inf) -> list[Record]:
        """Revisions valid at ``as_of`` by valid time, then order of writing."""
        return sorted((r for r in self.revisions if r.at <= as_of), key=lambda r: r.at)

    def image(self, as_of: float = math.inf) -> tuple[Any, ...]:
        """The revision valid at ``as_of`` with everything around it."""
        used = [at for at in self.uses if at <= as_of]
        last = max(used, default=None)
        return (self.created, last, len(used), content(self.ordered(as_of)[-1]))


def image(record: Record) -> tuple[Any, ...]:
    return (record.created, record.used, record.uses, content(record))


class CatalogMachine(RuleBasedStateMachine):
    """A catalog in a file, a reader in a second connection, and what both should say."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "c.db"
        self.catalog = Catalog.open(self.path)
        self.reader = Catalog.open(self.path)
        self.model: dict[Key, Memory] = {}
        self.edges: dict[tuple[str, ...], Edge] = {}
        self.serials: dict[Key, int] = {}
        self.spent: set[int] = set()
        # What somebody who only listens to the reader's changes has.
        self.heard: dict[Key, tuple[Any, ...]] = {}
        self.heard_edges: dict[tuple[str, ...], Edge] = {}

    @rule(batch=st.lists(drafts, max_size=4))
    def put(self, batch: list[Record]) -> None:
        stored = self.catalog.put(batch)
        for draft in batch:
            known = self.model.setdefault(draft.key, Memory(draft.created, []))
            known.revisions.append(draft)
        assert [image(each) for each in stored] == [self.model[d.key].image() for d in batch]
        for each in stored:
            assert self.serials.setdefault(each.key, each.serial) == each.serial
            assert each.serial not in self.spent
        assert len(set(self.serials.values())) == len(self.serials)

    @rule(chosen=st.lists(keys, max_size=3))
    def forget(self, chosen: list[Key]) -> None:
        there = {key for key in chosen if key in self.model}
        assert self.catalog.forget(chosen) == len(there)
        for key in there:
            del self.model[key]
            self.spent.add(self.serials.pop(key))
            self.edges = {
                identity: edge
                for identity, edge in self.edges.items()
                if edge.scope != key.scope or key.id not in (edge.source, edge.target)
            }

    @rule(chosen=st.lists(keys, max_size=3), now=times)
    def reinforce(self, chosen: list[Key], now: float) -> None:
        there = {key for key in chosen if key in self.model}
        assert self.catalog.reinforce(chosen, now) == len(there)
        for key in there:
            self.model[key].uses.append(now)

    @rule(batch=st.lists(edges, max_size=3))
    def add_edges(self, batch: list[Edge]) -> None:
        self.catalog.add_edges(batch)
        self.edges |= {edge.identity: edge for edge in batch}

    @rule(batch=st.lists(edges, max_size=2))
    def remove_edges(self, batch: list[Edge]) -> None:
        there = {edge.identity for edge in batch} & set(self.edges)
        assert self.catalog.remove_edges(batch) == len(there)
        for identity in there:
            del self.edges[identity]

    @rule(compact=st.booleans())
    def reopen(self, compact: bool) -> None:
        if compact:
            self.catalog.save_cache("catalog.columns", dump(self.catalog))
        self.catalog.close()
        self.catalog = Catalog.open(self.path)

    @rule()
    def swap(self) -> None:
        """Let the other connection write, with columns that may be behind."""
        self.listen()
        self.catalog.refresh()
        self.catalog, self.reader = self.reader, self.catalog

    @rule()
    def listen(self) -> None:
        changes = self.reader.refresh()
        assert changes.complete
        for key in changes.removed:
            self.heard.pop(key, None)
        self.heard |= {each.key: image(each) for each in changes.changed}
        for edge in changes.edges_removed:
            self.heard_edges.pop(edge.identity, None)
        self.heard_edges |= {edge.identity: edge for edge in changes.edges}
        assert self.heard == {key: memory.image() for key, memory in self.model.items()}
        assert self.heard_edges == self.edges
        assert columns(self.reader) == columns(self.catalog)

    @rule(as_of=times)
    def look_back(self, as_of: float) -> None:
        found = {each.key: image(each) for each in self.reader.records_at(as_of)}
        assert found == {
            key: memory.image(as_of) for key, memory in self.model.items() if memory.ordered(as_of)
        }

    @rule(key=keys)
    def look_at_revisions(self, key: Key) -> None:
        expected = self.model[key].ordered() if key in self.model else []
        found = self.reader.revisions(key)
        assert [content(each) for each in found] == [content(each) for each in expected]

    @invariant()
    def both_connections_read_what_was_written(self) -> None:
        if not hasattr(self, "catalog"):
            return
        ordered = sorted(self.model, key=lambda key: (key.scope.path, key.id))
        for each in (self.catalog, self.reader):
            found = list(each.iter_records(batch=3))
            assert [record.key for record in found] == ordered
            assert [image(record) for record in found] == [self.model[k].image() for k in ordered]
            assert list(each.iter_edges()) == [self.edges[i] for i in sorted(self.edges)]
        loaded, serials, matrix = loaded_vectors(self.catalog)
        with_vector = [key for key in ordered if self.model[key].ordered()[-1].vector is not None]
        assert loaded == with_vector
        assert serials.tolist() == [self.serials[key] for key in with_vector]
        assert [tuple(row) for row in matrix.tolist()] == [
            content(self.model[key].ordered()[-1])[-1] for key in with_vector
        ]

    @invariant()
    @precondition(lambda self: hasattr(self, "catalog"))
    def columns_agree_with_the_rows(self) -> None:
        assert len(self.catalog) == len(self.model)
        assert columns(self.catalog) == {
            key: (
                self.serials[key],
                memory.created,
                memory.ordered()[-1].at,
                max(memory.uses, default=None),
                float(len(memory.uses)),
                memory.ordered()[-1].salience,
            )
            for key, memory in self.model.items()
        }

    def teardown(self) -> None:
        if hasattr(self, "catalog"):
            self.catalog.close()
            self.reader.close()
            shutil.rmtree(self.folder)


def dump(catalog: Catalog) -> bytes:
    from rankblend.stores.catalog._columns import dump_columns

    return dump_columns(catalog._columns)


def columns(catalog: Catalog) -> dict[Key, tuple[Any, ...]]:
    """What the columns say about every memory, asked as a recall asks."""
    found = {}
    for scope in SCOPES:
        query = StoreQuery("", [scope])
        for identifier, key in zip("ab", catalog.locate(query, ["a", "b"]), strict=True):
            if key is None or key.scope != scope:
                continue
            names = ("created", "at", "used", "uses", "salience")
            facts = catalog.facts(query, [identifier], names)
            values = [float(facts.columns[name][0]) for name in names]
            row = catalog._columns.rows.row(key)
            found[key] = (
                int(catalog._columns.rows.serials[row]),
                *(None if math.isnan(value) else value for value in values),
            )
    return found


TestCatalogMachine = CatalogMachine.TestCase
TestCatalogMachine.settings = settings(max_examples=15, stateful_step_count=25)
