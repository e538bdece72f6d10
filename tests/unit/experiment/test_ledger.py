"""The ledger: what was tried, paying for it, held-out queries that confirm once."""

from __future__ import annotations

import multiprocessing
import sqlite3

import numpy as np
import pytest

from rankblend.errors import HeldOutSpentError, InvalidArgumentError, LedgerError
from rankblend.experiment.inference import compare
from rankblend.experiment.ledger import Ledger, QuerySet, split_clusters
from rankblend.experiment.results import Results


def make_results(arms=3, queries=40, *, seed=0, first=0, dataset="toy", start=0, clusters=8):
    generator = np.random.default_rng(seed)
    base = np.random.default_rng(99).random(1_000)[start : start + queries]
    table = base + generator.normal(0.0, 0.1, (arms, queries))
    return Results(
        tuple(f"arm{first + i}" for i in range(arms)),
        tuple(f"{first + i:064x}" for i in range(arms)),
        tuple(f"q{start + i}" for i in range(queries)),
        tuple(f"c{(start + i) // 5 % clusters + 100 * (start // 500)}" for i in range(queries)),
        ("",) * queries, {"nDCG@10": table, "R@10": table / 2}, np.ones(queries, np.bool_),
        np.zeros(table.shape, np.bool_), {}, manifest={"dataset": dataset},
    )  # fmt: skip


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "ledger.db") as opened:
        yield opened


def test_record_when_arms_are_noted_then_each_once_whatever_they_are_called(ledger):
    results = make_results()
    assert ledger.record(results, purpose="ablation") == 6  # 3 arms × 2 measures
    assert ledger.record(results, purpose="again") == 0
    assert ledger.record(make_results(arms=2, first=2, seed=1), purpose="more") == 2
    trials = ledger.trials(results)
    assert len(trials) == 8
    assert {trial.purpose for trial in trials} == {"ablation", "more"}
    assert len(ledger.tried(results).hashes) == 4


def test_record_when_an_arm_did_not_run_then_it_is_not_noted(ledger):
    results = make_results()
    table = results.values["nDCG@10"].copy()
    table[2] = np.nan
    failed = Results(
        results.arms, results.hashes, results.queries, results.clusters, results.families,
        {"nDCG@10": table}, results.judged, results.empty, {"arm2": "failed"},
        manifest=results.manifest,
    )  # fmt: skip
    assert ledger.record(failed, purpose="x") == 2


def test_file_when_opened_again_then_everything_is_there(tmp_path):
    results = make_results()
    with Ledger(tmp_path / "l.db") as first:
        first.record(results, purpose="x")
    with Ledger(tmp_path / "l.db") as second:
        assert len(second.trials()) == 6


def test_tried_when_given_to_compare_then_p_is_that_of_one_large_experiment(ledger):
    everything = make_results(arms=30)
    ledger.record(everything, purpose="many")
    few = everything.pick(["arm0", "arm1"])
    fresh = compare(few, measures="nDCG@10").contrasts[0]
    paid = compare(few, measures="nDCG@10", tried=ledger.tried(few))
    at_once = compare(everything, measures="nDCG@10", baselines="arm0")
    assert paid.tried == 30
    assert paid.contrasts[0].p == at_once.contrasts[0].p > fresh.p


def test_tried_when_queries_come_in_another_order_then_the_same_query_set(ledger):
    results = make_results()
    order = np.random.default_rng(1).permutation(40)
    shuffled = Results(
        results.arms, results.hashes, tuple(results.queries[i] for i in order),
        tuple(results.clusters[i] for i in order), results.families,
        {name: table[:, order] for name, table in results.values.items()}, results.judged,
        results.empty, manifest=results.manifest,
    )  # fmt: skip
    ledger.record(results, purpose="x")
    assert QuerySet.of(shuffled).hash == QuerySet.of(results).hash
    assert ledger.record(shuffled, purpose="x") == 0
    others = [make_results(dataset="other"), make_results(queries=39), make_results(clusters=7)]
    assert len({QuerySet.of(one).hash for one in [results, *others]}) == 4


