"""Who may rerank: a question that is asked before every recall, and its answer."""

from __future__ import annotations

from typing import Protocol

from attrs import field, frozen
from attrs.validators import instance_of


@frozen(kw_only=True)
class AdmissionRequest:
    """What wants to serve.

    Everything that decides a ranking is in here, so that a decision made for one version says
    nothing about another.

    Attributes:
        feature: What is guarded: ``reranking``, or whatever else a process puts behind the same
            admission.
        name: Who wants to serve, with its version, e.g. ``relevance-rerank@1``.
        profile_hash: Of the ranking profile in effect, per-call weights included.
        signal_schema_hash: Of the unit and range of the evidence the profile reads.
        scoring_version: Of the arithmetic.
    """

    feature: str
    name: str
    profile_hash: str
    signal_schema_hash: str
    scoring_version: int


@frozen
class AdmissionDecision:
    """The answer.

    Attributes:
        admitted: Whether it may serve.
        evidence_id: The evidence that says so; empty if there is none.
        reason: One line, for the trace of every recall; never the text of a query or a memory.
    """

    admitted: bool = field(validator=instance_of(bool))
    evidence_id: str = field(default="", validator=instance_of(str))
    reason: str = field(default="", validator=instance_of(str))


class Admission(Protocol):
    """Anything that decides: a function, or an object that is called.

    One admission can serve every guarded feature of a process; it tells them apart by
    ``request.feature`` and ``request.name``. It is asked at every recall, from any thread.
    """

    def __call__(self, request: AdmissionRequest) -> AdmissionDecision:
        """Decide; raising, or taking too long, counts as no."""
        ...


@frozen
class StaticAdmission:
    """The same answer for everything, whatever evidence there is.

    Only for isolated evaluation on made-up or recorded data: nothing withdraws it.
    """

    admitted: bool = field(validator=instance_of(bool))

    def __call__(self, request: AdmissionRequest) -> AdmissionDecision:  # noqa: ARG002 - the same for all
        """Answer."""
        return AdmissionDecision(self.admitted, reason="a static admission, for evaluation only")
