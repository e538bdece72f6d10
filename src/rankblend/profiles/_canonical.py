"""The hashes of a profile: of canonical JSON.

In the hash: every value that scores, filters, orders or cuts, defaults filled in, durations in
seconds, the options of composers spelt out, and of the evidence read its unit and range (curves
within the pool depend on them). Weights stay in their order, because sums run in it and the last
bit of a score depends on it; everything else is sorted, 1 and 1.0 are one number.

Not in the hash: name, source, extends and origins, promised sums, and what is defined but used by
neither score, rerank, floors nor ties. A recipe inherited from a rich parent is then the same as
one written flat with just what it needs, and it ranks the same.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from attrs import astuple

from rankblend.canonical import canonical_hash
from rankblend.profiles._recipe import SignalRecipe
from rankblend.relevance import Evidence, Node, plain_missing

if TYPE_CHECKING:
    from rankblend.profiles._profile import RankingProfile

FORMAT = 1  # raised when the same recipe gets another canonical form


def recipe_hash(profile: RankingProfile) -> str:
    """SHA-256 of the canonical JSON of the canonical recipe, 64 hex digits."""
    return canonical_hash(canonical_recipe(profile))


def signal_schema_hash(profile: RankingProfile) -> str:
    """SHA-256 over the unit and range of all evidence a profile reads, 64 hex digits."""
    return canonical_hash(canonical_recipe(profile)["evidence"])


def canonical_recipe(profile: RankingProfile) -> dict[str, Any]:
    """What is hashed, as JSON values."""
    nodes = profile.nodes_needed
    signals = profile.signals_needed
    kinds = [
        kind for name in signals for kind in profile.kinds(name) if profile.signals[name].evidence
    ]
    return {
        "format": FORMAT,
        "pool": list(astuple(profile.pool)),
        "evidence": {kind.name: _evidence(kind) for kind in kinds},
        "signals": {name: _signal(profile.signals[name]) for name in signals},
        "nodes": {name: _node(profile.nodes[name]) for name in nodes},
        "score": _node(profile.score),
        "rerank": None if profile.rerank is None else _node(profile.rerank),
        "reranking": profile.reranking,
        "min_score": profile.floors.min_score,
        "floors": {name: list(astuple(it)) for name, it in profile.floors.signals.items()},
        "scope": list(astuple(profile.scope)),
        "ties": list(profile.ties),
        "select": list(astuple(profile.select)),
    }


def _evidence(kind: Evidence) -> list[Any]:
    high = kind.high if math.isfinite(kind.high) else "unbounded"
    return [kind.unit, kind.low, high, kind.natural_zero, kind.relevance]


def _signal(recipe: SignalRecipe) -> dict[str, Any]:
    return {
        "evidence": list(recipe.evidence),
        "of": list(recipe.of),
        "curve": [[step.name, dict(step.params)] for step in recipe.curve],
        "merge": recipe.merge,
    }


def _node(node: Node) -> dict[str, Any]:
    return {
        "compose": node.compose,
        "weights": [[name, weight] for name, weight in node.weights],
        "missing": plain_missing(node.missing),
        "absent": {name: plain_missing(override) for name, override in node.absent},
        "options": {
            name: dict(value) if isinstance(value, tuple) else value for name, value in node.options
        },
    }
