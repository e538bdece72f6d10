"""The grammar of a profile file and everything that can be wrong with one."""

from __future__ import annotations

import pytest

from rankblend.errors import ProfileError
from rankblend.profiles import Floor, Pool, RankingProfile, Select, SignalRecipe, read_profile
from rankblend.relevance import (
    CurveStep,
    Evidence,
    Neutral,
    Node,
    Require,
    Required,
    ScopeBlendMode,
    Shrink,
    Zero,
)

BASE = """
[signals.a]
evidence = "salience"
[signals.b]
evidence = "cosine"
curve = "clip"
[signals.low]
evidence = "bm25"
curve = "min_max"
"""
SCORE = "[score]\nweights = { a = 1, b = 2 }\n"


def problems(text: str) -> list[str]:
    with pytest.raises(ProfileError) as caught:
        read_profile(text)
    return list(caught.value.problems)


def only(text: str) -> str:
    found = problems(text)
    assert len(found) == 1, found
    return found[0]


def test_read_when_everything_is_given_then_every_part_is_as_written() -> None:
    profile = read_profile(
        """
        name = "all"
        source = "here"
        reranking = "relevance"
        [pool]
        size = 10
        max = 20
        [evidence.trust]
        range = [0, 5.0]
        unit = "score"
        natural_zero = true
        relevance = true
        meaning = "stars"
        [signals.trust]
        evidence = "reviews.trust"
        curve = [{ saturation = { c = 2 } }, { power = { p = 0.5 } }]
        merge = "error"
        [signals.age]
        evidence = "age_created"
        curve = { half_life = { hours = 1 } }
        [signals.either]
        of = ["trust", "age"]
        [score]
        weights = { inner = 2, age = 1.5 }
        missing = { require = { coverage = 0.25 } }
        absent = { age = "required", inner = { neutral = 0.5 } }
        weights_must_sum_to = 3.5
        [rerank]
        compose = "reciprocal_rank_fusion"
        k = 10
        members = { age = "present" }
        of = ["age", "trust"]
        [nodes.inner]
        compose = "weighted_sum"
        weights = { either = 1 }
        missing = { shrink = { prior = 0.1, strength = 2 } }
        [floors]
        trust = { min = 0.5, absent = "drop" }
        age = { min = 0 }
        [scope]
        mode = "blend"
        half_life_levels = 2
        floor = 0.25
        [order]
        ties = ["age", "trust"]
        [select]
        top = 0
        max_tokens = 100
        duplicate_penalty = 0.5
        diversity = 1
        """
    )
    assert (profile.name, profile.source, profile.reranking) == ("all", "here", "relevance")
    assert profile.pool == Pool(10, 20)
    assert profile.evidence["trust"] == Evidence("trust", "score", 0.0, 5.0, True, True)
    assert profile.signals["trust"] == SignalRecipe(
        ("reviews.trust",),
        curve=(CurveStep("saturation", {"c": 2}), CurveStep("power", {"p": 0.5})),
        merge="error",
    )
    assert profile.merge == {"trust": "error", "age": "strongest", "either": "strongest"}
    assert profile.signals["age"].curve == (CurveStep("half_life", {"seconds": 3600}),)
    assert profile.signals["either"].of == ("trust", "age")
    assert profile.signals["either"].curve == (CurveStep("first_present"),)
    assert profile.score == Node(
        "weighted_mean",
        {"inner": 2, "age": 1.5},
        missing=Require(0.25),
        absent={"age": Required(), "inner": Neutral(0.5)},
    )
    assert profile.must_sum_to == {"score": 3.5}
    assert profile.rerank == Node(
        "reciprocal_rank_fusion",
        {"age": 1, "trust": 1},
        options={"k": 10, "members": {"age": "present"}},
    )
    assert profile.nodes["inner"].missing == Shrink(0.1, 2)
    assert profile.floors.signals == {"trust": Floor(0.5, "drop"), "age": Floor(0, "pass")}
    assert profile.scope.mode is ScopeBlendMode.BLEND
    assert (profile.scope.half_life_levels, profile.scope.floor) == (2, 0.25)
    assert profile.ties == ("age", "trust")
    assert profile.select == Select(0, 100, 0.5, 1)
    assert profile.evidence_needed == {"reviews.trust", "age_created"}


def test_read_when_little_is_given_then_defaults_hold() -> None:
    profile = read_profile(BASE + SCORE, name="short")
    assert profile == RankingProfile("short", profile.score, signals=profile.signals)
    assert profile.score.missing.__class__.__name__ == "Renormalize"
    assert profile.pool == Pool(100, 500)
    assert profile.scope.mode is ScopeBlendMode.OFF
    assert profile.select == Select(None, None, 0.0, 0.0)


def test_read_when_pool_size_alone_is_large_then_max_follows() -> None:
    assert read_profile(BASE + SCORE + "[pool]\nsize = 800").pool == Pool(800, 800)


