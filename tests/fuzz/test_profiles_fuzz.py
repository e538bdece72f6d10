"""Profiles given anything: as text, as tables, as a valid profile changed, as values, for one call."""

from __future__ import annotations

import datetime as dt
import sys
import tomllib
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rankblend as rb
from rankblend.profiles import (
    Floor,
    Floors,
    Pool,
    RankingProfile,
    Select,
    SignalRecipe,
    dump_profile,
    load_profile,
    read_profile,
)
from rankblend.recall import Candidates, EvidenceColumn, rank_candidates
from rankblend.relevance import EVIDENCE
from rankblend.stores import Key, Reason

sys.path.insert(0, str(Path(__file__).parent))
from strategies import anything, mappings, numbers, refused, texts, units

PRESETS = {
    name: (resources.files("rankblend.profiles") / "presets" / f"{name}.toml").read_text("utf-8")
    for name in rb.profile_names()
}
WORDS = st.sampled_from((
    "cosine", "bm25", "salience", "age_updated", "hops", "clip", "identity", "half_life", "days",
    "over_max", "min_max", "saturation", "c", "power", "p", "weighted_mean", "strongest", "boosted",
    "reciprocal_rank_fusion", "k", "members", "base", "renormalize", "neutral", "shrink", "prior",
    "strength", "require", "coverage", "required", "drop", "pass", "off", "blend", "backfill",
    "similarity", "keyword", "score", "weights", "of", "without", "min", "absent", "relevance",
))  # fmt: skip
SECTIONS = (
    "name", "source", "extends", "pool", "signals", "nodes", "score", "rerank", "reranking",
    "floors", "scope", "order", "select", "evidence", "merge",
)  # fmt: skip
LEAF = st.one_of(
    WORDS, units(), st.floats(), st.integers(-3, 300), st.integers(-(2**63), 2**63 - 1),
    st.booleans(), texts(largest=6).filter(lambda text: text.isprintable()), st.just(dt.time(1)),
)  # fmt: skip
TOML = st.recursive(
    LEAF,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=3)),
    max_leaves=5,
)

fuzzed = settings(suppress_health_check=list(HealthCheck))


def check_profile(profile: RankingProfile) -> None:
    """A profile that was read is whole: it can be written, shown, hashed, and it ranks anything."""
    again = read_profile(dump_profile(profile))
    assert (again.hash, again.name) == (profile.hash, profile.name)
    assert len({row.path for row in profile.describe()}) == len(profile.describe())
    rank(profile)


def rank(profile: RankingProfile) -> None:
    """Three memories: one of which everything is known, one of which nothing is, one at its ends."""
    keys = tuple(Key(rb.Scope.parse("tenant:acme"), name) for name in "abc")
    evidence = {}
    for name in {name.rpartition(".")[2] for name in profile.evidence_needed}:
        kind = {**EVIDENCE, **profile.evidence}[name]
        middle = np.clip(1.0, kind.low, kind.high)
        column = np.array([middle, np.nan, max(kind.low, 0.0)])
        reasons = np.where(np.isnan(column), Reason.UNKNOWN, Reason.PRESENT).astype(np.int8)
        evidence[name] = tuple(EvidenceColumn(store, column, reasons) for store in ("one", "two"))
    candidates = Candidates(
        keys, np.array([0, 1, 2]), ("semantic",) * 3, evidence, np.arange(3),
        np.eye(3, dtype=np.float32), np.array([1, 2, 3]),
    )  # fmt: skip
    ranking = rank_candidates(profile, candidates, top=None, node="score")
    assert ((ranking.scores >= 0.0) & (ranking.scores <= 1.0)).all()
    assert ((ranking.rank_scores >= 0.0) & (ranking.rank_scores <= 1.0)).all()
    assert len(set(ranking.shown.tolist())) == len(ranking.shown) <= 3


def check_read(text: str) -> None:
    found: list[RankingProfile] = []
    if not refused(lambda: found.append(read_profile(text))):
        check_profile(found[0])


def check_tables(data: st.DataObject) -> None:
    """Tables made up of the words that profiles use."""
    tables = data.draw(st.dictionaries(st.sampled_from(SECTIONS), TOML, max_size=6))
    if data.draw(st.booleans()):
        tables.setdefault("signals", {"s": {"evidence": "cosine", "curve": "clip"}})
        tables.setdefault("score", {"compose": "weighted_mean", "weights": {"s": 1}})
    check_read(tomli_w.dumps(tables))


