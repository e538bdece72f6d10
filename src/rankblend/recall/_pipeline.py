"""One recall, step by step: gather (embed, propose, join, observe), rank, look up.

question ─► embed ─► propose ─► join ─► observe ─► rank ─► recall
"""

from __future__ import annotations

from rankblend.recall._ask import Rounds
from rankblend.recall._engine import Engine
from rankblend.recall._inquiry import Gathered, Inquiry, Moved
from rankblend.recall._question import Question, Serving
from rankblend.recall._rank import rank_candidates
from rankblend.recall._result import Recall, Shadow, Trace, matches_from

_ATTEMPTS = 4


def answer(engine: Engine, question: Question, rounds: Rounds) -> Recall:
    """Answer a question.

    When somebody writes while it is going on (another process, or anybody while a store that is not
    immediate is waited for), texts and decisions could differ, and it is done again; the last
    attempt stands, without what was erased meanwhile.
    """
    serving = question.serving()  # before anything is locked: an admission may take its time
    for attempt in range(1, _ATTEMPTS):
        try:
            with Inquiry(engine, question, rounds, first=attempt == 1).gathered() as found:
                recall = rank(question, serving, found)
            if engine.view.is_current():
                return recall
        except Moved:
            pass
        engine.refresh()
    with Inquiry(engine, question, rounds, first=False, last=True).gathered() as found:
        return rank(question, serving, found)


def rank(question: Question, serving: Serving, found: Gathered) -> Recall:
    """Rank what was gathered and look up what is shown."""
    profile, candidates = question.profile, found.candidates
    ranking = rank_candidates(profile, candidates, top=question.top, node=serving.node)
    shadow = None
    if serving.shadow:
        reranked = rank_candidates(profile, candidates, top=question.top, node="rerank")
        shadow = Shadow(ranking.shown_ids, reranked.shown_ids)
    records = found.contents(ranking.rows[ranking.shown])
    trace = Trace(
        profile_hash=profile.hash,
        scopes=tuple(map(str, question.scopes)),
        reach=question.reach.value,
        statistics=question.statistics.value,
        now=question.now,
        as_of=question.as_of,
        proposed=found.proposed,
        pool=len(found.sources),
        sources=found.sources,
        failures=found.failures,
        notes=found.notes,
        reranking=serving.trace,
        evidence=serving.evidence,
        shadow=shadow,
    )
    matches = matches_from(ranking, records)
    return Recall(matches, profile, trace, ranking, found.visibility)
