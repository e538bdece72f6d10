"""From evidence to signals: the curves of a profile over the columns of all stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from rankblend.errors import InvalidArrayError, MemoryContractError
from rankblend.profiles import RankingProfile, SignalRecipe
from rankblend.recall._candidates import Candidates, EvidenceColumn
from rankblend.relevance import Evidence, SignalTable, apply_steps, as_signals, is_batch_relative
from rankblend.stores import Reason

# How far outside its range evidence may lie: half-precision unit vectors have cosines up to 1.001.
RANGE_SLACK = 1e-3

# When several stores could have given a signal and none did, the most telling reason is shown.
_TELLING = (
    Reason.PRESENT,
    Reason.FAILED,
    Reason.TIMED_OUT,
    Reason.CAPPED,
    Reason.NOT_PERMITTED,
    Reason.NOT_APPLICABLE,
    Reason.UNKNOWN,
    Reason.NOT_EMITTED,
)
_PRESENT, _NOT_APPLICABLE = np.int8(Reason.PRESENT), np.int8(Reason.NOT_APPLICABLE)
_TELL_RANK = np.array([_TELLING.index(Reason(code)) for code in range(len(Reason))], np.int8)


@frozen(eq=False)
class Derived:
    """The signals of every candidate.

    Args:
        table: One row a candidate, one column a signal the profile reaches.
        reasons: Signal → int8, shape (n,), why each value is present or absent.
        lenders: Signal → int64, shape (n,): the candidate whose value stands here; another row
            than one's own after `collapse`.
        told: (signal, remark of its curve, e.g. ``uses_parent_prior``) → bool, shape (n,): whether
            the remark holds.
    """

    table: SignalTable
    reasons: Mapping[str, NDArray[np.int8]]
    lenders: Mapping[str, NDArray[np.int64]]
    told: Mapping[tuple[str, str], NDArray[np.bool_]] = field(factory=dict)


def derive(profile: RankingProfile, candidates: Candidates) -> Derived:
    """Apply the profile's curves to the evidence.

    Two stores that give one signal for one memory are merged after their curves: the strongest
    value stands, or the profile's ``merge`` says that this is an error.

    Raises:
        MemoryContractError: Two stores disagree on a signal whose merge rule is ``error``, or a
            store gave evidence outside its range.
    """
    recipes = _derivations(profile)
    told: dict[tuple[str, str], NDArray[np.bool_]] = {}
    sources = [
        source
        for each in recipes
        if not each.recipe.of
        for source in _sources(each, candidates, told)
    ]
    offered = _offered(sources)
    values: dict[str, NDArray[np.float64]] = {}
    reasons: dict[str, NDArray[np.int8]] = {}
    for each in recipes:
        name, of = each.name, each.recipe.of
        if of:
            made_of = [values[other] for other in of]
            made, _ = _applied(each, made_of, candidates)
            values[name] = as_signals([made], [each.kinds])[0]
            reasons[name] = _reason_of_first([reasons[other] for other in of], values[name])
        else:
            given = offered.get(name, [])
            values[name], reasons[name] = _merge(name, given, len(candidates), each.recipe.merge)
    names = tuple(values)
    matrix = np.empty((len(candidates), len(names)), order="F")  # read column by column
    for at, column in enumerate(values.values()):
        matrix[:, at] = column
    table = SignalTable.of_checked(candidates.ids, names, matrix)
    return Derived(table, reasons, dict.fromkeys(names, np.arange(len(candidates))), told)


@frozen(eq=False)
class _Derivation:
    """How one signal is derived, with what is looked up once for each profile.

    Args:
        name: The signal.
        recipe: Its recipe.
        kinds: What its curve reads.
        evidence: The store (empty: any) and bare name of each evidence.
    """

    name: str
    recipe: SignalRecipe
    kinds: tuple[Evidence, ...]
    evidence: tuple[tuple[str, str], ...]


@lru_cache(maxsize=64)
def _derivations(profile: RankingProfile) -> tuple[_Derivation, ...]:
    """The signals a profile needs, each after those it is made of."""
    return tuple(
        _Derivation(
            name,
            profile.signals[name],
            profile.kinds(name),
            tuple(
                (store, bare)
                for store, _, bare in (e.rpartition(".") for e in profile.signals[name].evidence)
            ),
        )
        for name in profile.signals_needed
    )


def collapse(
    profile: RankingProfile, candidates: Candidates, derived: Derived
) -> tuple[Derived, NDArray[np.int64], NDArray[np.int64]]:
    """Keep one candidate of each group of equivalents, with the group's strongest relevance.

    The representative is the one at the nearest scope, then with the least id. Signals about the
    match with the query (their evidence says so) take the strongest value in the group; everything
    else about the representative stays its own. A group counts once.

    Returns:
        The signals of all candidates with the representatives' relevance raised; int64 positions
        of the representatives, in pool order; for every candidate the position of its
        representative.
    """
    n = len(candidates)
    own = np.arange(n)
    stands_for = _representatives(candidates)
    kept = np.flatnonzero(stands_for == own)
    if kept.size == n:
        return derived, kept, stands_for

    values = derived.table.values.copy()
    reasons = dict(derived.reasons)
    lenders = dict(derived.lenders)
    for column, name in enumerate(derived.table.names):
        if not profile.is_relevance(name):
            continue
        strongest = values[:, column].copy()
        lender, reason = lenders[name].copy(), reasons[name].copy()
        for i in np.flatnonzero(stands_for != own).tolist():
            to = int(stands_for[i])
            offered = derived.table.values[i, column]
            if not np.isnan(offered) and not strongest[to] >= offered:
                strongest[to], lender[to], reason[to] = offered, i, Reason.PRESENT
        values[:, column], lenders[name], reasons[name] = strongest, lender, reason
    table = SignalTable.of_checked(derived.table.ids, derived.table.names, values)
    return Derived(table, reasons, lenders, derived.told), kept, stands_for


def _representatives(candidates: Candidates) -> NDArray[np.int64]:
    """For each candidate the one that stands for its group: the nearest, then the least id."""
    stands_for = np.arange(len(candidates))
    if np.array_equal(candidates.groups, stands_for):
        return stands_for
    _, group, sizes = np.unique(candidates.groups, return_inverse=True, return_counts=True)
    several = np.flatnonzero(sizes[group] > 1)
    best: dict[int, int] = {}
    for i in sorted(
        several.tolist(), key=lambda i: (int(candidates.distances[i]), candidates.ids[i])
    ):
        best.setdefault(int(group[i]), i)
    stands_for[several] = [best[int(of)] for of in group[several]]
    return stands_for


@frozen(eq=False)
class _Source:
    """One signal as one store gives it, its curve applied."""

    derivation: _Derivation
    store: str
    values: NDArray[np.float64]
    reasons: NDArray[np.int8]  # of the evidence


def _sources(
    derivation: _Derivation,
    candidates: Candidates,
    told: dict[tuple[str, str], NDArray[np.bool_]],
) -> Iterator[_Source]:
    """The curve of a recipe over each store that emits its first evidence, remarks into ``told``."""
    n, name = len(candidates), derivation.name
    for leading in _columns(candidates, *derivation.evidence[0]):
        inputs = [leading.values]
        for other in derivation.evidence[1:]:
            same = [c for c in _columns(candidates, *other) if c.store == leading.store]
            inputs.append(same[0].values if same else np.full(n, np.nan))
        _check_range(leading.store, derivation.kinds, inputs, candidates.ids)
        try:
            values, remarks = _applied(derivation, inputs, candidates)
        except InvalidArrayError as error:
            raise MemoryContractError(f"store {leading.store!r}: {error}") from error
        yield _Source(derivation, leading.store, values, leading.reasons)
        for remark, holds in remarks.items():
            told.setdefault((name, remark), holds)


def _applied(
    derivation: _Derivation, columns: Sequence[NDArray[np.float64]], candidates: Candidates
) -> tuple[NDArray[np.float64], Mapping[str, NDArray[np.bool_]]]:
    """`apply_steps`, query by query where a value depends on the other candidates of its query."""
    curve, kinds = derivation.recipe.curve, derivation.kinds
    if candidates.offsets is None or not is_batch_relative(curve):
        return apply_steps(curve, columns, kinds)
    made = [
        apply_steps(curve, [column[part] for column in columns], kinds) for part in candidates.parts
    ]
    values = np.concatenate([values for values, _ in made])
    return values, {
        remark: np.concatenate([told[remark] for _, told in made]) for remark in made[0][1]
    }


def _offered(
    sources: Sequence[_Source],
) -> dict[str, list[tuple[NDArray[np.float64], NDArray[np.int8]]]]:
    """Signal → what each store offers for it, with reasons; all of them at once."""
    if not sources:
        return {}
    try:
        signals = as_signals([s.values for s in sources], [s.derivation.kinds for s in sources])
    except InvalidArrayError:
        for source in sources:  # whose it is
            try:
                as_signals([source.values], [source.derivation.kinds])
            except InvalidArrayError as error:
                raise MemoryContractError(f"store {source.store!r}: {error}") from error
        raise
    absent = np.isnan(signals)
    why = np.full(signals.shape, _PRESENT)
    if absent.any():
        told = np.array([source.reasons for source in sources])
        why = np.where(absent, np.where(told == _PRESENT, _NOT_APPLICABLE, told), why)
    offered: dict[str, list[tuple[NDArray[np.float64], NDArray[np.int8]]]] = {}
    for source, values, reasons in zip(sources, signals, why, strict=True):
        offered.setdefault(source.derivation.name, []).append((values, reasons))
    return offered


def _check_range(
    store: str,
    kinds: Sequence[Evidence],
    columns: Sequence[NDArray[np.float64]],
    ids: Sequence[str],
) -> None:
    """Refuse what cannot be this evidence, such as a distance in place of a cosine.

    Curves would not tell: clipped, the greatest distance becomes the greatest similarity.
    """
    # Two reductions that pass over NaN; of many columns at once where the narrowest range has all.
    narrow = max(kind.low for kind in kinds), min(kind.high for kind in kinds)
    if len(columns) > 1 and _within(np.concatenate(columns), *narrow):
        return
    for kind, values in zip(kinds, columns, strict=True):
        if not _within(values, kind.low, kind.high):
            low, high = kind.low - RANGE_SLACK, kind.high + RANGE_SLACK
            row = int(np.argmax((values < low) | (values > high)))
            raise MemoryContractError(
                f"store {store!r}: expected {kind.name} in [{kind.low:g}, {kind.high:g}], "
                f"got {values[row]:g} for {ids[row]!r}"
            )


def _within(values: NDArray[np.float64], low: float, high: float) -> bool:
    low, high = low - RANGE_SLACK, high + RANGE_SLACK
    return not (
        np.fmin.reduce(values, initial=low) < low or np.fmax.reduce(values, initial=high) > high
    )


def _columns(candidates: Candidates, store: str, name: str) -> tuple[EvidenceColumn, ...]:
    columns = candidates.evidence.get(name, ())
    return tuple(c for c in columns if c.store == store) if store else columns


def _merge(
    name: str, sources: list[tuple[NDArray[np.float64], NDArray[np.int8]]], n: int, rule: str
) -> tuple[NDArray[np.float64], NDArray[np.int8]]:
    if len(sources) == 1:
        return sources[0]
    value = np.full(n, np.nan)
    reason = np.full(n, Reason.NOT_EMITTED, np.int8)
    for offered, why in sources:
        if rule == "error" and bool(np.any((value != offered) & ~np.isnan(value + offered))):
            raise MemoryContractError(
                f"signal {name!r}: two stores give different values for one memory and the profile "
                'says merge = "error"; name one of them as evidence = "store.evidence"'
            )
        value = np.fmax(value, offered)
        reason = np.where(_TELL_RANK[why] < _TELL_RANK[reason], why, reason)
    return value, reason


def _reason_of_first(
    reasons: list[NDArray[np.int8]], value: NDArray[np.float64]
) -> NDArray[np.int8]:
    """PRESENT where the signal is; else the most telling of its parts' reasons."""
    telling = np.full(value.size, Reason.NOT_EMITTED, np.int8)
    for why in reasons:
        telling = np.where(_TELL_RANK[why] < _TELL_RANK[telling], why, telling)
    return np.where(np.isnan(value), telling, _PRESENT)
