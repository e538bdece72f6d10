"""Nothing but a timely yes lets a reranker serve."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import rankblend as rb
from rankblend.errors import InvalidArgumentError
from rankblend.rerank import (
    AdmissionDecision,
    AdmissionRequest,
    EvidenceAdmission,
    RelevanceReranker,
    StaticAdmission,
    admission_request,
)

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize("admission", [None, True, "yes"])
def test_reranker_without_an_admission_is_refused(admission):
    with pytest.raises(InvalidArgumentError, match="admission: expected a function"):
        RelevanceReranker(admission)


def test_reranker_tells_every_problem_at_once():
    with pytest.raises(InvalidArgumentError) as caught:
        RelevanceReranker(None, timeout=-1)  # type: ignore[arg-type]
    assert len(caught.value.problems) == 2


def test_reranker_needs_its_admission_as_an_argument():
    with pytest.raises(TypeError):
        RelevanceReranker()  # type: ignore[call-arg]


def test_relevance_profile_without_a_reranker_is_the_baseline(world, opened, ask):
    memory = opened(world("semantic", 1))
    assert ask(memory).trace.reranking == "baseline: no reranker was given"
    assert ask(memory).ids == ask(memory, profile="relevance-baseline").ids


def test_baseline_profile_never_asks(world, opened, ask):
    asked: list[AdmissionRequest] = []
    memory = opened(world("semantic", 1), reranker=RelevanceReranker(asked.append))  # type: ignore[arg-type]
    assert ask(memory, profile="relevance-baseline").trace.reranking == "baseline"
    assert asked == []


def test_request_names_everything_that_decides_the_ranking(world, opened, ask, profile):
    asked: list[AdmissionRequest] = []

    def admit(request: AdmissionRequest) -> AdmissionDecision:
        asked.append(request)
        return AdmissionDecision(True)

    memory = opened(world("semantic", 1), reranker=RelevanceReranker(admit))
    ask(memory)
    assert asked == [admission_request(profile)]
    assert asked[0].feature == "reranking"
    assert asked[0].name == "relevance-rerank@1"
    assert asked[0].profile_hash == profile.hash


def test_one_admission_guards_other_features_too():
    def admit(request: AdmissionRequest) -> AdmissionDecision:
        return AdmissionDecision(request.feature == "summaries")

    other = AdmissionRequest(
        feature="summaries", name="x@1", profile_hash="", signal_schema_hash="", scoring_version=1
    )
    assert admit(other).admitted
    assert RelevanceReranker(admit)(rb.load_profile("relevance-rerank")).node == "score"


def _raises(request: AdmissionRequest) -> AdmissionDecision:
    message = "private words of the caller"
    raise RuntimeError(message)


@pytest.mark.parametrize(
    ("admit", "told"),
    [
        (StaticAdmission(False), "baseline: a static admission, for evaluation only"),
        (_raises, "baseline: the admission failed (RuntimeError)"),
        (lambda request: None, "baseline: the admission gave no decision"),
        (lambda request: True, "baseline: the admission gave no decision"),
        (lambda request: AdmissionDecision(False), "baseline: not admitted"),
        (lambda request: AdmissionDecision(False, reason="a\n b" * 99), None),
    ],
)
def test_anything_but_yes_is_the_baseline_with_the_reason(admit, told, world, opened, ask):
    memory = opened(world("lexical", 2), reranker=RelevanceReranker(admit))
    plain = opened(world("lexical", 2))
    recall = ask(memory)
    assert _without_trace(recall) == _without_trace(ask(plain))
    if told is not None:
        assert recall.trace.reranking == told
    assert "\n" not in recall.trace.reranking
    assert len(recall.trace.reranking) < 220
    assert "relevance-rerank@1" not in recall.trace.reranking
    assert recall.trace.evidence == ""


def test_hanging_admission_is_waited_for_once_and_not_asked_again(profile):
    release, calls = threading.Event(), []

    def admit(request: AdmissionRequest) -> AdmissionDecision:
        calls.append(request)
        release.wait()
        return AdmissionDecision(True)

    reranker = RelevanceReranker(admit, timeout=0.01)
    try:
        for _ in range(3):
            serving = reranker(profile)
            assert (serving.node, serving.trace) == (
                "score",
                "baseline: the admission did not answer in time",
            )
        assert len(calls) == 1
    finally:
        release.set()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"profile_hash": "1" * 64}, "no evidence for this profile and version"),
        ({"signal_schema_hash": "1" * 64}, "no evidence for this profile and version"),
        ({"scoring_version": 99}, "no evidence for this profile and version"),
        ({"name": "relevance-rerank@2"}, "no evidence for this profile and version"),
        ({"feature": "summaries"}, "no evidence for this profile and version"),
        ({"expires": NOW}, "the evidence has expired"),
        ({"low": 0.0}, "evidence insufficient: nDCG@10 +0.0500 [+0.0000, +0.0800]"),
        ({"p": 0.2}, "evidence insufficient: family-wise p 0.2000 is above 0.05"),
        ({"overhead": 0.5}, "evidence insufficient: it adds 50% to a recall"),
    ],
)
def test_evidence_admits_only_what_it_was_measured_for(
    changes, told, ledger, evidence_for, profile
):
    ledger.add(evidence_for(profile, **changes))
    decision = EvidenceAdmission(ledger, clock=lambda: NOW)(admission_request(profile))
    assert not decision.admitted
    assert decision.reason.startswith(told)


def test_changed_weights_make_evidence_stale(ledger, evidence_for, profile):
    ledger.add(evidence_for(profile))
    admission = EvidenceAdmission(ledger, clock=lambda: NOW)
    changed = profile.with_weights({"sparse.lexical": 0.5})
    assert admission(admission_request(profile)).admitted
    assert not admission(admission_request(changed)).admitted


def test_newer_and_worse_evidence_is_not_outvoted_by_older(ledger, evidence_for, profile):
    ledger.add(evidence_for(profile))
    ledger.add(
        evidence_for(profile, effect=-0.1, low=-0.2, high=-0.05, measured=NOW - timedelta(hours=1))
    )
    admission = EvidenceAdmission(ledger, clock=lambda: NOW)
    assert not admission(admission_request(profile)).admitted


def test_cold_start_keeps_the_order_of_its_recent_candidates(world, opened):
    admitted = opened(world("semantic", 1), reranker=RelevanceReranker(StaticAdmission(True)))
    plain = opened(world("semantic", 1))
    recalls = [
        memory.recall("", scope="tenant:acme", profile="relevance-rerank")
        for memory in (admitted, plain)
    ]
    assert recalls[0].trace.reranking == "baseline: nothing was asked"
    assert _without_trace(recalls[0]) == _without_trace(recalls[1])


def test_question_as_of_a_time_keeps_its_revisions_when_reranked(world, opened, ask):
    memory = opened(world("semantic", 1), reranker=RelevanceReranker(StaticAdmission(True)))
    memory.remember(
        "something else by now", scope="tenant:acme", id="anchor", at=NOW, vector=[0.0, 1.0] * 8
    )
    then = ask(memory, as_of=NOW - timedelta(days=40))
    assert then.trace.reranking == "relevance-rerank@1"
    assert then.ids[0] == "anchor"
    assert then[0].memory.text == "unrelated matter"


def test_shadow_serves_the_baseline_and_shows_both_orders(world, opened, ask):
    asked: list[AdmissionRequest] = []
    shadow = opened(
        world("semantic", 4),
        reranker=RelevanceReranker(asked.append, shadow=True),  # type: ignore[arg-type]
    )
    plain = opened(world("semantic", 4))
    reranked = opened(world("semantic", 4), reranker=RelevanceReranker(StaticAdmission(True)))
    recall = ask(shadow)
    assert asked == []
    assert recall.trace.reranking == "baseline: shadow"
    assert _without_trace(recall) == _without_trace(ask(plain))
    assert recall.trace.shadow is not None
    assert recall.trace.shadow.served == ask(plain).ids
    assert recall.trace.shadow.reranked == ask(reranked).ids
    assert ("anchor", None, 1) in recall.trace.shadow.moves
    assert recall.plain()["trace"]["shadow"]["moves"][0]["id"] == "anchor"


async def _asynchronously(memory: rb.Memory) -> rb.Recall:
    return await memory.arecall("term0 term1", scope="tenant:acme", profile="relevance-rerank")


def test_asynchronous_recall_is_reranked_too(world, opened):
    import asyncio

    memory = opened(world("semantic", 4), reranker=RelevanceReranker(StaticAdmission(True)))
    assert asyncio.run(_asynchronously(memory)).trace.reranking == "relevance-rerank@1"


def _without_trace(recall: rb.Recall) -> dict[str, Any]:
    return {key: value for key, value in recall.plain().items() if key != "trace"}


class _WithMethod:
    def admit(self, request: AdmissionRequest) -> AdmissionDecision:
        return AdmissionDecision(True, "e1", "as always")


def test_object_with_an_admit_method_is_an_admission(profile):
    serving = RelevanceReranker(_WithMethod())(profile)  # type: ignore[arg-type]
    assert (serving.node, serving.evidence) == ("rerank", "e1")


def test_evidence_admission_takes_a_folder(tmp_path, profile):
    decision = EvidenceAdmission(tmp_path)(admission_request(profile))
    assert decision.reason == "no evidence for this profile and version"


def test_reason_with_control_characters_is_shown_without_them(profile):
    reranker = RelevanceReranker(lambda request: AdmissionDecision(False, reason="\x1b[31mred\x07"))
    assert reranker(profile).trace == "baseline: [31mred"
