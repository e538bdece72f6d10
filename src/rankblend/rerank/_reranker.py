"""The relevance reranker: asks its admission, and falls back to the baseline on anything but yes."""

from __future__ import annotations

from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import lru_cache, partial

from rankblend.errors import InvalidArgumentError
from rankblend.profiles import RankingProfile, signal_schema_hash
from rankblend.recall import Serving, in_thread
from rankblend.rerank._admission import Admission, AdmissionDecision, AdmissionRequest
from rankblend.version import SCORING_VERSION

FEATURE = "reranking"
RERANKER = "relevance-rerank@1"
_LONGEST_REASON = 200


@lru_cache(maxsize=256)  # asked at every recall
def admission_request(profile: RankingProfile) -> AdmissionRequest:
    """What has to be admitted for this profile's ``rerank`` score to serve."""
    return AdmissionRequest(
        feature=FEATURE,
        name=RERANKER,
        profile_hash=profile.hash,
        signal_schema_hash=signal_schema_hash(profile),
        scoring_version=SCORING_VERSION,
    )


class RelevanceReranker:
    """Lets a profile's ``rerank`` score serve while an admission says so.

    Given to a memory as ``reranker=``; a profile with ``reranking = "relevance"`` then asks it at
    every recall. Unless the admission answers yes in time, matches, scores and order are those of
    the same profile with ``reranking = "baseline"``, and the trace says why. It replaces the score
    of the pool's members and nothing else: no candidate, store call or embedding is added, floors,
    duplicate penalty, scope blend and caps follow as ever, and what is known of a memory (its
    confidence, review, certainty) stays as it is. A relevance score is no certainty.

    Args:
        admission: Decides; required, whatever the profile says: a function, or an object with a
            method ``admit``. `EvidenceAdmission` decides by recorded evidence.
        timeout: Seconds the admission has, > 0. One that hangs is not asked again before it has
            answered.
        shadow: Serve the baseline, compute the reranked order beside it, and put both in the trace.
            Nothing is served, so nothing is asked.

    Raises:
        InvalidArgumentError: No admission, or a time-out that is none.
    """

    def __init__(
        self, admission: Admission, *, timeout: float = 0.25, shadow: bool = False
    ) -> None:
        problems = []
        # An object may offer it as a method.
        admit: Admission = getattr(admission, "admit", admission)
        if not callable(admit):
            problems.append(
                "admission: expected a function from AdmissionRequest to AdmissionDecision, got "
                f"{type(admission).__name__}; EvidenceAdmission(ledger) decides by evidence"
            )
        if not _is_seconds(timeout):
            problems.append(f"timeout: expected seconds > 0, got {timeout!r}")
        if problems:
            raise InvalidArgumentError(problems)
        self._admission = admit
        self._timeout = float(timeout)
        self._shadow = shadow
        self._hanging: Future[AdmissionDecision] | None = None

    def __call__(self, profile: RankingProfile) -> Serving:
        """Decide for one recall; never raises."""
        if self._shadow:
            return Serving("score", "baseline: shadow", shadow=True)
        try:
            decision = self._asked(admission_request(profile))
        except FutureTimeoutError:
            return Serving("score", "baseline: the admission did not answer in time")
        except Exception as error:  # anything a user's function may raise means no
            return Serving("score", f"baseline: the admission failed ({type(error).__name__})")
        if not isinstance(decision, AdmissionDecision):
            return Serving("score", "baseline: the admission gave no decision")
        if not decision.admitted:
            told = "".join(c if c.isprintable() else " " for c in decision.reason)
            reason = " ".join(told.split())[:_LONGEST_REASON]
            return Serving("score", f"baseline: {reason or 'not admitted'}")
        return Serving("rerank", RERANKER, evidence=decision.evidence_id)

    def _asked(self, request: AdmissionRequest) -> AdmissionDecision:
        if self._hanging is not None and not self._hanging.done():
            raise FutureTimeoutError
        asked = in_thread(partial(self._admission, request))
        try:
            return asked.result(self._timeout)
        except FutureTimeoutError:
            if not asked.done():
                self._hanging = asked
            raise


def _is_seconds(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