@pytest.mark.parametrize(
    "written",
    [
        'curve = { first_present = ["b", "a"] }',
        'curve = [{ first_present = ["b", "a"] }]',
        'of = ["b", "a"]',
        'of = ["b", "a"]\ncurve = "first_present"',
    ],
)
def test_read_when_first_present_is_spelt_in_any_way_then_it_is_one_recipe(written: str) -> None:
    profile = read_profile(f"{BASE}[signals.c]\n{written}\n[score]\nof = ['c']")
    assert profile.signals["c"] == SignalRecipe(of=("b", "a"), curve=(CurveStep("first_present"),))


def test_read_when_first_present_is_followed_by_steps_then_they_apply_after_it() -> None:
    text = f"{BASE}[signals.c]\ncurve = [{{ first_present = ['b', 'a'] }}, 'min_max']\n"
    profile = read_profile(text + "[score]\nof = ['c']")
    assert [step.name for step in profile.signals["c"].curve] == ["first_present", "min_max"]
    assert profile.batch_relative == {"c", "low"}
    assert profile == read_profile(
        f"{BASE}[signals.c]\nof = ['b', 'a']\ncurve = 'min_max'\n[score]\nof = ['c']"
    )


def test_read_when_signals_are_made_of_later_ones_then_they_are_put_in_order() -> None:
    profile = read_profile(f"[signals.z]\nof = ['y']\n[signals.y]\nof = ['a']\n{BASE}{SCORE}")
    order = list(profile.signals)
    assert order.index("a") < order.index("y") < order.index("z")


