"""Procedures as a store of `Memory`, so that they stand in one ranking with all other memories."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve

from rankblend.reasonlets._evidence import EVIDENCE, STORE, counts_evidence
from rankblend.reasonlets._sync import LoopThread
from rankblend.recall import Memory
from rankblend.stores import Key, LayerPolicy, Observation, Reason, Record, StoreQuery
from rankblend.stores.procedures import LAYER, Candidate, Entry, ReasonletStore
from rankblend.stores.vectors import VectorStore


class ProcedureStore:
    """What a `ReasonletStore` knows, told to a `Memory`: cosine, runs, and the age of the last run.

    A memory shows what its catalog holds, so each active procedure is referred to there, by a
    memory of the layer ``procedure`` with its id, whose text is the tools, the version and the id
    (nobody's words); `publish` keeps them so. The vector and the counts stay where the procedures
    are and are read from there. With `ProcedureStore.layers` nothing else contributes: similarity,
    success rate and freshness are present, all other signals are absent. What is no longer active
    is neither proposed nor observed.

    Args:
        store: Where the procedures are; not closed with this one. Where it is the file of the
            memory itself, what refers to a procedure is erased with it.

    Example:
        >>> from rankblend.recall import default_stores
        >>> from rankblend.reasonlets import InMemoryReasonletStore
        >>> procedures = ProcedureStore(InMemoryReasonletStore())
        >>> with Memory.open(
        ...     ":memory:", stores=[*default_stores(), procedures], layers=ProcedureStore.layers
        ... ) as memory:
        ...     procedures.publish(memory)
        (0, 0)
    """

    name = STORE
    emits: tuple[str, ...] = ("cosine", *EVIDENCE)
    layers = {LAYER: LayerPolicy(permitted={f"{STORE}.{name}" for name in ("cosine", *EVIDENCE)})}  # noqa: RUF012

    def __init__(self, store: ReasonletStore) -> None:
        self._store = store
        self._held = VectorStore(name=STORE)
        self._keys: set[Key] = set()
        self._loop = LoopThread()

    def __len__(self) -> int:
        """How many procedures the memory refers to."""
        return len(self._keys)

    def publish(self, memory: Memory) -> tuple[int, int]:
        """Refer to the active procedures in the memory this store belongs to, and to no others.

        Returns:
            How many were added, and how many were forgotten.
        """
        len(memory)  # sees what others wrote: what was erased with its procedure is not there now
        active = {Key(each.reasonlet.scope, each.reasonlet.id): each for each in self._active()}
        gone = sorted(self._keys - active.keys())
        new = [active[key] for key in sorted(active.keys() - self._keys)]
        for key in gone:
            memory.forget(key.id, scope=key.scope)
        memory.remember_many(
            (
                {
                    "id": each.reasonlet.id,
                    "scope": each.reasonlet.scope,
                    "layer": LAYER,
                    # Its own text for each: procedures of one name are no duplicates of another.
                    "text": f"{_tools(each)}\n{each.reasonlet.version} {each.reasonlet.id}",
                    "at": each.reasonlet.created,
                    "metadata": {
                        "intent": each.reasonlet.intent,
                        "version": each.reasonlet.version,
                    },
                }
                for each in new
            ),
            embed=False,
        )
        return len(new), len(gone)

    def add(self, records: Sequence[Record]) -> None:
        """Keep the procedures among the memories, with the vectors of their questions."""
        ours = [record for record in records if record.layer == LAYER]
        if not ours:
            return
        vectors = {Key(e.reasonlet.scope, e.reasonlet.id): e.vector for e in self._active()}
        lengths = {len(vector) for vector in vectors.values()}
        if self._held.dimension is not None and self._held.dimension not in lengths:
            self._held = VectorStore(name=STORE)  # all were embedded anew, and come again
        self._held.add([evolve(record, vector=vectors.get(record.key)) for record in ours])
        self._keys.update(record.key for record in ours)

    def remove(self, keys: Sequence[Key]) -> None:
        """Drop them."""
        self._held.remove(keys)
        self._keys.difference_update(keys)

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> list[str]:
        """The nearest procedures that are still active."""
        asked = limit
        while True:
            nearest = self._held.propose(query, asked, level=level)
            active = self._lookup(nearest)
            found = [id_ for id_, each in zip(nearest, active, strict=True) if each is not None]
            if len(found) >= limit or len(nearest) < asked:
                return found[:limit]
            asked *= 2

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        """The cosine with each procedure, its counts and its parent's, the age of its last run."""
        seen = self._held.observe(query, ids)
        held = seen.reason("cosine") != Reason.UNKNOWN
        there = [id_ for id_, is_held in zip(ids, held, strict=True) if is_held]
        active = dict(zip(there, self._lookup(there), strict=True))
        known = [active.get(id_) for id_ in ids]
        missing = np.array([each is None for each in known], np.bool_)
        counts = counts_evidence(known, query.now)
        columns = {"cosine": seen.columns["cosine"].copy()}
        columns |= {name: counts[at].copy() for at, name in enumerate(EVIDENCE)}
        columns["cosine"][missing] = np.nan
        reasons = {}
        for name, values in columns.items():
            absent = np.where(missing, Reason.UNKNOWN, Reason.NOT_APPLICABLE)
            reasons[name] = np.where(np.isnan(values), absent, Reason.PRESENT).astype(np.int8)
        return Observation(columns, reasons)

    def close(self) -> None:
        """Let go of the procedures; closing twice is harmless."""
        self._held.close()
        self._loop.close()

    def _active(self) -> list[Entry]:
        entries = self._loop.run(self._store.dump())
        return [entry for entry in entries if entry.reasonlet.status == "active"]

    def _lookup(self, ids: Sequence[str]) -> Sequence[Candidate | None]:
        return self._loop.run(self._store.lookup(list(ids))) if ids else ()


def _tools(entry: Entry) -> str:
    """Its tools in the order written: not its name, which may be somebody's question."""
    return " → ".join(node.tool for node in entry.reasonlet.graph.nodes if node.tool) or LAYER
