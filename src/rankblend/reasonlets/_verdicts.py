"""Which of several verdicts on a run counts, and what runs add up to."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve, frozen

from rankblend.reasonlets._reasonlet import Feedback
from rankblend.reasonlets.store._protocol import NO_RUNS, Counts, StoredRun


@frozen
class Verdict:
    """The verdict in effect.

    Attributes:
        success: A person's, else the evaluator's, else the agent's.
        judged: A person or an evaluator gave one.
    """

    success: bool
    judged: bool


def verdict_of(stored: StoredRun) -> Verdict:
    """The verdict in effect on a run."""
    human = stored.feedback.worked if stored.feedback is not None else None
    judged = human if human is not None else stored.run.evaluator
    agent = stored.run.outcome.success
    return Verdict(agent if judged is None else judged, judged is not None)


def count_runs(runs: Iterable[StoredRun], beside: Counts = NO_RUNS) -> Counts:
    """What runs add up to, added to other counts."""
    total = [beside.runs, beside.successes, beside.judged_runs, beside.judged_successes]
    for stored in runs:
        verdict = verdict_of(stored)
        total[0] += 1
        total[1] += verdict.success
        total[2] += verdict.judged
        total[3] += verdict.judged and verdict.success
    return Counts(*total)


def with_feedback(stored: StoredRun, feedback: Feedback) -> StoredRun:
    """The run with new feedback; a verdict can be changed, not withdrawn."""
    earlier = stored.feedback.worked if stored.feedback is not None else None
    if feedback.worked is None and earlier is not None:
        feedback = evolve(feedback, worked=earlier)
    return evolve(stored, feedback=feedback)
