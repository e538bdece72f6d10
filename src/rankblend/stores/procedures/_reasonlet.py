"""A stored procedure with its track record, and what the calls of a memory give back."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from attrs import field, frozen

from rankblend.relevance import Scope
from rankblend.stores.procedures._capture import Provenance
from rankblend.stores.procedures._checks import Checked, Checks
from rankblend.stores.procedures._graph import Graph


class Status(StrEnum):
    """Whether a procedure may be recalled."""

    ACTIVE = "active"
    PENDING_REVIEW = "pending_review"


class Produced(StrEnum):
    """What a capture became."""

    CREATED = "created"
    VERSION = "version"
    EXECUTION = "execution"


class VerdictSource(StrEnum):
    """Whose verdict counted when a run was stored."""

    EVALUATOR = "evaluator"
    AGENT = "agent"


@frozen
class Metrics:
    """The track record of a procedure, pruned runs included.

    Attributes:
        runs: How often it ran.
        successes: How many of them worked, by their effective verdict.
        judged_runs: How many a person or an evaluator judged.
        judged_successes: How many of these worked.
        last_run: Time of its latest run; its creation while there is none. UTC.
        last_success: Time of its latest run that worked, or None.
    """

    runs: int
    successes: int
    judged_runs: int
    judged_successes: int
    last_run: datetime
    last_success: datetime | None = None


@frozen
class Reasonlet:
    """One stored procedure.

    Attributes:
        id: A UUIDv7: ids in order are in the order of creation.
        scope: Where it belongs.
        question, graph: What it answered, and how.
        intent, name: As resolved when it was remembered.
        version: ``1.0``, or ``1.1``, ``1.2``, … of its family.
        family: Shared by all versions of one procedure: the id of the first that is not erased.
        parent_id: What it is a version of; None for a root.
        provenance: Where it comes from.
        status: Whether it may be recalled.
        created: UTC.
        metrics: Its track record.
    """

    id: str
    scope: Scope
    question: str = field(repr=False)
    graph: Graph = field(repr=False)
    intent: str
    name: str = field(repr=False)
    version: str
    family: str
    parent_id: str | None
    provenance: Provenance
    status: Status
    created: datetime
    metrics: Metrics


@frozen
class Receipt:
    """What became of a capture or a run.

    Attributes:
        id, version, status: Of the procedure it went to.
        produced: A new procedure, a new version, or only a run.
        execution: Id of the run that was recorded; feedback names it.
        source: Whose verdict counted when it was stored.
        success: That verdict.
    """

    id: str
    version: str
    status: Status
    produced: Produced
    execution: str
    source: VerdictSource
    success: bool


@frozen
class Feedback(Checked):
    """What a person says about a run.

    Args:
        utility, correctness, reusability: In [0, 1]; stored, not ranked by.
        worked: The person's verdict; None keeps an earlier one.
    """

    utility: float
    correctness: float
    reusability: float
    worked: bool | None = None

    def check(self, checks: Checks) -> None:
        """Note everything that is wrong."""
        for name in ("utility", "correctness", "reusability"):
            checks.unit(name, getattr(self, name))
        checks.flag("worked", self.worked, optional=True)


@frozen
class ReasonletScore:
    """How a match was ranked; each in [0, 1].

    Attributes:
        similarity: Of the two questions.
        success_rate: Smoothed, see the profile ``mnemosyne``.
        freshness: Halved with every half-life since the last run.
        total: Their weighted mean; what matches are ordered by.
    """

    similarity: float
    success_rate: float
    freshness: float
    total: float


@frozen
class ReasonletEvidence:
    """How much a success rate rests on; never part of the score.

    Attributes:
        runs: Its own runs, pruned ones included.
        judged_runs: How many of them a person or an evaluator judged.
        uses_parent_prior: Whether the rate was smoothed towards the parent's instead of 1/2.
    """

    runs: int
    judged_runs: int
    uses_parent_prior: bool


@frozen
class ReasonletMatch:
    """One recalled procedure."""

    reasonlet: Reasonlet
    score: ReasonletScore
    evidence: ReasonletEvidence


@frozen
class Erased:
    """What an erasure took away.

    Attributes:
        reasonlets: Procedures of the subject.
        executions: Runs, of those procedures and of the subject on others.
        feedback: How many of those runs had feedback.
        detached: Procedures of others that lost their parent and are roots now.
        waiting: After a purge: somebody is reading an older state, so that freed copies are still
            in the log of the file; purge again when nobody reads.
    """

    reasonlets: int
    executions: int
    feedback: int
    detached: int
    waiting: bool = False


@frozen
class ReasonletStatistics:
    """Counts over a store, or one scope of it.

    Attributes:
        active, pending: Procedures by status.
        families: Procedures with all their versions counted once.
        runs, successes, judged_runs, judged_successes: Sums of the track records.
        stored_runs: Runs that are still stored one by one.
    """

    active: int = 0
    pending: int = 0
    families: int = 0
    runs: int = 0
    successes: int = 0
    judged_runs: int = 0
    judged_successes: int = 0
    stored_runs: int = 0
