"""Evidence in a folder: what is written stays, what is withdrawn or edited counts for nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime, timedelta

import pytest

from rankblend.errors import EvidenceError, InvalidArgumentError
from rankblend.rerank import EvidenceLedger, EvidencePolicy, FamilyEffect, ReleaseEvidence


def test_evidence_comes_back_as_it_was_written(ledger, evidence_for, profile):
    family = FamilyEffect(family="multi-hop", queries=9, effect=0.1, low=0.0, high=0.2)
    evidence = evidence_for(profile, families=[family])
    identifier = ledger.add(evidence)
    assert ledger.get(identifier).evidence == evidence
    assert ReleaseEvidence.read(json.loads(json.dumps(evidence.plain()))) == evidence
    assert ledger.add(evidence) == identifier
    assert len(ledger.entries()) == 1


def test_ledger_that_does_not_exist_yet_is_empty(tmp_path):
    assert EvidenceLedger(tmp_path / "none").entries() == ()
    assert not (tmp_path / "none").exists()


def test_withdrawal_is_seen_by_another_process_at_once(ledger, evidence_for, profile):
    identifier = ledger.add(evidence_for(profile))
    other = (
        "import sys; from rankblend.rerank import EvidenceLedger;"
        "ledger = EvidenceLedger(sys.argv[1]); print(ledger.get(sys.argv[2]).withdrawn)\n"
        "sys.stdout.flush(); sys.stdin.readline(); print(ledger.get(sys.argv[2]).withdrawn)"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", other, str(ledger.folder), identifier],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stdout is not None
    assert running.stdout.readline() == "None\n"
    ledger.withdraw(identifier, reason="a family regressed")
    assert running.communicate("go on\n")[0] == "a family regressed\n"


def test_withdrawn_evidence_stays_withdrawn_when_added_again(ledger, evidence_for, profile):
    evidence = evidence_for(profile)
    identifier = ledger.add(evidence)
    ledger.withdraw(identifier, reason="wrong")
    ledger.add(evidence)
    assert ledger.get(identifier).withdrawn == "wrong"


def test_edited_evidence_counts_for_nothing_even_at_the_same_size(ledger, evidence_for, profile):
    identifier = ledger.add(evidence_for(profile))
    assert len(ledger.entries()) == 1
    path = ledger.folder / f"{identifier}.evidence.json"
    path.write_text(
        path.read_text().replace("0.05", "0.95").replace('"high": 0.08', '"high": 0.99')
    )
    assert ledger.entries() == ()
    assert ledger.unreadable() == {identifier: "was changed after it was written"}
    with pytest.raises(EvidenceError, match="changed after"):
        ledger.get(identifier)


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format": 9}', '{"format": 1}'])
def test_damaged_file_is_told_and_hides_no_other(content, ledger, evidence_for, profile):
    ledger.add(evidence_for(profile))
    (ledger.folder / "abc.evidence.json").write_text(content)
    assert len(ledger.entries()) == 1
    assert ledger.unreadable() == {"abc": "cannot be read (JSONDecodeError)"} or set(
        ledger.unreadable()
    ) == {"abc"}


def test_damaged_withdrawal_still_withdraws(ledger, evidence_for, profile):
    identifier = ledger.add(evidence_for(profile))
    (ledger.folder / f"{identifier}.withdrawn.json").write_text("{")
    assert ledger.get(identifier).withdrawn == "reason not readable"


def test_unknown_evidence_cannot_be_withdrawn(ledger):
    with pytest.raises(EvidenceError, match="not in this ledger"):
        ledger.withdraw("0123", reason="x")


def test_half_written_file_is_never_read(ledger, evidence_for, profile):
    ledger.add(evidence_for(profile))
    (ledger.folder / ".x.evidence.json.12.34").write_text("{")
    assert len(ledger.entries()) == 1
    assert ledger.unreadable() == {}


def test_evidence_tells_every_problem_at_once(profile, evidence_for):
    with pytest.raises(EvidenceError) as caught:
        evidence_for(
            profile, effect=float("nan"), queries=0, profile_hash="short", dataset="",
            measured=datetime(2026, 1, 1),  # noqa: DTZ001 - the mistake
        )  # fmt: skip
    assert len(caught.value.problems) == 5


@pytest.mark.parametrize(
    "changes",
    [
        {"low": 0.06},
        {"p": 0.0},
        {"overhead": -0.1},
        {"families": [FamilyEffect(family="x", queries=0, effect=0.0, low=0.0, high=0.0)]},
        {"families": [FamilyEffect(family="x", queries=1, effect=2.0, low=0.0, high=1.0)]},
    ],
)
def test_evidence_that_cannot_be_is_refused(changes, profile, evidence_for):
    with pytest.raises(EvidenceError):
        evidence_for(profile, **changes)


def test_evidence_that_expires_before_it_was_measured_is_refused(profile, evidence_for):
    good = evidence_for(profile)
    with pytest.raises(EvidenceError, match="after measured"):
        evidence_for(profile, expires=good.measured - timedelta(seconds=1))


def test_policy_tells_everything_that_speaks_against(profile, evidence_for):
    worse = FamilyEffect(family="temporal", queries=30, effect=-0.1, low=-0.2, high=-0.01)
    unsure = FamilyEffect(family="rare", queries=2, effect=-0.1, low=-0.4, high=0.2)
    evidence = evidence_for(profile, low=-0.01, p=0.5, overhead=0.3, families=[worse, unsure])
    refusals = EvidencePolicy().refusals(evidence)
    assert len(refusals) == 4
    assert "temporal" in refusals[2]
    assert EvidencePolicy().refusals(evidence_for(profile)) == ()


@pytest.mark.parametrize(
    "bounds",
    [{"least_effect": -1}, {"greatest_p": 0}, {"greatest_p": 2}, {"greatest_overhead": -1}],
)
def test_policy_out_of_its_bounds_is_refused(bounds):
    with pytest.raises(InvalidArgumentError, match=next(iter(bounds))):
        EvidencePolicy(**bounds)


def test_second_withdrawal_keeps_the_first_reason_and_names_what_stands(
    ledger, evidence_for, profile
):
    old = ledger.add(evidence_for(profile))
    new = evidence_for(profile, measured=evidence_for(profile).measured + timedelta(hours=1))
    ledger.withdraw(ledger.add(new), reason="first")
    ledger.withdraw(new.id, reason="second")
    assert ledger.get(new.id).withdrawn == "first"
    assert [each.id for each in ledger.standing(new)] == [old]
