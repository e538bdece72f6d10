"""Curves as data: which curve, with which parameters, over which evidence.

A profile writes ``"clip"``, ``{ half_life = { days = 30 } }`` or a list of these, applied in turn.
Here they are read, checked against the ranges of the evidence, and applied by the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from math import inf, nan
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.caches import ReadOnly
from rankblend.checks import Problems
from rankblend.errors import InvalidArgumentError, InvalidArrayError, UnknownNameError
from rankblend.kernels import curves as kernels
from rankblend.relevance._evidence import Evidence
from rankblend.values import is_identifier, named, real_number, shown

LEAST = kernels.LEAST


@frozen
class Span:
    """Where values lie, and whether 0 means "not at all" there."""

    name: str
    low: float
    high: float
    zero: bool = False

    def beyond(self, low: float, high: float) -> bool:
        """Whether some values may lie outside of [low, high]."""
        return self.low < low or self.high > high

    def __str__(self) -> str:
        return f"{self.name} lies in {interval(self.low, self.high)}"


def hull(kinds: Sequence[Evidence]) -> Span:
    """The span that holds the values of all these kinds of evidence."""
    low, high = min(kind.low for kind in kinds), max(kind.high for kind in kinds)
    return Span(kinds[0].name, low, high, all(kind.natural_zero for kind in kinds))


def after(step: CurveStep, span: Span) -> Span:
    """The span behind one step: a curve that only rises or falls takes ends to ends."""
    curve, name = step.curve, f"the result of {step.name}"
    if curve.batch_relative or curve.direction == "mixed" or span.beyond(*curve.needs):
        return Span(name, 0.0, 1.0, span.zero and curve.batch_relative)
    ends = np.array([span.low, span.high, 0.0 if span.zero else span.low])
    low, high, zero = map(float, curve.function(ends, **dict(step.params)))
    # Of a falling curve 0 is the far end, such as "not reached"; a rising one can keep a zero.
    is_zero = high == 0.0 if curve.direction == "falling" else span.zero and zero == 0.0
    return Span(name, min(low, high), max(low, high), is_zero)


def interval(low: float, high: float) -> str:
    """For people: ``[0, 1]``, ``(0, inf)``."""
    left = "(0" if low == LEAST else "(-inf" if low <= -1e308 else f"[{low:g}"
    return f"{left}, inf)" if high >= 1e308 else f"{left}, {high:g}]"


FloatArray = NDArray[np.float64]
Params = tuple[tuple[str, float], ...]
TIME_UNITS = {"days": 86_400.0, "hours": 3_600.0, "seconds": 1.0}
SLACK = 1e-9  # how far rounding may carry a result out of [0, 1] before it counts as an error
MOST = kernels.MOST


@frozen
class CurveParameter:
    """A number in [low, high], needed if it has no default; ``seconds`` may be days or hours."""

    name: str
    low: float = -MOST
    high: float = MOST
    default: float | None = None

    @property
    def spellings(self) -> Mapping[str, float]:
        """How it may be written, each with the factor that converts to its own unit."""
        return TIME_UNITS if self.name == "seconds" else {self.name: 1.0}


@frozen
class Curve:
    """A curve that profiles can name.

    Args:
        function: Columns (float64, shape (n,), NaN absent), parameters as keywords → one column;
            with ``extras``, a tuple of that column and each extra array.
        inputs: Allowed numbers of columns.
        needs: The range its inputs must lie in.
        unit: The unit its evidence must have, or None for any.
        direction: The result of a pointwise curve that is ``rising`` or ``falling`` ends where the
            input's range ends; ``mixed`` and batch-relative ones promise [0, 1].
        batch_relative: A value depends on the other candidates of the query.
        reads_range: The function also takes ``minimum`` and ``natural_zero`` of the evidence.
        extras: Names of what the function tells besides the column.
    """

    name: str
    function: Callable[..., Any]
    parameters: tuple[CurveParameter, ...] = ()
    inputs: Sequence[int] = (1,)
    needs: tuple[float, float] = (-inf, inf)
    unit: str | None = None
    direction: Literal["rising", "falling", "mixed"] = "mixed"
    batch_relative: bool = False
    reads_range: bool = False
    extras: tuple[str, ...] = ()


def _built_in() -> Iterable[Curve]:
    def rising(name: str, *params: CurveParameter, low: float = 0.0, high: float = inf) -> Curve:
        return Curve(name, getattr(kernels, name), params, needs=(low, high), direction="rising")

    share, span = CurveParameter("floor", 0.0, 1.0, 0.0), CurveParameter("seconds", LEAST)
    yield rising("identity", high=1.0)
    yield rising("clip", low=-inf)
    yield rising("log_saturation", CurveParameter("n_max", LEAST, default=100.0))
    slope, middle = CurveParameter("k", LEAST, default=1.0), CurveParameter("m", default=0.0)
    yield rising("logistic", slope, middle, low=-inf)
    yield rising("saturation", CurveParameter("c", LEAST))
    yield rising("power", CurveParameter("p", LEAST))
    yield Curve("first_present", kernels.first_present, inputs=range(1, 65), direction="rising")
    yield Curve("half_life", kernels.half_life, (span,), unit="seconds", direction="falling")
    yield Curve("linear", kernels.linear, (span, share), unit="seconds", direction="falling")
    yield Curve("reciprocal", kernels.reciprocal, needs=(0.0, inf), direction="falling")
    pool: dict[str, Any] = {"direction": "rising", "batch_relative": True}
    yield Curve("over_max", kernels.over_max, needs=(0.0, inf), **pool)
    for function in (kernels.min_max, kernels.rank, kernels.z_logistic):
        yield Curve(function.__name__, function, reads_range=True, **pool)
    prior = CurveParameter("prior_weight", LEAST, default=5.0)
    rate = (prior, CurveParameter("agent_verdict_weight", 0.0, 1.0, 0.5))
    yield Curve("smoothed_rate", kernels.smoothed_rate, rate, (4, 8), (0.0, inf),
                extras=("uses_parent_prior",))  # fmt: skip


_REGISTRY: dict[str, Curve] = {curve.name: curve for curve in _built_in()}
CURVES: Mapping[str, Curve] = MappingProxyType(_REGISTRY)


def register_curve(curve: Curve) -> Curve:
    """Make a further curve known to profiles; no other curve is ever replaced by it."""
    if not is_identifier(curve.name) or _REGISTRY.setdefault(curve.name, curve) != curve:
        raise InvalidArgumentError(f"curve {curve.name!r}: expected an identifier not yet in use")
    return curve


@frozen
class CurveStep:
    """One curve with its parameters, completed by defaults and in the curve's own units and order.

    Durations may be given in days or hours and become seconds, so that 1 day equals 24 hours.

    Raises:
        InvalidArgumentError: All problems: unknown curve or parameter, missing, out of range.

    Example:
        >>> CurveStep("half_life", (("days", 30),))
        CurveStep(name='half_life', params=(('seconds', 2592000.0),))
    """

    name: str
    params: Params = ()

    def __attrs_post_init__(self) -> None:
        problems = Problems(show=shown)
        params = _complete(problems, self.name, dict(self.params))
        problems.raise_if_any()
        object.__setattr__(self, "params", params)  # the canonical form, set once

    @property
    def curve(self) -> Curve:
        """The registered curve."""
        return _REGISTRY[self.name]


def parse_curve(data: object, *, path: str = "curve") -> tuple[CurveStep, ...]:
    """Read plain data, as from TOML: a name, ``{name: {parameter: number}}``, or a list of these.

    Raises:
        InvalidArgumentError: All problems, each with its path below ``path``.
    """
    entries: Sequence[Any] = data if isinstance(data, list | tuple) else (data,)
    problems = Problems(show=shown, where=path)
    if not entries:
        problems.add("", "expected at least one curve, got an empty list")
    read: list[tuple[str, Params]] = []
    for i, entry in enumerate(entries):
        here = problems.at(i) if entries is data else problems
        one = isinstance(entry, Mapping) and len(entry) == 1
        name, table = next(iter(entry.items())) if one else (entry, {})
        if isinstance(name, str) and isinstance(table, Mapping):
            read.append((name, _complete(here, name, table)))
        else:
            wanted = "a name or one {name = {parameters}}; several are chained in a list"
            here.expected("", wanted, entry)
    problems.raise_if_any()
    return tuple(CurveStep(name, params) for name, params in read)


def plain_curve(steps: Sequence[CurveStep]) -> Any:
    """Back to plain data, complete: ``parse_curve(plain_curve(steps)) == tuple(steps)``.

    Durations are written in the greatest unit in which they are whole.
    """

    def plain(name: str, value: float) -> tuple[str, float]:
        for spelling, factor in CurveParameter(name).spellings.items():
            whole = value / factor
            if whole.is_integer() and abs(whole) < 2**53 and whole * factor == value:
                return spelling, int(whole)
        return name, value

    named = [(step.name, dict(plain(*pair) for pair in step.params)) for step in steps]
    entries = [{name: table} if table else name for name, table in named]
    return entries[0] if len(entries) == 1 else entries


def is_batch_relative(steps: Iterable[CurveStep]) -> bool:
    """Whether a value depends on which other candidates the query has: no floor can be put on it."""
    return any(step.curve.batch_relative for step in steps)


def check_curve(steps: Sequence[CurveStep], evidence: Sequence[Evidence]) -> list[str]:
    """What is wrong with reading this evidence through these steps; empty when all is well.

    Looks at the number of columns, the unit and range that each step needs, the direction (what
    rises with hops or ages would put the farthest or oldest first) and the range of the result.

    Example:
        >>> check_curve(parse_curve("identity"), [Evidence("cosine", "ratio", -1.0, 1.0)])
        ['identity needs values in [0, 1], cosine lies in [-1, 1]; use clip']
    """
    if not steps or not evidence:
        return ["expected at least one curve and one kind of evidence"]
    first, problems = steps[0].curve, []
    if len(evidence) not in first.inputs:
        wanted = " or ".join(map(str, first.inputs))
        problems.append(f"{first.name} reads {wanted} kinds of evidence, got {len(evidence)}")
    for kind in evidence:
        if first.unit not in (None, kind.unit):
            problems.append(f"{first.name} reads {first.unit}, {kind.name} is in {kind.unit}")
        elif first.direction == "rising" and kind.unit in ("hops", "seconds"):
            problems.append(f"{first.name} rises with {kind.name}, where less is better")
        elif first.direction == "falling" and kind.relevance and kind.natural_zero:
            problems.append(f"{first.name} falls with {kind.name}, where 0 is no match at all")
    spans, reached = [hull([kind]) for kind in evidence], hull(evidence)
    for i, step in enumerate(steps):
        name, needs = step.name, step.curve.needs
        wanted = f"{name} needs values in {interval(*needs)}"
        problems += [f"{wanted}, {span}; use clip" for span in spans if span.beyond(*needs)]
        if i > 0 and (step.curve.unit or 1 not in step.curve.inputs):
            problems.append(f"{name} can only come first, it reads evidence itself")
        reached = after(step, reached)
        spans = [reached]
    if reached.beyond(0.0, 1.0):
        problems.append(f"{reached}, a signal in [0, 1]; end with clip, saturation or over_max")
    return problems


def apply_curve(
    steps: Sequence[CurveStep], columns: Sequence[FloatArray], evidence: Sequence[Evidence]
) -> FloatArray:
    """The signal that the columns give: float64, shape (n,), every entry in [0, 1] or NaN.

    There is one column per kind of evidence: float64, shape (n,), NaN for absent; never changed.
    Curves within the pool also read the minimum and the natural zero of the evidence.

    Raises:
        InvalidArgumentError: Another number of columns than the first curve or ``evidence`` has.
        InvalidArrayError: Values a curve cannot take, or a result out of [0, 1].
    """
    return apply_curve_details(steps, columns, evidence)[0]


def apply_curve_details(
    steps: Sequence[CurveStep], columns: Sequence[FloatArray], evidence: Sequence[Evidence]
) -> tuple[FloatArray, Mapping[str, NDArray[Any]]]:
    """As ``apply_curve``, with what curves tell besides, such as ``uses_parent_prior`` (bool (n,))."""
    values, told = apply_steps(steps, columns, evidence)
    return as_signals([values], [evidence])[0], told


def apply_steps(
    steps: Sequence[CurveStep], columns: Sequence[FloatArray], evidence: Sequence[Evidence]
) -> tuple[FloatArray, Mapping[str, NDArray[Any]]]:
    """As ``apply_curve_details``, up to `as_signals`, which takes the columns of many curves."""
    given = len(columns)
    if not steps or given != len(evidence) or given not in steps[0].curve.inputs:
        raise InvalidArgumentError(f"curve: expected the columns it reads, got {given} columns")
    told: dict[str, NDArray[Any]] = {}
    values = list(columns)
    for i, step in enumerate(steps):
        curve, keywords = step.curve, dict[str, Any](step.params)
        if curve.reads_range:
            span = reduce(lambda span, done: after(done, span), steps[:i], hull(evidence))
            keywords.update(minimum=span.low, natural_zero=span.zero)
        try:
            result = curve.function(*values, **keywords)
        except InvalidArrayError as error:
            where = f"{step.name} of {_named(evidence)}"
            raise InvalidArrayError(where, error.expected, error.got) from error
        if curve.extras:
            result, *extras = result
            told.update(zip(curve.extras, extras, strict=True))
        if (shape := np.shape(result)) != np.shape(values[0]):
            raise InvalidArrayError(f"result of {curve.name}", "one value a row", f"shape {shape}")
        # What is absent stays absent, also where a plug-in forgets it.
        if len(values) == 1 and (absent := np.isnan(values[0])).any():
            result = np.where(absent, np.nan, result)
        values = [np.asarray(result, dtype=np.float64)]
    return values[0], ReadOnly(told)


def as_signals(columns: Sequence[FloatArray], evidence: Sequence[Sequence[Evidence]]) -> FloatArray:
    """Columns from `apply_steps` as signals: float64, shape (s, n), in [0, 1] or NaN, no −0.0.

    Raises:
        InvalidArrayError: A value out of [0, 1], beyond rounding; names the first such column.
    """
    signals = np.array(columns)
    # Two reductions that pass over NaN; what is within [0, 1] only loses its −0.0.
    least = np.fmin.reduce(signals, axis=None, initial=0.0)
    if least < 0.0 or np.fmax.reduce(signals, axis=None, initial=1.0) > 1.0:
        outside = (signals < -SLACK) | (signals > 1.0 + SLACK)
        if outside.any():
            at, row = (int(places[0]) for places in np.nonzero(outside))
            got = f"{signals[at, row]:g} in row {row}"
            where = f"the signal from {_named(evidence[at])}"
            raise InvalidArrayError(where, "values in [0, 1] or NaN", got)
        signals = np.minimum(np.maximum(signals, 0.0), 1.0)
    signals += 0.0
    return signals


def _named(evidence: Sequence[Evidence]) -> str:
    return ", ".join(kind.name for kind in evidence)


def _complete(problems: Problems, name: str, given: Mapping[str, Any]) -> Params:
    """All parameters of the curve in its own units; what is wrong is noted."""
    if name not in _REGISTRY:
        problems.add(name, str(UnknownNameError("curve", name, _REGISTRY)))
        return ()
    parameters, params = _REGISTRY[name].parameters, []
    known = [spelling for parameter in parameters for spelling in parameter.spellings]
    for key in (key for key in given if key not in known):
        problems.add(name, str(UnknownNameError("parameter", named(key), known)))
    for parameter in parameters:
        used = [spelling for spelling in parameter.spellings if spelling in given]
        if not used and parameter.default is not None:
            params.append((parameter.name, parameter.default))
        elif len(used) != 1:
            wanted, got = ", ".join(parameter.spellings), " and ".join(used) or "none"
            problems.add(name, f"expected one of {wanted}, got {got}")
        else:
            value, factor = given[used[0]], parameter.spellings[used[0]]
            number = real_number(value)
            number = nan if number is None or abs(number) > MOST / factor else number * factor
            if parameter.low <= number <= parameter.high:
                params.append((parameter.name, number + 0.0))
            else:
                wanted = f"a finite number in {interval(parameter.low, parameter.high)}"
                problems.expected(f"{name}.{used[0]}", wanted, value)
    return tuple(params)