def test_read_when_there_are_four_mistakes_then_shows_four_lines() -> None:
    with pytest.raises(ProfileError) as caught:
        read_profile(
            """
            [pool]
            sizes = 3
            [signals.cue]
            evidence = "coverage"
            [score]
            compose = "weigthed_mean"
            weights = { cue = "high" }
            [select]
            top = -1
            """,
            name="mine.toml",
        )
    assert str(caught.value).splitlines() == [
        "profile 'mine.toml' has 4 problems:",
        '  pool.sizes: unknown key: did you mean "size"?',
        '  score.weights.cue: expected a number ≥ 0, got "high"',
        '  score.compose: unknown composer "weigthed_mean": did you mean "weighted_mean"?',
        "  select.top: expected a whole number in [0, 1,000,000], got -1",
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (SCORE + "[pool]\nsize = true", "pool.size: expected a whole number in [1, 1,000,000], got true"),
        (SCORE + "[pool]\nsize = 2.0", "pool.size: expected a whole number in [1, 1,000,000], got 2.0"),
        (SCORE + "[pool]\nsize = 9\nmax = 8", "pool.max: expected at least pool.size = 9, got 8"),
        (SCORE + "[pool]\nmax = 0", "pool.max: expected a whole number in [1, 1,000,000], got 0"),
        (SCORE + "pool = 3", "score.pool: unknown key; known: absent, compose, missing, of, weights,"
         " weights_must_sum_to"),
        (SCORE + "[select]\ndiversity = nan", "select.diversity: expected a number in [0, 1], got nan"),
        (SCORE + "[select]\nmax_tokens = 'x'", 'select.max_tokens: expected a whole number ≥ 0, got "x"'),
        (SCORE + "[select]\ntop = 2026-01-01",
         "select.top: expected a whole number in [0, 1,000,000], got a date or time"),
        (SCORE + "[floors]\nmin_score = 1.5", "floors.min_score: expected a number in [0, 1], got 1.5"),
        (SCORE + "[floors]\nmin_score = {}", "floors.min_score: expected a number in [0, 1], got a table"),
        (SCORE + "[floors]\na = 0.5", "floors.a: expected a table, got 0.5"),
        (SCORE + "[floors]\na = {}", "floors.a: expected its least value: min = number"),
        (SCORE + "[floors]\na = { min = 0.1, absent = 'keep' }",
         'floors.a.absent: expected "pass" or "drop", got "keep"'),
        (SCORE + "[floors]\na = { min = 0.1, mni = 2 }",
         'floors.a.mni: unknown key: did you mean "min"?'),
        (SCORE + "[floors]\nc = { min = 0.1 }", 'floors.c: unknown signal "c"; known: a, b, low'),
        (SCORE + "[scope]\nmode = 'backfil'", 'scope.mode: unknown mode "backfil": did you mean "backfill"?'),
        (SCORE + "[scope]\nlevels = 2", "scope.levels: unknown key; known: floor, half_life_levels, mode"),
        (SCORE + "[order]\nties = ['zz']", 'order.ties: unknown signal "zz"; known: a, b, low'),
        (SCORE + "[order]\nties = ['a', 'a']", 'order.ties: "a" is listed twice'),
        (SCORE + "[order]\nties = 'a'", 'order.ties: expected a list of names, got "a"'),
        (SCORE + "[ordre]", 'ordre: unknown key: did you mean "order"?'),
        (SCORE + "[signals.c]\nevidence = 'cosin'",
         'signals.c.evidence: unknown evidence "cosin": did you mean "cosine"?'),
        (SCORE + "[signals.c]\nevidence = 'a b.salience'",
         'signals.c.evidence: expected a name or store.name, got "a b.salience"'),
        (SCORE + "[signals.c]", "signals.c: expected either evidence or the signals it is the first"
         " present of"),
        (SCORE + "[signals.c]\nevidence = 'cosine'",
         "signals.c.curve: identity needs values in [0, 1], cosine lies in [-1, 1]; use clip"),
        (SCORE + "[signals.c]\nof = ['a', 'd']",
         'signals.c.curve: unknown signal "d"; known: a, b, c, low'),
        (SCORE + "[signals.c]\nof = ['c']", "signals.c: is made of itself: c → c"),
        (SCORE + "[signals.c]\nof = ['a']\ncurve = { first_present = ['b'] }",
         "signals.c.of: names the signals a second time, beside the curve"),
        (SCORE + "[signals.c]\nevidence = 'salience'\nmerge = 'sum'",
         'signals.c.merge: expected "strongest" or "error", got "sum"'),
        (SCORE + "[signals.'c-d']\nevidence = 'salience'",
         "signals.c-d: signal names are ASCII letters, digits and _, and start with no digit"),
        (SCORE + "[nodes.a]\nof = ['b']", "nodes.a: is the name of a signal as well; rename one of them"),
        (SCORE + "[nodes.n]\nof = ['n']", "nodes.n: is made of itself: n → n"),
        (SCORE + "[nodes.n]\nof = ['x']", 'nodes.n.of: unknown signal or node "x"; known: a, b, low, n'),
        (SCORE + "[nodes.n]", "nodes.n: expected its inputs: weights = { name = number } or of = [names]"),
        (SCORE + "[nodes.n]\nof = []", "nodes.n.weights: expected at least one input"),
        (SCORE + "[nodes]\nn = 3", "nodes.n: expected a table, got 3"),
        (SCORE + "[nodes.n]\ncompose = 'strongest'\nof = ['a']\nmissing = { shrink = { prior = 0, strength = 1 } }",
         "nodes.n.missing: shrink needs an additive composer, strongest is none"),
        (SCORE + "[nodes.n]\ncompose = 'reciprocal_rank_fusion'\nof = ['a']\nmembers = { a = 'x' }",
         'nodes.n.members: unknown signal or node "x"; known: a, b, low, n'),
        (SCORE + "[nodes.n]\ncompose = 'boosted'\nweights = { a = 1, b = 0.1 }\nbase = 'c'",
         "nodes.n.base: expected one of the inputs: a, b; got \"c\""),
        (SCORE + "[nodes.n]\nof = ['a']\nk = 3",
         "nodes.n.k: unknown key; known: absent, compose, missing, of, weights, weights_must_sum_to"),
        ("[score]\nweights = { a = 1, q = 1 }", 'score.weights.q: unknown signal or node "q"; known: a, b, low'),
        ("[score]\nweights = { a = -1 }", "score.weights.a: expected a number ≥ 0, got -1"),
        ("[score]\nweights = { a = nan }", "score.weights.a: expected a number ≥ 0, got nan"),
        ("[score]\nweights = { a = inf }", "score.weights.a: expected a number ≥ 0, got inf"),
        ("[score]\nweights = { a = true }", "score.weights.a: expected a number ≥ 0, got true"),
        ("[score]\nweights = { a = 1e308, b = 1e308 }", "score.weights: expected a finite sum, got inf"),
        ("[score]\nweights = [1]", "score.weights: expected a table, got a list"),
        ("[score]\ncompose = 3\nof = ['a']", "score.compose: expected the name of a composer, got 3"),
        ("[score]\nof = ['a']\nabsent = { b = 'zero' }", "score.absent.b: expected one of the inputs: a"),
        ("[score]\nof = ['a']\nweights_must_sum_to = 2",
         "score.weights_must_sum_to: expected weights that sum to 2, they sum to 1"),
        ("[score]\nof = ['a']\nweights_must_sum_to = 'one'",
         'score.weights_must_sum_to: expected a number ≥ 0, got "one"'),
        ("", "score: expected a table that says what ranks, it is missing"),
        (SCORE + "[evidence.e]\nrange = [1, 0]",
         "evidence.e.range: expected the least value below the greatest, got 1 and 0"),
        (SCORE + "[evidence.e]\nrange = [-inf, 0]", "evidence.e.range.0: expected a number, got -inf"),
        (SCORE + "[evidence.e]\nrange = 3",
         "evidence.e.range: expected a list of the least and the greatest value, got 3"),
        (SCORE + "[evidence.e]\nunit = 'metres'",
         'evidence.e.unit: expected "ratio" or "seconds" or "count" or "hops" or "score" or "signal",'
         ' got "metres"'),
        (SCORE + "[evidence.e]\nrelevance = 1", "evidence.e.relevance: expected true or false, got 1"),
        (SCORE + "[evidence.cosine]\nrange = [0, 1]",
         "evidence.cosine: is registered with another unit or range; choose another name"),
    ],
)  # fmt: skip
def test_read_when_one_thing_is_wrong_then_is_the_one_line_that_says_it(
    text: str, line: str
) -> None:
    assert only(BASE + text) == line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('name = ""\n', 'name: expected 1 to 100 printable characters, got ""'),
        ("name = 3\n", "name: expected text, got 3"),
        ('source = ["x"]\n', "source: expected text, got a list"),
        ('reranking = "on"\n', 'reranking: expected "baseline" or "relevance", got "on"'),
        (
            'reranking = "relevance"\n',
            'reranking: is "relevance", but there is no [rerank] to replace the score',
        ),
    ],
)
def test_read_when_a_top_level_value_is_wrong_then_says_so(text: str, line: str) -> None:
    assert only(text + BASE + SCORE) == line


