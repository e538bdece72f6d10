"""Laws of profiles: what is written reads back, and nothing read can break the reader."""

from __future__ import annotations

import datetime
import pickle
import tomllib
from collections.abc import Callable
from importlib import resources
from typing import Any

import tomli_w
from attrs import evolve
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rankblend.errors import ProfileError, UnknownNameError
from rankblend.profiles import (
    Floor,
    Floors,
    Pool,
    RankingProfile,
    Select,
    SignalRecipe,
    dump_profile,
    load_profile,
    profile_names,
    read_profile,
)
from rankblend.relevance import (
    CurveStep,
    Evidence,
    Neutral,
    Node,
    Renormalize,
    Require,
    Required,
    ScopeBlend,
    Shrink,
    Zero,
)

UNIT = st.floats(0.0, 1.0)
POSITIVE = st.floats(1e-300, 1e300)
WEIGHT = st.floats(0.0, 1e6) | st.integers(0, 10)
PRESETS = {
    name: (resources.files("rankblend.profiles") / "presets" / f"{name}.toml").read_text("utf-8")
    for name in profile_names()
}


def step(name: str, **params: st.SearchStrategy[float]) -> st.SearchStrategy[CurveStep]:
    return st.builds(lambda given: CurveStep(name, given), st.fixed_dictionaries(params))


# Curves with what they read; the last ones are relative to the pool.
RECIPES = st.one_of(
    st.builds(SignalRecipe, st.just(("salience",)), merge=st.sampled_from(["strongest", "error"])),
    st.builds(SignalRecipe, st.just(("vectors.cosine",)), curve=st.tuples(step("clip"))),
    st.builds(
        SignalRecipe,
        st.sampled_from([("age_used",), ("activity.age_created",)]),
        curve=st.tuples(
            step("half_life", seconds=POSITIVE) | step("linear", seconds=POSITIVE, floor=UNIT)
        ),
    ),
    st.builds(
        SignalRecipe,
        st.just(("stars",)),
        curve=st.tuples(step("saturation", c=POSITIVE), step("power", p=POSITIVE)),
    ),
    st.builds(SignalRecipe, st.just(("uses",)), curve=st.tuples(step("log_saturation", n_max=POSITIVE))),
    st.builds(
        SignalRecipe,
        st.just(("rerank_score",)),
        curve=st.tuples(step("logistic", k=POSITIVE, m=st.floats(-1e6, 1e6))),
    ),
    st.builds(
        SignalRecipe,
        st.just(("runs", "successes", "judged_runs", "judged_successes")),
        curve=st.tuples(step("smoothed_rate", prior_weight=POSITIVE, agent_verdict_weight=UNIT)),
    ),
    st.builds(
        SignalRecipe,
        st.just(("bm25",)),
        curve=st.sampled_from(["over_max", "min_max", "rank", "z_logistic"]).map(
            lambda name: (CurveStep(name),)
        ),
    ),
)  # fmt: skip
OVERRIDES = st.builds(Neutral, UNIT) | st.just(Zero()) | st.just(Required())
POLICIES = (
    st.just(Renormalize()) | st.just(Zero()) | st.builds(Neutral, UNIT) | st.builds(Require, UNIT)
)
SHRINK = st.builds(Shrink, UNIT, st.floats(0, 1e6))


@st.composite
def nodes(draw: st.DrawFn, names: list[str]) -> Node:
    compose = draw(
        st.sampled_from(
            ["weighted_mean", "weighted_sum", "comb_mnz", "strongest", "geometric_mean", "boosted",
             "reciprocal_rank_fusion"]
        )
    )  # fmt: skip
    inputs = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
    weights: dict[str, float] = {name: draw(st.just(1) | WEIGHT) for name in inputs}
    options: dict[str, Any] = {}
    if compose == "boosted":
        weights = {name: draw(st.floats(0.001, 1.999)) for name in inputs}
        options["base"] = draw(st.sampled_from(inputs))
    if compose == "reciprocal_rank_fusion":
        options["k"] = draw(POSITIVE)
        rule = st.sampled_from(["positive", "present", *names])
        options["members"] = draw(
            st.sampled_from(["positive", "present"])
            | st.dictionaries(st.sampled_from(inputs), rule)
        )
    additive = compose in ("weighted_mean", "weighted_sum", "comb_mnz", "reciprocal_rank_fusion")
    absent = draw(st.dictionaries(st.sampled_from(inputs), OVERRIDES))
    missing = draw(POLICIES | SHRINK if additive else POLICIES)
    return Node(compose, weights, missing=missing, absent=absent, options=options)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@st.composite
