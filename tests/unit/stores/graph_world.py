"""The scopes, memories and questions that the tests of the graph store share."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from rankblend.relevance import Scope
from rankblend.stores import Key, Link, Reason, Record, Seed, StoreQuery
from rankblend.stores.graph import GraphStore

ACME = Scope.parse("tenant:acme")
USER = Scope.parse("tenant:acme/user:7")
OTHER = Scope.parse("tenant:acme-corp")


def record(name: str, *links: str | Link, scope: Scope = ACME, serial: int = -1) -> Record:
    targets = tuple(link if isinstance(link, Link) else Link(link) for link in links)
    return Record(Key(scope, name), f"text of {name}", serial=serial, links=targets)


def ask(
    *seeds: str | Seed, text: str = "", scopes: Iterable[Scope] = (USER,), **more: object
) -> StoreQuery:
    given = tuple(seed if isinstance(seed, Seed) else Seed(seed) for seed in seeds)
    return StoreQuery(text, tuple(scopes), seeds=given, **more)  # type: ignore[arg-type]


def evidence(store: GraphStore, query: StoreQuery, name: str, *ids: str) -> list[float]:
    return store.observe(evolve(query, wanted=frozenset({name})), ids).columns[name].tolist()


def reasons(store: GraphStore, query: StoreQuery, name: str, *ids: str) -> list[Reason]:
    return [
        Reason(code)
        for code in store.observe(evolve(query, wanted=frozenset({name})), ids).reason(name)
    ]


def make_chain() -> GraphStore:
    """a – Paris – b – c – Rome – d, and e apart."""
    store = GraphStore()
    store.add(
        [
            record("a", "Paris"), record("b", "Paris", "c"), record("c", "Rome"),
            record("d", "Rome"), record("e"), record("f", "Oslo"),
        ]
    )  # fmt: skip
    return store