def test_read_when_evidence_is_declared_then_a_custom_signal_needs_no_python() -> None:
    profile = read_profile(
        "[evidence.stars]\nunit = 'score'\nrange = [0, inf]\n"
        "[signals.stars]\nevidence = 'shop.stars'\ncurve = { saturation = { c = 3 } }\n"
        "[score]\nof = ['stars']"
    )
    (kind,) = profile.kinds("stars")
    assert (kind.name, kind.high) == ("stars", float("inf"))


def test_read_when_declared_evidence_is_broken_then_its_use_is_no_second_problem() -> None:
    assert only("[evidence.e]\nunit = 'x'\n[signals.e]\nevidence = 'e'\n[score]\nof = ['e']")


def test_read_when_declared_evidence_equals_the_registered_then_is_fine() -> None:
    text = "[evidence.cosine]\nunit = 'ratio'\nrange = [-1, 1]\nrelevance = true\n"
    assert read_profile(BASE + SCORE + text).hash == read_profile(BASE + SCORE).hash


@pytest.mark.parametrize(
    "score",
    [
        "[score]\nof = ['low']",
        "[score]\nof = ['n']\n[nodes.n]\nof = ['c']\n[signals.c]\nof = ['low']",
        "[score]\ncompose = 'reciprocal_rank_fusion'\nof = ['b']",
        "[score]\nof = ['n']\n[nodes.n]\ncompose = 'reciprocal_rank_fusion'\nof = ['b']",
        "[score]\nof = ['b']\n[rerank]\nof = ['low']",
    ],
)
def test_min_score_when_the_score_is_relative_to_the_pool_then_refused(score: str) -> None:
    assert "relative to the pool" in only(f"{BASE}{score}\n[floors]\nmin_score = 0.4")


def test_floor_when_its_signal_is_relative_to_the_pool_then_refused() -> None:
    line = only(BASE + SCORE + "[signals.c]\nof = ['low']\n[floors.c]\nmin = 0.1")
    assert line == "floors.c: the signal is relative to the pool, so a floor on it means nothing"


def test_floor_when_the_score_is_absolute_then_accepted() -> None:
    profile = read_profile(BASE + SCORE + "[floors]\nmin_score = 0.4")
    assert profile.floors.min_score == 0.4


def test_weights_must_sum_when_off_by_a_rounding_then_accepted() -> None:
    text = BASE + "[score]\nweights = { a = 0.1, b = 0.9000000005 }\nweights_must_sum_to = 1\n"
    assert read_profile(text).must_sum_to == {"score": 1}
    assert "they sum to 1.00000001" in only(text.replace("0.9000000005", "0.90000001"))


def test_weights_when_all_are_zero_then_accepted() -> None:
    assert read_profile(BASE + "[score]\nweights = { a = 0 }").score.weights == (("a", 0.0),)


def test_nodes_when_nested_too_deep_then_refused() -> None:
    nodes = "".join(f"[nodes.n{n}]\nof = ['n{n + 1}']\n" for n in range(40))
    line = only(f"{BASE}[score]\nof = ['n0']\n{nodes}[nodes.n40]\nof = ['a']\n")
    assert line == "nodes: are nested deeper than 32 levels"


def test_overrides_when_given_then_read() -> None:
    profile = read_profile(BASE + "[score]\nof = ['a']\nmissing = 'zero'\nabsent = { a = 'zero' }")
    assert profile.score.missing == Zero()
    assert profile.score.absent == (("a", Zero()),)
