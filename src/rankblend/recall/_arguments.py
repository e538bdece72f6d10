"""The arguments of a memory's calls, read and checked: all problems at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import cast

import numpy as np
from numpy.typing import NDArray

from rankblend.checks import At, Problems
from rankblend.errors import (
    InvalidArgumentError,
    InvalidArrayError,
    InvalidScopeError,
    nearest_name,
)
from rankblend.relevance import Scope, evidence_names, lookup_evidence
from rankblend.stores import LayerPolicy, Reach, Seed, Statistics, Store, as_unit, lengths, to_unit
from rankblend.stores.catalog import Filters
from rankblend.values import named, shown

_LONGEST_WAIT = 2_000_000  # SQLite counts milliseconds in 31 bits


def check_options(
    problems: Problems,
    *,
    busy_timeout: object,
    store_timeout: object,
    statistics: object,
    functions: Mapping[str, object],
) -> None:
    """Note what is wrong with the simple options of `Memory.open`.

    Args:
        problems: Where to note it.
        busy_timeout: Seconds above 0.
        store_timeout: Seconds above 0, or None.
        statistics: One of `Statistics`.
        functions: By name, None for the default.
    """
    problems.number("busy_timeout", busy_timeout, above=0.0, most=_LONGEST_WAIT)
    problems.number("store_timeout", store_timeout, above=0.0, optional=True)
    if not isinstance(statistics, str) or statistics not in set(Statistics):
        problems.add("statistics", f"expected root, visible or store, got {shown(statistics)}")
    for name, value in functions.items():
        if value is not None:
            problems.callable(name, value)


def system_clock() -> datetime:
    """The present."""
    return datetime.now(UTC)


def quarter_of_the_characters(text: str) -> int:
    """A common rule of thumb for English; pass ``token_counter`` for a model's own count."""
    return -(-len(text) // 4)


def read_layers(problems: Problems, given: object) -> Mapping[str, LayerPolicy]:
    """Policies by layer name; None is none."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        problems.add("layers", f"expected policies by layer name, got {type(given).__name__}")
        return {}
    for name, policy in given.items():
        if not isinstance(name, str):
            problems.add("layers", f"expected names, got {type(name).__name__}")
        if not isinstance(policy, LayerPolicy):
            problems.add(
                f"layers[{named(name)!r}]", f"expected a LayerPolicy, got {type(policy).__name__}"
            )
    return given


def read_stores(problems: Problems, given: object) -> tuple[Store, ...] | None:
    """The stores of a memory; None leaves the choice to it."""
    if given is None:
        return None
    if not isinstance(given, Iterable):
        problems.add("stores", f"expected several stores, got {type(given).__name__}")
        return ()
    stores = tuple(given)
    for position, store in enumerate(stores):
        if not isinstance(store, Store):
            problems.add(
                f"stores[{position}]",
                f"expected a store (name, emits, propose, observe, close), "
                f"got {type(store).__name__}",
            )
        elif isinstance(store.emits, str):
            problems.add(f"stores[{position}].emits", "expected a tuple of names, got one text")
        else:
            for name in map(str, store.emits):
                if lookup_evidence(name) is None:
                    near = nearest_name(name, evidence_names())
                    hint = f'did you mean "{near}"?' if near else "register_evidence makes it known"
                    problems.add(
                        f"stores[{position}].emits", f"unknown evidence {name!r:.40}: {hint}"
                    )
    return stores


MAX_TEXT = 1_000_000
MAX_ID = 512
MAX_LABEL = 100

# Vectors whose greatest number lies between these have squares that float32 can hold.
_LEAST, _MOST = 1e-15, 1e15
_USUAL = (np.dtype(np.float32), np.dtype(np.float64))
_CHUNK = 1024  # vectors read at once: they stay in cache


def read_scope(problems: Problems, at: At, value: object) -> Scope | None:
    """One scope, given as a `Scope` or as text."""
    if isinstance(value, Scope):
        return value
    try:
        return Scope.parse(value)  # type: ignore[arg-type]
    except InvalidScopeError as error:
        problems.add(at, str(error).removeprefix("scope: ").removeprefix("scope "))
        return None


def read_scopes(problems: Problems, value: object) -> tuple[Scope, ...]:
    """One scope or several, as `Scope`s or text; duplicates are dropped, order is kept."""
    if isinstance(value, Scope | str) or not isinstance(value, Iterable):
        scope = read_scope(problems, "scope", value)
        return (scope,) if scope is not None else ()
    found = [read_scope(problems, ("scope", i), item) for i, item in enumerate(value)]
    if not found:
        problems.add("scope", "expected at least one scope, got none")
    return tuple(dict.fromkeys(scope for scope in found if scope is not None))


def read_ids(problems: Problems, value: object) -> tuple[str, ...]:
    """One id or several, without repeats."""
    ids = (value,) if isinstance(value, str) else value
    if not isinstance(ids, Iterable):
        problems.add("ids", f"expected an id or several, got {type(value).__name__}")
        return ()
    found = tuple(ids)
    for position, identifier in enumerate(found):
        if not isinstance(identifier, str):
            problems.add(f"ids[{position}]", f"expected text, got {type(identifier).__name__}")
    return tuple(dict.fromkeys(i for i in found if isinstance(i, str)))


def read_seeds(problems: Problems, value: object) -> tuple[Seed, ...]:
    """Names of memories or entities to start from, or `Seed`s."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        problems.add("seeds", "expected a sequence of ids or entity names")
        return ()
    seeds = []
    for position, item in enumerate(value):
        if isinstance(item, Seed):
            problems.text(("seeds", position, "id"), item.id, limit=MAX_ID)
            problems.number(("seeds", position, "weight"), item.weight, above=0.0, most=1.0)
            seeds.append(item)
        elif isinstance(item, str) and item.strip():
            seeds.append(Seed(item))
        else:
            problems.add(f"seeds[{position}]", "expected a name or a Seed")
    return tuple(seeds)


def read_reach(problems: Problems, value: object, *, allowed: bool) -> Reach:
    """``ancestors``, or ``subtree`` where the memory was opened for it."""
    try:
        reach = Reach(value)  # type: ignore[arg-type]
    except ValueError:
        problems.add("reach", f"expected 'ancestors' or 'subtree', got {shown(value)}")
        return Reach.ANCESTORS
    if reach is Reach.SUBTREE and not allowed:
        problems.add("reach", "'subtree' shows memories stored below the scope; open the memory with "
                     "allow_subtree=True to permit it")  # fmt: skip
    return reach


def read_vector(problems: Problems, at: str, value: object) -> NDArray[np.float32] | None:
    """A given embedding as it is stored: float32, shape (d,), unit length."""
    if value is None:
        return None
    try:
        return as_unit(_within_reach(value), at, None)
    except InvalidArrayError as error:
        problems.extend("", [str(error)])
        return None


def ordinary_vectors(values: Sequence[object]) -> list[NDArray[np.float32] | None]:
    """What `read_vector` says of many embeddings, those that are usual ones read together.

    Usual is an array of floats, one of many of its length, that needs no scaling and can be stored.

    Returns:
        One per value: float32, shape (d,), unit length; None for the others, which are to be read
        one by one.
    """
    found: list[NDArray[np.float32] | None] = [None] * len(values)
    alike: dict[tuple[str, int], list[int]] = {}
    for at, value in enumerate(values):
        if type(value) is np.ndarray and value.ndim == 1 and value.dtype in _USUAL and value.size:
            alike.setdefault((value.dtype.char, value.size), []).append(at)
    for positions in alike.values():
        for start in range(0, len(positions), _CHUNK):
            chunk = positions[start : start + _CHUNK]
            given = np.stack([cast("NDArray[np.floating]", values[at]) for at in chunk])
            largest = np.abs(given).max(axis=1)
            usual = np.flatnonzero((largest > _LEAST) & (largest < _MOST))
            rows = given[usual].astype(np.float32, copy=False)
            for which, unit in zip(usual.tolist(), to_unit(rows, lengths(rows)), strict=True):
                found[chunk[which]] = unit
    return found


def _within_reach(value: object) -> object:
    """A vector whose squares leave the range of float32, scaled down or up; others as they are."""
    try:
        array = np.asarray(value)
    except ValueError:
        return value
    if array.dtype.kind != "f" or not array.size:
        return value
    largest = float(np.abs(array).max())
    usual = _LEAST < largest < _MOST
    return array / largest if 0.0 < largest < math.inf and not usual else value


def read_query(problems: Problems, value: object) -> str:
    """The query text; blank is a cold start, a lone surrogate is replaced, not refused."""
    if not isinstance(value, str):
        problems.add("query", f"expected text, got {type(value).__name__}")
        return ""
    if len(value) > MAX_TEXT:
        problems.add("query", f"expected at most {MAX_TEXT:,} characters, got {len(value):,}")
        return ""
    return value.encode("utf-8", "replace").decode("utf-8")


def read_filters(problems: Problems, name: str, value: object) -> Filters:
    """Conditions over metadata, layer and times, as ``filters`` and ``prefer`` take them."""
    try:
        return Filters.parse(value)  # type: ignore[arg-type]
    except InvalidArgumentError as error:
        for problem in error.problems:
            problems.add(name, problem.removeprefix("filters: "))
        return Filters()
