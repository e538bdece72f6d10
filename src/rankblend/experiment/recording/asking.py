"""Profiles that make a recall ask everything, so that recording needs no way into it of its own."""

from __future__ import annotations

from collections.abc import Collection

from rankblend.experiment.recording.manifest import RecordedStore
from rankblend.profiles import RankingProfile
from rankblend.profiles.recipe import Pool, Select, SignalRecipe
from rankblend.relevance.blend import ScopeBlend
from rankblend.relevance.composers import Node
from rankblend.relevance.curves import CurveStep, parse_curve
from rankblend.relevance.evidence import lookup_evidence

__all__ = ["asking_profile"]

_EVERYTHING = 1_000_000  # the greatest pool a profile may have


def asking_profile(
    stores: Collection[RecordedStore], proposing: Collection[str], *, depth: int, by_level: bool
) -> RankingProfile:
    """A profile whose recall has all evidence on everything that some stores propose.

    The score reads what the proposing stores emit; everything else is read as a tie-break, which
    makes a store observe and not propose. Diversity and a token cap make a recall fetch vectors and
    token counts. Nothing is shown, so nothing of it is computed.

    Args:
        stores: All of them.
        proposing: Names of those that propose.
        depth: Proposals of each.
        by_level: Level by level, or over all levels.
    """
    signals: dict[str, SignalRecipe] = {}
    scored: list[str] = []
    observed: list[str] = []
    for store in stores:
        for evidence in store.recorded:
            name = f"s{len(signals)}"
            signals[name] = SignalRecipe(f"{store.name}.{evidence}", curve=_any_curve(evidence))
            (scored if store.name in proposing else observed).append(name)
    return RankingProfile(
        "recording",
        Node.of("strongest", *scored),
        signals=signals,
        ties=tuple(observed),
        pool=Pool(depth, _EVERYTHING),
        scope=ScopeBlend("blend" if by_level else "off"),
        select=Select(top=0, max_tokens=1, diversity=0.5),
    )


def _any_curve(evidence: str) -> tuple[CurveStep, ...]:
    """A curve that takes this evidence; its values are of no interest."""
    kind = lookup_evidence(evidence)
    unit = "signal" if kind is None else kind.unit
    if unit == "seconds":
        return parse_curve({"half_life": {"days": 1}})
    return parse_curve("reciprocal" if unit == "hops" else "clip")
