"""What holds of measures, tests and plans whatever the numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import rankblend as rb
from rankblend.experiment.inference import (
    bootstrap_intervals,
    group_units,
    holm,
    sign_flip_test,
    wins_ties_losses,
)
from rankblend.experiment.measures import Judgments, parse_measure
from rankblend.experiment.plans import profile_differences, revise

NAMES = ["nDCG@5", "R@5", "P@5", "RR", "AP", "Success@3", "Judged@5", "nDCG(dcg='exp-log2')@5"]
GRADES = st.dictionaries(
    st.sampled_from([f"d{i}" for i in range(12)]), st.sampled_from([0.0, 1.0, 2.0, 3.0]), min_size=1
)
RANKING = st.lists(st.sampled_from([f"d{i}" for i in range(12)]), unique=True, max_size=12)
DIFFERENCES = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 4), st.integers(2, 9)),
    elements=st.sampled_from([-1.0, -0.25, 0.0, 0.1, 0.5, 1.0]),
)  # fmt: skip


def _values(name, grades, ranking):
    judgments = Judgments.of({"q": grades})
    found = judgments.look_up([ranking])
    return float(parse_measure(name).of_grades(found.grades, judgments, returned=found.returned)[0])


@given(grades=GRADES, ranking=RANKING, name=st.sampled_from(NAMES))
def test_measures_when_whatever_is_returned_then_between_zero_and_one(grades, ranking, name):
    assert 0.0 <= _values(name, grades, ranking) <= 1.0 + 1e-12


@given(grades=GRADES, name=st.sampled_from(NAMES[:6]))
def test_measures_when_best_come_first_then_no_ranking_does_better(grades, name):
    ideal = sorted(grades, key=lambda i: -grades[i])
    best = _values(name, grades, ideal)
    assert best >= _values(name, grades, ideal[::-1]) - 1e-12
    if name.startswith(("nDCG", "RR", "AP")) and max(grades.values()) > 0:
        assert abs(best - 1.0) < 1e-12


@given(grades=GRADES, ranking=RANKING, name=st.sampled_from(NAMES[:6]))
def test_measures_when_unjudged_come_last_then_nothing_changes(grades, ranking, name):
    longer = [*ranking, "unjudged1", "unjudged2"]
    assert _values(name, grades, longer) == _values(name, grades, ranking)


@given(rows=DIFFERENCES, data=st.data())
def test_sign_flips_when_tested_then_p_is_never_zero_and_family_wise_never_smaller(rows, data):
    queries = rows.shape[1]
    clusters = data.draw(st.lists(st.sampled_from("abc"), min_size=queries, max_size=queries))
    units = group_units(queries, clusters)
    test = sign_flip_test(rows, units, resamples=200)
    assert (test.p >= test.smallest).all()
    assert (test.p_family >= test.p).all()
    assert (test.p_family <= 1.0).all()
    mirrored = sign_flip_test(-rows, units, resamples=200)
    assert mirrored.p.tolist() == test.p.tolist()
    scaled = sign_flip_test(rows * 4.0, units, resamples=200)  # a power of two: the same bits
    assert scaled.p_family.tolist() == test.p_family.tolist()


@given(rows=DIFFERENCES)
def test_intervals_when_all_signs_change_then_mirrored(rows):
    units = group_units(rows.shape[1])
    plus = bootstrap_intervals(rows, units, resamples=200)
    minus = bootstrap_intervals(-rows, units, resamples=200)
    for one, other in zip(plus, minus, strict=True):
        assert one.low <= one.high
        np.testing.assert_allclose([one.low, one.high], [-other.high, -other.low], atol=1e-12)


@given(rows=DIFFERENCES)
def test_counts_when_added_then_every_query_once(rows):
    assert (wins_ties_losses(rows).sum(axis=1) == rows.shape[1]).all()


@given(p=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12))
def test_holm_when_corrected_then_between_p_and_bonferroni_and_in_the_same_order(p):
    values, corrected = np.array(p), holm(p)
    assert (corrected >= values).all()
    assert (corrected <= np.minimum(values * len(p), 1.0) + 1e-15).all()
    order = np.argsort(values, kind="stable")
    assert (np.diff(corrected[order]) >= 0.0).all()


@given(
    name=st.sampled_from(rb.profile_names()),
    changes=st.dictionaries(
        st.sampled_from(["pool.size", "scope.half_life_levels", "select.top"]),
        st.sampled_from([1, 2, 3]),
    ),
)
def test_differences_when_values_are_changed_then_just_the_paths_that_changed(name, changes):
    profile = rb.load_profile(name)
    found = profile_differences(profile, revise(profile, changes))
    assert set(found) <= set(changes)
    assert bool(found) == (profile.hash != revise(profile, changes).hash)
