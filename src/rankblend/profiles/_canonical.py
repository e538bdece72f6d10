"""Canonical JSON (RFC 8785), and the hashes of a profile.

Follows RFC 8785 (JSON Canonicalization Scheme): no white space, keys sorted by their UTF-16 code
units, strings as ECMAScript writes them, numbers as IEEE doubles in the shortest form that reads
back the same. 1 and 1.0 are one number. Own implementation of the published rules.

In the hash: every value that scores, filters, orders or cuts, defaults filled in, durations in
seconds, the options of composers spelt out, and of the evidence read its unit and range (curves
within the pool depend on them). Weights stay in their order, because sums run in it and the last
bit of a score depends on it; everything else is sorted, 1 and 1.0 are one number.

Not in the hash: name, source, extends and origins, promised sums, and what is defined but used by
neither score, rerank, floors nor ties. A recipe inherited from a rich parent is then the same as
one written flat with just what it needs, and it ranks the same.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rankblend.errors import InvalidArgumentError
from rankblend.profiles._recipe import SignalRecipe, reachable
from rankblend.relevance import Evidence, Node, node_inputs, plain_missing

if TYPE_CHECKING:
    from rankblend.profiles._profile import RankingProfile


def canonical_json(value: object) -> str:
    """The canonical text of a JSON value.

    Args:
        value: None, bool, int, float, str, or a list, tuple or string-keyed mapping of such.
            An int counts as the double nearest to it, as RFC 8785 asks.

    Raises:
        InvalidArgumentError: NaN, an infinity, an int beyond the doubles, a lone surrogate, a key
            that is no string, or another type.

    Example:
        >>> canonical_json({"b": 1.0, "a": [1e21, 1e-7, "é"]})
        '{"a":[1e+21,1e-7,"é"],"b":1}'
    """
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(canonical_json, value))}]"
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise InvalidArgumentError("canonical JSON: expected text as key of an object")
        keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return f"{{{','.join(f'{_text(key)}:{canonical_json(value[key])}' for key in keys)}}}"
    raise InvalidArgumentError(f"canonical JSON: {type(value).__name__} has no JSON form")


def canonical_hash(value: object) -> str:
    """SHA-256 of the canonical text in UTF-8, as 64 lower-case hex digits."""
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()


def _text(value: str) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidArgumentError("canonical JSON: text holds a lone surrogate") from None
    return json.dumps(value, ensure_ascii=False)


def _number(value: float) -> str:
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InvalidArgumentError("canonical JSON: expected a finite number")
    if number == 0.0:
        return "0"  # -0 too
    # repr gives the shortest digits that read back the same, which ECMAScript asks for as well;
    # only the place where the exponent begins differs.
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)
    digits = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    sign = "-" if number < 0 else ""
    return sign + _placed(digits, point)


def _placed(digits: str, point: int) -> str:
    """0.d₁d₂… × 10^point as ECMAScript's Number::toString writes it."""
    if len(digits) <= point <= 21:
        return digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    power = point - 1
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{tail}e{'+' if power > 0 else '-'}{abs(power)}"


FORMAT = 1  # raised when the same recipe gets another canonical form


def recipe_hash(profile: RankingProfile) -> str:
    """SHA-256 of the canonical JSON of the canonical recipe, 64 hex digits."""
    return canonical_hash(canonical_recipe(profile))


def signal_schema_hash(profile: RankingProfile) -> str:
    """SHA-256 over the unit and range of all evidence a profile reads, 64 hex digits."""
    return canonical_hash(canonical_recipe(profile)["evidence"])


def canonical_recipe(profile: RankingProfile) -> dict[str, Any]:
    """What is hashed, as JSON values."""
    roots = [
        name
        for node in (profile.score, profile.rerank)
        if node is not None
        for name in node_inputs(node)
    ]
    nodes = reachable(roots, nodes=profile.nodes, signals=profile.signals)[0]
    signals = profile.signals_needed
    kinds = [
        kind for name in signals for kind in profile.kinds(name) if profile.signals[name].evidence
    ]
    scope, select = profile.scope, profile.select
    return {
        "format": FORMAT,
        "pool": [profile.pool.size, profile.pool.max],
        "evidence": {kind.name: _evidence(kind) for kind in kinds},
        "signals": {name: _signal(profile.signals[name]) for name in signals},
        "nodes": {name: _node(profile.nodes[name]) for name in nodes},
        "score": _node(profile.score),
        "rerank": None if profile.rerank is None else _node(profile.rerank),
        "reranking": profile.reranking,
        "min_score": profile.floors.min_score,
        "floors": {name: [it.min, it.absent] for name, it in profile.floors.signals.items()},
        "scope": [scope.mode.value, scope.half_life_levels, scope.floor],
        "ties": list(profile.ties),
        "select": [
            select.top,
            select.max_tokens,
            select.duplicate_penalty,
            select.diversity,
        ],
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