def profiles(draw: st.DrawFn) -> RankingProfile:
    signals = {f"s{at}": draw(RECIPES) for at in range(draw(st.integers(1, 5)))}
    for at in range(draw(st.integers(0, 2))):
        of = draw(st.lists(st.sampled_from(sorted(signals)), min_size=1, max_size=3, unique=True))
        rest = draw(st.just(()) | st.tuples(step("power", p=POSITIVE)))
        curve = (CurveStep("first_present"), *rest)
        signals[f"f{at}"] = SignalRecipe(of=tuple(of), curve=curve)
    names = sorted(signals)
    nested: dict[str, Node] = {}
    for at in range(draw(st.integers(0, 3))):
        nested[f"n{at}"] = draw(nodes([*names, *nested]))
    rerank = draw(st.none() | nodes([*names, *nested]))
    size = draw(st.integers(1, 1000))
    profile = RankingProfile(
        draw(st.text("abc é-.\"'\\", min_size=1, max_size=20).filter(str.strip)),
        draw(nodes([*names, *nested])),
        source=draw(TEXT),
        pool=Pool(size, size + draw(st.integers(0, 1000))),
        signals=signals,
        evidence={
            "stars": Evidence("stars", "score", 0.0, draw(st.sampled_from([5.0, float("inf")])))
        },
        nodes=nested,
        rerank=rerank,
        reranking=draw(st.sampled_from(["baseline", "relevance"])) if rerank else "baseline",
        scope=draw(
            st.builds(ScopeBlend, st.sampled_from(["off", "blend", "backfill"]), POSITIVE, UNIT)
        ),
        ties=draw(st.lists(st.sampled_from(names), unique=True)),
        select=draw(
            st.builds(
                Select,
                st.none() | st.integers(0, 100),
                st.none() | st.integers(0, 10**6),
                UNIT,
                UNIT,
            )
        ),
    )
    absolute = [name for name in names if name not in profile.batch_relative]
    floor = st.builds(Floor, UNIT, st.sampled_from(["pass", "drop"]))
    floored = draw(st.dictionaries(st.sampled_from(absolute), floor)) if absolute else {}
    return evolve(profile, floors=Floors(signals=floored))


@given(profiles())
@settings(max_examples=25)
def test_dump_when_loaded_again_then_is_the_same_profile(profile: RankingProfile) -> None:
    again = read_profile(dump_profile(profile))
    assert again == profile
    assert again.hash == profile.hash
    assert dump_profile(again) == dump_profile(profile)
    assert pickle.loads(pickle.dumps(profile)).hash == profile.hash


@given(profiles())
@settings(max_examples=15)
def test_describe_when_a_profile_is_read_then_every_value_has_an_origin(
    profile: RankingProfile,
) -> None:
    rows = read_profile(dump_profile(profile), name="f.toml").describe()
    assert len({row.path for row in rows}) == len(rows)
    assert {row.origin for row in rows} <= {"f.toml", "built-in"}
    # A dumped profile writes all but what says nothing.
    assert all(
        row.value is None or row.value in ([], {}) for row in rows if row.origin == "built-in"
    )


@given(profiles(), st.data())
@settings(max_examples=15)
def test_hash_when_a_weight_changes_then_is_another_and_back_the_same(
    profile: RankingProfile, data: st.DataObject
) -> None:
    name, weight = data.draw(st.sampled_from(profile.score.weights))
    other = data.draw(st.floats(0.001, 1.999))
    assume(other != weight)
    changed = profile.with_weights({name: other})
    assert changed.hash != profile.hash
    assert changed.with_weights({name: weight}).hash == profile.hash


