"""``rankblend evidence``: list, show, withdraw."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from rankblend.rerank import EvidenceLedger, FamilyEffect, ReleaseEvidence


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "ledger"


@pytest.fixture
def identifier(ledger):
    return EvidenceLedger(ledger).add(
        ReleaseEvidence(
            feature="reranking", name="relevance-rerank@1", profile_hash="a" * 64,
            signal_schema_hash="b" * 64, scoring_version=1, dataset="locomo [x]",
            dataset_hash="c" * 64, metric="nDCG@10", queries=1536, clusters=10, effect=0.05,
            low=0.02, high=0.08, p=0.004, overhead=0.03,
            families=[FamilyEffect(family="temporal", queries=300, effect=-0.1, low=-0.2, high=-0.05)],
            measured=datetime(2026, 5, 1, tzinfo=UTC), expires=datetime(2027, 5, 1, tzinfo=UTC),
        )
    )  # fmt: skip


def test_empty_ledger_says_so(rankblend, ledger):
    assert "no evidence in" in rankblend("evidence", "list", "--ledger", str(ledger)).out


def test_list_shows_effect_and_state(rankblend, ledger, identifier):
    result = rankblend("evidence", "list", "--ledger", str(ledger))
    assert identifier in result.out
    assert "+0.0500 [+0.0200, +0.0800]" in result.out
    assert "locomo [x]" in result.out
    assert "insufficient" in result.out


def test_list_as_json_is_machine_readable(rankblend, ledger, identifier):
    listed = json.loads(rankblend("evidence", "list", "--ledger", str(ledger), "--json").out)
    assert listed[0]["id"] == identifier
    assert listed[0]["withdrawn"] is None
    assert len(listed[0]["refusals"]) == 1


def test_show_tells_what_speaks_against_it(rankblend, ledger, identifier):
    out = rankblend("evidence", "show", identifier, "--ledger", str(ledger)).out
    assert "against it: family 'temporal' is worse" in out
    assert "1,536 queries in 10 clusters" in out


def test_withdraw_is_seen_by_list_and_show(rankblend, ledger, identifier):
    done = rankblend(
        "evidence", "withdraw", identifier, "--ledger", str(ledger), "--reason", "a regression"
    )
    assert done.code == 0
    for command in (["list"], ["show", identifier]):
        assert "withdrawn: a regression" in rankblend(
            "evidence", *command, "--ledger", str(ledger)
        ).out.replace("\n", " ")


def test_unknown_evidence_is_one_line_and_exit_2(rankblend, ledger):
    result = rankblend("evidence", "show", "0123", "--ledger", str(ledger))
    assert result.code == 2
    assert len(result.errors) == 1


def test_edited_evidence_is_told_and_not_listed(rankblend, ledger, identifier):
    path = ledger / f"{identifier}.evidence.json"
    path.write_text(path.read_text().replace("0.004", "0.001"))
    result = rankblend("evidence", "list", "--ledger", str(ledger))
    assert "was changed after it was written" in result.err
    assert "no evidence in" in result.out
