"""What an experiment found out about a reranker, and when that is enough to let it serve."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from attrs import asdict, field, fields, frozen

from rankblend.errors import EvidenceError, InvalidArgumentError
from rankblend.profiles import canonical_hash
from rankblend.rerank._admission import AdmissionRequest
from rankblend.values import is_number

FORMAT = 1
_HASH_DIGITS = 64


@frozen(kw_only=True)
class FamilyEffect:
    """The effect within one family of queries.

    Attributes:
        family: Its name.
        queries: How many, ≥ 1.
        effect: Mean difference to the baseline.
        low, high: Its interval; NaN-free, ``low ≤ effect ≤ high``.
    """

    family: str
    queries: int
    effect: float
    low: float
    high: float

    @property
    def regressed(self) -> bool:
        """Whether the whole interval lies below zero."""
        return self.high < 0


def _as_families(families: Iterable[FamilyEffect]) -> tuple[FamilyEffect, ...]:
    return tuple(families)


@frozen(kw_only=True)
class ReleaseEvidence:
    """One measurement of a reranker against its own baseline.

    Attributes:
        feature, name, profile_hash, signal_schema_hash, scoring_version: What was measured, as in
            `AdmissionRequest`; another version needs another measurement.
        dataset, dataset_hash: On what.
        metric: E.g. ``nDCG@10``.
        queries: How many were judged, ≥ 1.
        clusters: How many independent groups they fall into, ≥ 1.
        effect: Mean difference to the baseline.
        low, high: Its 95 % interval over clusters.
        p: Family-wise p-value over everything tried, in (0, 1].
        families: The same per family of queries.
        overhead: Added time of reranking, as a share of the recall; ≥ 0.
        measured: When, with a time zone.
        expires: Until when it holds.
    """

    feature: str
    name: str
    profile_hash: str
    signal_schema_hash: str
    scoring_version: int
    dataset: str
    dataset_hash: str
    metric: str
    queries: int
    clusters: int
    effect: float
    low: float
    high: float
    p: float
    families: tuple[FamilyEffect, ...] = field(converter=_as_families)
    overhead: float
    measured: datetime
    expires: datetime

    def __attrs_post_init__(self) -> None:
        problems = [
            f"{name}: expected a finite number"
            for name in ("effect", "low", "high", "p", "overhead")
            if not is_number(getattr(self, name))
        ]
        problems += [
            f"{name}: expected text"
            for name in ("feature", "name", "dataset", "metric")
            if not isinstance(getattr(self, name), str) or not getattr(self, name)
        ]
        problems += [
            f"{name}: expected {_HASH_DIGITS} hex digits"
            for name in ("profile_hash", "signal_schema_hash", "dataset_hash")
            if not _is_hash(getattr(self, name))
        ]
        problems += [
            f"{name}: expected a time with its zone"
            for name in ("measured", "expires")
            if not isinstance(getattr(self, name), datetime) or getattr(self, name).tzinfo is None
        ]
        problems += [
            f"{name}: expected a whole number ≥ 1"
            for name in ("queries", "clusters", "scoring_version")
            if not _is_count(getattr(self, name))
        ]
        if not problems:
            if not self.low <= self.effect <= self.high:
                problems.append("effect: expected low ≤ effect ≤ high")
            if not 0 < self.p <= 1:
                problems.append("p: expected a number in (0, 1]")
            if self.overhead < 0:
                problems.append("overhead: expected a share ≥ 0")
            if self.expires <= self.measured:
                problems.append("expires: expected a time after measured")
        for each in self.families:
            if not (
                all(is_number(v) for v in (each.effect, each.low, each.high))
                and each.low <= each.effect <= each.high
                and _is_count(each.queries)
            ):
                problems.append("families: expected effects with low ≤ effect ≤ high and a count")
        if problems:
            raise EvidenceError(problems)

    @cached_property
    def id(self) -> str:
        """The first 16 hex digits of the hash of all of it: an edited file has another id."""
        return canonical_hash(self.plain())[:16]

    def plain(self) -> dict[str, Any]:
        """JSON-ready values; `read` takes them back."""
        values = asdict(self)
        values["measured"] = self.measured.astimezone(UTC).isoformat()
        values["expires"] = self.expires.astimezone(UTC).isoformat()
        values["families"] = [asdict(each) for each in self.families]
        return {"format": FORMAT, **values}

    @classmethod
    def read(cls, plain: object) -> ReleaseEvidence:
        """From JSON values.

        Raises:
            EvidenceError: Something else, or an unknown format.
        """
        if not isinstance(plain, Mapping):
            raise EvidenceError("expected an object")
        if plain.get("format") != FORMAT:
            raise EvidenceError(f"format: expected {FORMAT}; written by another version")
        values = {key: value for key, value in plain.items() if key != "format"}
        names = {each.name for each in fields(cls)}
        if values.keys() != names:
            wrong = sorted(map(str, values.keys() ^ names))
            raise EvidenceError(f"missing or unknown: {', '.join(wrong)}")
        try:
            values["families"] = [FamilyEffect(**each) for each in values["families"]]
            for name in ("measured", "expires"):
                values[name] = datetime.fromisoformat(values[name])
        except (TypeError, ValueError) as error:
            raise EvidenceError(f"malformed ({type(error).__name__})") from error
        return cls(**values)

    def matches(self, request: AdmissionRequest) -> bool:
        """Whether this was measured for exactly what is asked."""
        return self.version == request

    @cached_property
    def version(self) -> AdmissionRequest:
        """What was measured."""
        return AdmissionRequest(
            **{each.name: getattr(self, each.name) for each in fields(AdmissionRequest)}
        )


@frozen(kw_only=True)
class EvidencePolicy:
    """When evidence is enough.

    Args:
        least_effect: The lower end of the effect's interval must lie above this; ≥ 0.
        greatest_p: Family-wise p at most; in (0, 1].
        greatest_overhead: Added time at most, as a share of the recall.
    """

    least_effect: float = 0.0
    greatest_p: float = 0.05
    greatest_overhead: float = 0.10

    def __attrs_post_init__(self) -> None:
        problems = [
            f"{name}: expected a number {wanted}"
            for name, wanted, low, high in (
                ("least_effect", "from 0 to 1", 0.0, 1.0),
                ("greatest_p", "above 0 and at most 1", 1e-300, 1.0),
                ("greatest_overhead", "≥ 0", 0.0, math.inf),
            )
            if not (is_number(getattr(self, name)) and low <= getattr(self, name) <= high)
        ]
        if problems:
            raise InvalidArgumentError(problems)

    def refusals(self, evidence: ReleaseEvidence) -> tuple[str, ...]:
        """Everything that speaks against; empty when it is enough."""
        refused = []
        if not evidence.low > self.least_effect:
            refused.append(
                f"{evidence.metric} {evidence.effect:+.4f} [{evidence.low:+.4f}, "
                f"{evidence.high:+.4f}] is not clearly above {self.least_effect:g}"
            )
        if not evidence.p <= self.greatest_p:
            refused.append(f"family-wise p {evidence.p:.4f} is above {self.greatest_p:g}")
        refused += [
            f"family {each.family!r} is worse: {each.effect:+.4f} "
            f"[{each.low:+.4f}, {each.high:+.4f}]"
            for each in evidence.families
            if each.regressed
        ]
        if not evidence.overhead <= self.greatest_overhead:
            refused.append(
                f"it adds {evidence.overhead:.0%} to a recall, above {self.greatest_overhead:.0%}"
            )
        return tuple(refused)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_hash(value: object) -> bool:
    return (
        isinstance(value, str)
        and len(value) == _HASH_DIGITS
        and set(value) <= set("0123456789abcdef")
    )