@given(profiles(), st.randoms(use_true_random=False))
@settings(max_examples=15)
def test_hash_when_tables_are_shuffled_then_is_the_same(
    profile: RankingProfile, random: Any
) -> None:
    def shuffled(table: dict[str, Any], path: str = "") -> dict[str, Any]:
        keys = list(table)
        if path != "weights":  # their order is the order of the sums
            random.shuffle(keys)
        return {
            key: shuffled(table[key], key) if isinstance(table[key], dict) else table[key]
            for key in keys
        }

    text = tomli_w.dumps(shuffled(tomllib.loads(dump_profile(profile))))
    assert read_profile(text).hash == profile.hash


@given(profile=profiles())
@settings(max_examples=15)
def test_extends_when_an_empty_child_extends_a_profile_then_it_ranks_the_same(
    profile: RankingProfile, tmp_path_factory: Any
) -> None:
    folder = tmp_path_factory.mktemp("extends")
    (folder / "base.toml").write_text(dump_profile(profile), encoding="utf-8")
    (folder / "child.toml").write_text('extends = ["base.toml"]\n', encoding="utf-8")
    child = load_profile(folder / "child.toml")
    assert child.hash == profile.hash
    assert set(child.origins.values()) <= {"base.toml", "built-in"}


ODD = st.recursive(
    st.none().map(lambda _: {})
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | TEXT
    | st.just(datetime.date(2026, 1, 1))
    | st.sampled_from(["cosine", "clip", "salience", "similarity", "score", "weighted_mean", "zero"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["a", "similarity", "half_life", "days", "min", "x y"]) | TEXT,
                      inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(st.sampled_from(sorted(PRESETS)), st.data())
@settings(max_examples=100)
def test_read_when_a_value_of_a_preset_is_replaced_by_anything_then_only_profile_errors(
    name: str, data: st.DataObject
) -> None:
    tables = tomllib.loads(PRESETS[name])
    for _ in range(data.draw(st.integers(1, 3))):
        table = tables
        while True:
            key = data.draw(st.sampled_from([*sorted(table), "new"]))
            deeper = isinstance(table.get(key), dict) and table[key]
            if not deeper or data.draw(st.integers(0, 3)) == 0:
                break
            table = table[key]
        if data.draw(st.booleans()) and key in table and len(table) > 1:
            del table[key]
        else:
            table[key] = data.draw(ODD)
    assert_only_profile_errors(tomli_w.dumps(tables))


@given(st.sampled_from(sorted(PRESETS)), st.data())
@settings(max_examples=100)
def test_read_when_the_text_of_a_preset_is_mangled_then_only_profile_errors(
    name: str, data: st.DataObject
) -> None:
    text = PRESETS[name]
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 12)))
        inserted = data.draw(
            st.text(max_size=6)
            | st.sampled_from(["nan", "[", "]]", "{", "=", '"', "1e999", "\n", "true"])
        )
        text = text[:start] + inserted + text[end:]
    assert_only_profile_errors(text)


@given(st.text(max_size=200))
def test_read_when_given_any_text_then_only_profile_errors(text: str) -> None:
    assert_only_profile_errors(text)


@given(content=st.binary(max_size=200))
@settings(max_examples=50)
def test_load_when_given_any_bytes_then_only_profile_errors(
    content: bytes, tmp_path_factory: Any
) -> None:
    path = tmp_path_factory.mktemp("bytes") / "any.toml"
    path.write_bytes(content)
    assert refused(lambda: load_profile(path)) != []


def assert_only_profile_errors(text: str) -> None:
    """Reads, or refuses with problems of one line each; what reads is a whole profile."""
    found = refused(lambda: read_profile(text))
    if found is None:
        profile = read_profile(text)
        assert read_profile(dump_profile(profile)).hash == profile.hash
    else:
        assert found
        assert len(set(found)) == len(found)


def refused(load: Callable[[], RankingProfile]) -> list[str] | None:
    """The problems, or None when the profile is fine; any other error ends the test."""
    try:
        load()
    except ProfileError as error:
        return list(error.problems)
    except UnknownNameError as error:
        return [str(error)]
    return None