def check_mutant(data: st.DataObject) -> None:
    """A preset with a few values replaced, added, removed or moved."""
    tables: dict[str, Any] = tomllib.loads(PRESETS[data.draw(st.sampled_from(sorted(PRESETS)))])
    for _ in range(data.draw(st.integers(1, 3))):
        table = tables
        while True:
            key = data.draw(st.one_of(st.sampled_from(sorted(table) or ["new"]), WORDS))
            inside = table.get(key)
            if not isinstance(inside, dict) or data.draw(st.integers(0, 4)) == 0:
                break
            table = inside
        action = data.draw(st.sampled_from(("replace", "remove", "number", "move")))
        if action == "remove":
            table.pop(key, None)
        elif action == "number":
            table[key] = data.draw(st.one_of(units(), st.floats(), st.integers(0, 10)))
        elif action == "move" and key in table:
            table[data.draw(WORDS)] = table.pop(key)
        else:
            table[key] = data.draw(TOML)
    check_read(tomli_w.dumps(tables))


def check_text(data: st.DataObject) -> None:
    """Any text, or the text of a preset with pieces cut out and put in."""
    text = data.draw(st.one_of(texts(largest=300), st.sampled_from(sorted(PRESETS.values()))))
    for _ in range(data.draw(st.integers(0, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 40)))
        put = data.draw(st.one_of(texts(largest=8), st.sampled_from((
            "nan", "inf", "[" * 500, "{a=" * 100, "=", '"""', "1" * 5000, "0x" + "f" * 17, "\r", "# ",
            "extends = ['default']", "extends = ['../x.toml']", "a.b.c = 1", "[[pool]]",
        ))))  # fmt: skip
        text = text[:start] + put + text[end:]
    check_read(text)


def check_weights(data: st.DataObject) -> None:
    """Weights of one call."""
    profile = load_profile(data.draw(st.sampled_from(sorted(PRESETS))))
    known = [name for name, _ in profile.score.weights]
    known += [f"{node}.{name}" for node in profile.nodes for name, _ in profile.nodes[node].weights]
    weights = data.draw(
        st.one_of(
            st.dictionaries(st.sampled_from(known), st.one_of(st.floats(0, 5), numbers()), max_size=4),
            mappings(numbers()), anything(),
        )
    )  # fmt: skip
    before, found = profile.hash, []
    if not refused(lambda: found.append(profile.with_weights(weights))):
        check_profile(found[0])
        assert found[0].name == profile.name
    assert load_profile(profile.name).hash == before


VALUE = st.one_of(numbers(), texts(), anything())
PART = st.one_of(mappings(), anything())
CALL = st.one_of(numbers(), mappings(numbers()), anything())


def check_values(data: st.DataObject) -> None:
    """Profiles and their parts made in Python."""
    a, b, c, d = (data.draw(VALUE) for _ in range(4))
    calls: list[Callable[[], Any]] = [
        lambda: Pool(a, b),
        lambda: Select(a, b, c, d),
        lambda: Floor(a, b),
        lambda: Floors(a, data.draw(PART)),
        lambda: SignalRecipe((a,), of=(b,), merge=c),
    ]
    for call in calls:
        refused(call)
    profile = load_profile(data.draw(st.sampled_from(sorted(PRESETS))))
    names = ("name", "score", "source", "pool", "signals", "evidence", "nodes", "rerank", "reranking",
             "floors", "scope", "ties", "select", "must_sum_to")  # fmt: skip
    parts = {name: getattr(profile, name) for name in names}
    for name in data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)):
        parts[name] = data.draw(PART)
    made: list[RankingProfile] = []
    if not refused(lambda: made.append(RankingProfile(**parts))):
        check_profile(made[0])


CHECKS = {
    "tables": check_tables, "mutant": check_mutant, "text": check_text, "weights": check_weights,
    "values": check_values,
}  # fmt: skip


@pytest.mark.parametrize("part", CHECKS)
@settings(fuzzed, max_examples=20)
@given(st.data())
def test_profile_when_given_anything_then_refused_or_whole(part: str, data: st.DataObject) -> None:
    CHECKS[part](data)


@pytest.mark.slow
@pytest.mark.parametrize("part", CHECKS)
@settings(fuzzed, max_examples=600)
@given(st.data())
def test_profile_when_given_anything_very_often_then_refused_or_whole(
    part: str, data: st.DataObject
) -> None:
    CHECKS[part](data)


@pytest.mark.parametrize("profile", [5, None, b"default", [], object(), 10**5, "\x00", "a/\x00", "\ud800", "/", "x.toml/"])  # fmt: skip
def test_load_when_it_is_no_profile_then_refused(profile: Any) -> None:
    assert refused(lambda: load_profile(profile))
