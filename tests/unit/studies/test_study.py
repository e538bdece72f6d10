"""Each part of the study and of the reproductions on a tiny slice of real data."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from studies import absence, observing, reproductions, scopes, signals, study, success, weights
from studies.earlier import preset_study
from studies.outcome import Outcome
from studies.replays import measured
from studies.subjects import Subject, few_queries, load_subject, studied_profile

from rankblend.experiment.datasets import load_dataset
from rankblend.experiment.report._report import as_markdown

LIMIT = 5


@pytest.fixture(scope="module")
def data(shared: Path) -> Path:
    pytest.importorskip("pyarrow")
    pytest.importorskip("wordllama")
    return shared / "data"


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def subject(data: Path, work: Path) -> Subject:
    return load_subject("bfcl", "wordllama", data=data, work=work, limit=LIMIT)


def shown(outcome: Outcome) -> str:
    """The tables as text, after a look at what every one of them must say."""
    for section in outcome.sections:
        for table in section.tables:
            assert table.rows
            assert all("not run" not in str(cell) for row in table.rows for cell in row)
    return "\n".join(
        cell for s in outcome.sections for t in s.tables for r in t.shown for cell in r
    )


def test_studied_profile_when_salience_is_left_out_then_default_ranks_the_same(
    subject: Subject,
) -> None:
    import rankblend as rb
    from rankblend.experiment.replay import replay

    results = replay(
        subject.recording, {"studied": studied_profile(), "default": rb.load_profile("default")}
    )
    studied, default = results.values["nDCG@10"]
    assert studied.tolist() == default.tolist()


@pytest.mark.slow
def test_subject_when_recorded_already_then_the_file_is_used_and_another_slice_makes_it_anew(
    data: Path, tmp_path: Path
) -> None:
    def load(limit: int) -> Subject:
        return load_subject("bfcl", "wordllama", data=data, work=tmp_path, limit=limit)

    written = load(2).recording.path.stat().st_mtime_ns
    assert load(2).recording.path.stat().st_mtime_ns == written
    (tmp_path / "bfcl-wordllama.rec").write_bytes(b"rubbish")
    assert len(load(1).recording) == 1


def test_measured_when_asked_again_then_it_is_read_and_a_broken_file_is_made_anew(
    subject: Subject,
) -> None:
    arms = {"studied": studied_profile()}
    first = measured(subject, arms)
    folder = subject.recording.path.with_name("results")
    made = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    again = measured(subject, arms)
    assert again.values["nDCG@10"].tolist() == first.values["nDCG@10"].tolist()
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == made
    measured(subject, arms, top=10)
    assert len(list(folder.iterdir())) == len(made) + 1
    for path in folder.iterdir():
        path.write_text("rubbish", encoding="utf-8")
    assert measured(subject, arms).to_json() == first.to_json()


def test_signal_study_when_run_then_shapley_values_sum_to_the_whole(subject: Subject) -> None:
    outcome = signals.signal_study([subject])
    assert "BFCL memory" in shown(outcome)
    assert len(outcome.findings) == 1
    row = outcome.sections[1].tables[0].rows[0]
    shares = [float(str(cell).split()[0].replace("−", "-")) for cell in row[3:-2]]
    assert sum(shares) == pytest.approx(float(row[2]), abs=0.003)


def test_absence_study_when_run_then_every_condition_has_a_row(subject: Subject) -> None:
    outcome = absence.absence_study([subject])
    assert [row[2] for row in outcome.sections[0].tables[0].rows] == [
        condition.name for condition in absence.CONDITIONS
    ]
    assert len(outcome.claims) == 6


def test_observing_study_when_run_then_every_pool_has_a_row(subject: Subject) -> None:
    outcome = observing.observing_study([subject])
    assert [row[2] for row in outcome.sections[0].tables[0].rows] == list(observing.POOLS)


def test_lone_hits_when_measured_then_about_the_stated_share_has_no_vector(
    subject: Subject,
) -> None:
    outcome = observing.lone_hits_study([subject])
    row = dict(zip(outcome.sections[0].tables[0].columns, outcome.sections[0].tables[0].rows[0],
                   strict=True))  # fmt: skip
    assert 0.15 < float(row["no vector: pool"]) < 0.4


@pytest.mark.slow
def test_scope_study_when_run_then_each_construction_is_there(data: Path, work: Path) -> None:
    outcome = scopes.scope_study(["wordllama"], data=data, work=work, limit=LIMIT, sets=["bfcl"])
    rows = outcome.sections[0].tables[0].rows
    assert [row[2] for row in rows if row[3] == "anywhere"] == [
        "half shared", "all near", "all shared",
    ]  # fmt: skip
    # At one distance a discount changes nothing but the pools.
    near = next(row for row in rows if row[2] == "all near")
    assert near[4] != "–"


def test_weight_study_when_run_then_weights_sum_to_one(subject: Subject) -> None:
    outcome = weights.weight_study([subject])
    rows = outcome.sections[0].tables[1].rows
    assert sum(float(row[3]) for row in rows) == pytest.approx(1.0, abs=0.003)


def test_success_study_when_run_then_the_known_rate_comes_out(data: Path) -> None:
    outcome = success.success_study(data)
    table = outcome.sections[0].tables[0]
    held_out = [row for row in table.rows if row[0] == "each trial held out in turn, all tasks"]
    assert str(held_out[0][2]).startswith(".782 ")
    assert len(table.rows) == 5 * len(success.PREDICTORS)


def test_reproduction_when_run_on_a_slice_then_the_page_compares_it_with_what_was_expected(
    data: Path,
) -> None:
    pytest.importorskip("bm25s")
    whole = load_dataset("bfcl", data / reproductions.SETS["bfcl"])
    found = reproductions.measure_set(few_queries(whole, None), {})
    assert found.values["BM25"] == pytest.approx(0.885, abs=0.0015)
    page = as_markdown(reproductions.reproduction_report([found], []))
    assert "1 of 1 figures agree" in page


def test_study_report_when_made_then_findings_come_first(subject: Subject, data: Path) -> None:
    parts = [signals.signal_study([subject]), success.success_study(data)]
    page = as_markdown(study.study_report(parts, [subject]))
    assert page.startswith("# A study of absence\n\n## Findings\n\n1. ")
    assert "BFCL memory" in page


@pytest.mark.slow
def test_preset_study_when_run_on_locomo_then_all_presets_are_there(data: Path, work: Path) -> None:
    locomo = load_subject("locomo", "wordllama", data=data, work=work, limit=LIMIT)
    outcome = preset_study([locomo])
    assert [row[1] for row in outcome.sections[0].tables[0].rows] == [
        "keyword only", "rrf", "convex", "symfonic", "symfonic, overlap cue",
    ]  # fmt: skip
    assert len(outcome.claims) == 2
