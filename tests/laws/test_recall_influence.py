"""What a query may not see has no influence on its answer: not one bit, whatever the recipe.

The same questions are asked before and after hundreds of memories arrive at scopes that are not
seen, made to get in the way: the words, ids, vectors and links of what is seen, and the highest
salience. Only words of one's own tenant may count, and only where statistics are taken over it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import rankblend as rb
from rankblend.testing import hashed_embedder

sys.path.insert(0, str(Path(__file__).parent))
from isolation_world import HOME, IDS, SCOPES, STRANGERS

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ASKED = HOME[2]
INVISIBLE = tuple(scope for scope in SCOPES if ASKED.distance(scope) < 0)
TEXTS = ("refund order policy", "refund of Ana", "tea for two", "order tea refund tea")
QUERIES = ("refund order", "Ana", "tea x", "")
PRESETS = tuple(map(rb.load_profile, rb.profile_names()))
PROFILES = (
    *PRESETS,
    *(evolve(PRESETS[rb.profile_names().index("default")], scope=rb.ScopeBlend(mode))
      for mode in ("blend", "backfill")),
)  # fmt: skip


def opened(statistics: str) -> rb.Memory:
    """Twelve memories that are seen from the deepest scope, four at each level."""
    memory = rb.Memory.open(
        ":memory:", embedder=hashed_embedder(8), clock=lambda: NOW, statistics=statistics
    )
    for level, scope in enumerate(ASKED.ancestors()):
        memory.remember_many(
            {"text": text, "scope": scope, "id": f"{IDS[n]}{level}", "links": [f"x{level}", "Ana"],
             "salience": n / 8}
            for n, text in enumerate(TEXTS)
        )  # fmt: skip
    return memory


def crowd(memory: rb.Memory, scopes: Iterable[rb.Scope]) -> None:
    same = rb.Link("x0", kind="equivalent", verified=True)
    memory.remember_many(
        {"text": text, "scope": scope, "id": identifier, "links": [same, "y0", "Ana", "refund"],
         "salience": 1.0, "key": "k"}
        for scope in scopes
        for text, identifier in ((TEXTS[0], "x0"), (f"{TEXTS[3]} Ana", "nobody"), ("refund", "é1"))
    )  # fmt: skip
    for scope in scopes:
        memory.link("x0", "y2", scope=scope, kind="equivalent", verified=True)


def leave(memory: rb.Memory, scopes: Iterable[rb.Scope]) -> None:
    for scope in scopes:
        memory.forget(["x0", "nobody", "é1"], scope=scope)
        memory.unlink("x0", "y2", scope=scope, kind="equivalent")


def answers(memory: rb.Memory, profiles: Iterable[rb.RankingProfile]) -> list[Any]:
    """Everything that can be told of the answers: matches, trace, order, explanations, refusals."""
    told: list[Any] = []
    for profile in profiles:
        for query in QUERIES:
            found = memory.recall(query, scope=ASKED, profile=profile, top=99, seeds=["x0"])
            told.append((profile.name, query, found.plain(), found.trace.sources))
            told.append([found.explain(i).plain() for i in ("x0", "é1", "nobody", "other")])
    return told


@pytest.mark.parametrize(
    ("statistics", "scopes"),
    [
        pytest.param("root", STRANGERS[::7], id="root"),
        pytest.param("visible", INVISIBLE[::7], id="visible"),
        pytest.param("root", STRANGERS, id="root, all", marks=pytest.mark.slow),
        pytest.param("visible", INVISIBLE, id="visible, all", marks=pytest.mark.slow),
    ],
)
def test_answers_when_the_invisible_comes_and_goes_then_not_one_bit_changes(
    statistics: str, scopes: tuple[rb.Scope, ...]
) -> None:
    with opened(statistics) as memory:
        before = answers(memory, PROFILES)
        crowd(memory, scopes)
        assert answers(memory, PROFILES) == before
        leave(memory, scopes)
        assert answers(memory, PROFILES) == before


def test_answers_when_words_do_not_count_then_the_own_tenant_has_no_influence_either() -> None:
    wordless = [profile for profile in PROFILES if "bm25" not in profile.evidence_needed]
    assert len(wordless) >= 5
    with opened("root") as memory:
        before = answers(memory, wordless)
        crowd(memory, INVISIBLE[::3])
        assert answers(memory, wordless) == before


@pytest.mark.parametrize(
    ("statistics", "scopes"),
    [("root", INVISIBLE[::7]), ("store", STRANGERS[::7])],
    ids=["root", "store"],
)
def test_answers_when_statistics_reach_further_then_words_of_others_count(
    statistics: str, scopes: tuple[rb.Scope, ...]
) -> None:
    """What the tests above would not notice, were the crowd no crowd."""
    with opened(statistics) as memory:
        before = answers(memory, PROFILES)
        crowd(memory, scopes)
        assert answers(memory, PROFILES) != before
