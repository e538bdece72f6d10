"""What the tests of recall share: a memory with a fixed clock, profiles as text, a store that is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import rankblend as rb
from rankblend.stores import Key, Observation, Reason, Record, StoreQuery

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)

# What memories rank by here unless a test says otherwise: the shipped profiles may learn and change.
PLAIN = """
name = "plain"
[signals.keyword]
evidence = "bm25"
curve = { saturation = { c = 6 } }
[signals.similarity]
evidence = "cosine"
curve = "clip"
[signals.proximity]
evidence = "activation"
curve = ["over_max", { power = { p = 0.5 } }]
[signals.salience]
evidence = "salience"
curve = "identity"
[signals.recency]
evidence = "age_updated"
curve = { half_life = { days = 7 } }
[score]
compose = "weighted_mean"
weights = { keyword = 0.7, similarity = 0.3, proximity = 0.25, salience = 0.2 }
[order]
ties = ["salience", "recency"]
"""

Says = Mapping[str, Mapping[str, float]]


class ToldStore:
    """Keeps what is written, and says about it what the test told it to: ``{id: {evidence: value}}``."""

    def __init__(
        self, says: Says, *, emits: Sequence[str], name: str, proposes: Sequence[str]
    ) -> None:
        self.name = name
        self.emits = tuple(emits)
        self.says = says
        self.proposes = tuple(proposes)
        self.records: dict[Key, Record] = {}
        self.closed = 0

    def __len__(self) -> int:
        return len(self.records)

    def add(self, records: Sequence[Record]) -> None:
        self.records.update({record.key: record for record in records})

    def remove(self, keys: Sequence[Key]) -> None:
        for key in keys:
            self.records.pop(key, None)

    def seen(self, query: StoreQuery, identifier: str) -> Record | None:
        held = [r for r in self.records.values() if r.id == identifier and query.admits(r)]
        return min(held, key=lambda r: (query.rank_of_scope(r.scope), r.scope.path), default=None)

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        found = ((i, self.seen(query, i)) for i in self.proposes)
        return [
            identifier
            for identifier, record in found
            if record is not None and level in (None, query.distance(record.scope))
        ][:limit]

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        columns = {name: np.full(len(ids), np.nan) for name in self.emits}
        reasons = {name: np.full(len(ids), Reason.UNKNOWN, np.int8) for name in self.emits}
        for row, identifier in enumerate(ids):
            if self.seen(query, identifier) is None:
                continue
            for name in self.emits:
                columns[name][row] = self.says.get(identifier, {}).get(name, np.nan)
                absent = np.isnan(columns[name][row])
                reasons[name][row] = Reason.NOT_APPLICABLE if absent else Reason.PRESENT
        return Observation(columns, reasons)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def told() -> Callable[..., ToldStore]:
    """Make a store that says what it is told."""

    def make(
        says: Says | None = None,
        *,
        emits: Sequence[str] = ("cosine",),
        name: str = "told",
        proposes: Sequence[str] = (),
    ) -> ToldStore:
        return ToldStore(says or {}, emits=emits, name=name, proposes=proposes)

    return make


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> rb.RankingProfile:
    """The profile of memories that are opened without one."""
    path = tmp_path_factory.mktemp("profiles") / "plain.toml"
    path.write_text(PLAIN, encoding="utf-8")
    return rb.load_profile(path)


@pytest.fixture
def opened(plain: rb.RankingProfile) -> Iterator[Callable[..., rb.Memory]]:
    """Open memories whose clock stands at 2026-03-01 12:00 UTC; they are closed afterwards."""
    memories: list[rb.Memory] = []

    def make(path: str | Path = ":memory:", **options: object) -> rb.Memory:
        memory = rb.Memory.open(path, **{"clock": lambda: NOW, "profile": plain, **options})  # type: ignore[arg-type]
        memories.append(memory)
        return memory

    yield make
    for memory in memories:
        memory.close()


@pytest.fixture
def memory(opened: Callable[..., rb.Memory]) -> rb.Memory:
    """A memory in RAM with the default stores and no embedder."""
    return opened()


@pytest.fixture
def profile(tmp_path: Path) -> Callable[..., rb.RankingProfile]:
    """A profile from TOML text."""

    def make(text: str, name: str = "mine") -> rb.RankingProfile:
        path = tmp_path / f"{name}.toml"
        path.write_text(f'name = "{name}"\n{text}', encoding="utf-8")
        return rb.load_profile(path)

    return make
