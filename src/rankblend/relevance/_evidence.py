"""The vocabulary of evidence: what a store may observe, with unit and range.

Evidence is a measurement in natural units. A profile's curves turn it into signals in [0, 1]; the
ranges here let a profile be checked when it is loaded: an identity curve over a cosine, or a
saturation of something that may be negative, is refused before any recall.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from attrs import field, frozen

from rankblend.checks import Problems
from rankblend.errors import InvalidArgumentError
from rankblend.values import is_identifier, real_number, shown

# Labels and the numbers they stand for; source: ADR-0191's baseline as read in the specification.
REVIEW_LEVELS: Mapping[str, float] = MappingProxyType(
    {"confirmed": 1.0, "unreviewed": 0.75, "flagged": 0.25}
)
MATURITY_LEVELS: Mapping[str, float] = MappingProxyType({"settled": 1.0, "provisional": 0.5})
CERTAINTY_LEVELS: Mapping[str, float] = MappingProxyType({"stated": 1.0, "inferred": 0.5})

UNITS = ("ratio", "seconds", "count", "hops", "score", "signal")


@frozen
class Evidence:
    """One kind of measurement.

    Args:
        name: An identifier.
        unit: ``ratio``, ``seconds``, ``count``, ``hops``, ``score`` or ``signal`` (ready in [0, 1]).
        low: Least possible value.
        high: Greatest possible value; infinity when unbounded.
        natural_zero: 0 means "does not match at all"; batch-relative curves keep it at 0.
        relevance: It speaks about the match with this query, not about the memory alone. Equivalent
            memories share their strongest relevance; a memory's own standing stays its own.
        meaning: One phrase.
    """

    name: str
    unit: str = "signal"
    low: float = 0.0
    high: float = 1.0
    natural_zero: bool = False
    relevance: bool = False
    meaning: str = field(default="", eq=False)

    def __attrs_post_init__(self) -> None:
        problems = Problems(show=shown, where="evidence ")
        if not is_identifier(self.name):
            problems.add("name", "expected letters, digits and _ (ASCII)")
        problems.choice("unit", self.unit, UNITS)
        low, high = (real_number(end) for end in (self.low, self.high))
        if low is None or high is None or not -math.inf < low < high:
            problems.add("range", "expected a finite low below high")
        problems.raise_if_any()
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)


def _built_in() -> Iterable[Evidence]:
    inf = math.inf
    yield Evidence("cosine", "ratio", -1.0, 1.0, relevance=True, meaning="cosine of the embeddings")
    yield Evidence("bm25", "score", 0.0, inf, True, True, "BM25 of the query's terms")
    yield Evidence("coverage", "ratio", 0.0, 1.0, True, True, "share of the query's words in it")
    yield Evidence(
        "structured", "ratio", 0.0, 1.0, True, True, "preferences met, or nearness to a name"
    )
    yield Evidence("rerank_score", "score", -1e308, inf, relevance=True, meaning="cross-encoder")
    yield Evidence(
        "hops", "hops", 0.0, inf, relevance=True, meaning="steps from the seeds; inf = not reached"
    )
    yield Evidence("path_weight", "ratio", 0.0, 1.0, True, True, "best product of edge weights")
    yield Evidence("ppr", "ratio", 0.0, 1.0, True, True, "personalised PageRank from the seeds")
    yield Evidence("activation", "score", 0.0, inf, True, True, "spreading activation from seeds")
    yield Evidence("salience", meaning="importance given by the writer")
    yield Evidence("confidence", meaning="how sure the writer was")
    yield Evidence("review", meaning="confirmed 1, unreviewed .75, flagged .25")
    yield Evidence("maturity", meaning="settled 1, provisional .5")
    yield Evidence("certainty", meaning="stated 1, inferred .5")
    for name, meaning in (
        ("age_created", "since the memory was first written"),
        ("age_updated", "since its latest revision"),
        ("age_used", "since it was last reinforced"),
        ("age_last_run", "since the procedure last ran"),
    ):
        yield Evidence(name, "seconds", -1e308, inf, meaning=meaning)
    yield Evidence("uses", "count", 0.0, inf, True, meaning="times it was reinforced")
    for name in (
        "runs",
        "successes",
        "judged_runs",
        "judged_successes",
        "parent_runs",
        "parent_successes",
        "parent_judged_runs",
        "parent_judged_successes",
    ):
        yield Evidence(name, "count", 0.0, inf, True, meaning="of a procedure")


_REGISTRY: dict[str, Evidence] = {evidence.name: evidence for evidence in _built_in()}
EVIDENCE: Mapping[str, Evidence] = MappingProxyType(_REGISTRY)


def register_evidence(evidence: Evidence) -> Evidence:
    """Add a kind of evidence to the vocabulary; registering the same one twice is harmless.

    Raises:
        InvalidArgumentError: The name is taken by different evidence.
    """
    known = _REGISTRY.setdefault(evidence.name, evidence)
    if known != evidence:
        raise InvalidArgumentError(
            f"evidence {evidence.name!r} is already registered with another unit or range"
        )
    return known


def lookup_evidence(name: str) -> Evidence | None:
    """The evidence called ``name`` (or ``store.name``), or None."""
    return _REGISTRY.get(name.rpartition(".")[2])


def evidence_names() -> tuple[str, ...]:
    """All registered names, sorted."""
    return tuple(sorted(_REGISTRY))