def test_confirm_when_held_out_then_once_and_with_a_single_test(ledger):
    explored, held = make_results(arms=20), make_results(arms=20, start=500, seed=5)
    ledger.record(explored, purpose="search")
    confirmed = ledger.confirm(held, arm="arm7", baseline="arm0", measure="nDCG@10")
    (row,) = confirmed.contrasts
    assert row.p == row.p_single
    assert confirmed.tried == 20
    again = ledger.confirm(held, arm="arm7", baseline="arm0", measure="nDCG@10")
    assert again.plain() == confirmed.plain()
    with pytest.raises(HeldOutSpentError):
        ledger.confirm(held, arm="arm8", baseline="arm0", measure="nDCG@10")


def test_confirm_when_some_queries_were_looked_at_before_then_refused(ledger):
    ledger.record(make_results(arms=4), purpose="search")
    overlapping = make_results(arms=4, start=30)
    with pytest.raises(HeldOutSpentError) as caught:
        ledger.confirm(overlapping, arm="arm1", baseline="arm0", measure="nDCG@10")
    assert caught.value.profiles == 4
    # The same ids in another data set are other queries.
    elsewhere = make_results(arms=4, start=30, dataset="elsewhere")
    ledger.confirm(elsewhere, arm="arm1", baseline="arm0", measure="nDCG@10")


def test_split_when_clusters_are_divided_then_none_is_on_both_sides():
    clusters = [f"c{i % 10}" for i in range(100)]
    held = split_clusters(clusters, seed=3)
    sides = [{c for c, h in zip(clusters, held, strict=True) if h == side} for side in (0, 1)]
    assert len(sides[0]) == len(sides[1]) == 5
    assert not sides[0] & sides[1]
    assert split_clusters(clusters, held_out=0.01).sum() == 10
    with pytest.raises(InvalidArgumentError):
        split_clusters(["a"] * 5)


def _write(path, first, barrier):
    barrier.wait()
    for number in range(5):
        with Ledger(path) as opened:
            opened.record(make_results(arms=2, first=first + 2 * number, seed=first), purpose="p")


@pytest.mark.slow
def test_record_when_several_processes_write_then_nothing_is_lost(tmp_path):
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(3)
    workers = [
        context.Process(target=_write, args=(tmp_path / "l.db", 100 * i, barrier)) for i in range(3)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    with Ledger(tmp_path / "l.db") as opened:
        assert len(opened.tried(make_results()).hashes) == 30


@pytest.mark.parametrize("content", [b"not a database at all, but long enough" * 9, None])
def test_file_when_it_is_something_else_then_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "other.db"
    if content is None:
        with sqlite3.connect(path) as other:
            other.execute("CREATE TABLE t (x)")
        other.close()
        content = path.read_bytes()
    else:
        path.write_bytes(content)
    with pytest.raises(LedgerError):
        Ledger(path)
    assert path.read_bytes() == content


def test_file_when_a_newer_version_wrote_it_then_refused(tmp_path):
    with Ledger(tmp_path / "l.db"):
        pass
    other = sqlite3.connect(tmp_path / "l.db")
    other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(LedgerError, match="version 99"):
        Ledger(tmp_path / "l.db")
    with pytest.raises(LedgerError):
        Ledger(tmp_path / "no" / "such" / "folder.db")


def test_record_when_interrupted_then_nothing_of_it_is_noted(ledger, monkeypatch):
    results = make_results()
    broken = make_results(arms=2)
    object.__setattr__(broken, "hashes", (broken.hashes[0], object()))
    with pytest.raises(LedgerError):
        ledger.record(broken, purpose="x")
    assert ledger.trials() == ()
    assert ledger.record(results, purpose="x") == 6
