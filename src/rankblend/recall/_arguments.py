"""The arguments of a memory's calls, read and checked: all problems at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from numbers import Real
from typing import cast

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import (
    InvalidArgumentError,
    InvalidArrayError,
    InvalidScopeError,
    nearest_name,
)
from rankblend.relevance import Scope, evidence_names, lookup_evidence, named, real_number, shown
from rankblend.stores import LayerPolicy, Reach, Seed, Statistics, Store, as_unit, lengths, to_unit
from rankblend.stores.catalog import Filters

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
    number = isinstance(busy_timeout, int | float) and not isinstance(busy_timeout, bool)
    if not number or not 0 < busy_timeout <= _LONGEST_WAIT:  # type: ignore[operator]
        problems.add(
            f"busy_timeout: expected seconds in (0, {_LONGEST_WAIT:,}], got {shown(busy_timeout)}"
        )
    problems.seconds("store_timeout", store_timeout)
    if not isinstance(statistics, str) or statistics not in set(Statistics):
        problems.add(f"statistics: expected root, visible or store, got {shown(statistics)}")
    for name, value in functions.items():
        if value is not None and not callable(value):
            problems.add(f"{name}: expected a callable, got {type(value).__name__}")


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
        problems.add(f"layers: expected policies by layer name, got {type(given).__name__}")
        return {}
    for name, policy in given.items():
        if not isinstance(name, str):
            problems.add(f"layers: expected names, got {type(name).__name__}")
        if not isinstance(policy, LayerPolicy):
            problems.add(
                f"layers[{named(name)!r}]: expected a LayerPolicy, got {type(policy).__name__}"
            )
    return given


def read_stores(problems: Problems, given: object) -> tuple[Store, ...] | None:
    """The stores of a memory; None leaves the choice to it."""
    if given is None:
        return None
    if not isinstance(given, Iterable):
        problems.add(f"stores: expected several stores, got {type(given).__name__}")
        return ()
    stores = tuple(given)
    for position, store in enumerate(stores):
        if not isinstance(store, Store):
            problems.add(
                f"stores[{position}]: expected a store (name, emits, propose, observe, close), "
                f"got {type(store).__name__}"
            )
        elif isinstance(store.emits, str):
            problems.add(f"stores[{position}].emits: expected a tuple of names, got one text")
        else:
            for name in map(str, store.emits):
                if lookup_evidence(name) is None:
                    near = nearest_name(name, evidence_names())
                    hint = f'did you mean "{near}"?' if near else "register_evidence makes it known"
                    problems.add(f"stores[{position}].emits: unknown evidence {name!r:.40}: {hint}")
    return stores


MAX_TEXT = 1_000_000
MAX_ID = 512
MAX_LABEL = 100
# A double has no room for the last microseconds of year 9999: `datetime.max` rounds into year 10000.
_LAST = math.nextafter(datetime.max.replace(tzinfo=UTC).timestamp(), 0.0)

# Vectors whose greatest number lies between these have squares that float32 can hold.
_LEAST, _MOST = 1e-15, 1e15
_USUAL = (np.dtype(np.float32), np.dtype(np.float64))
_CHUNK = 1024  # vectors read at once: they stay in cache


class Problems:
    """Collects what is wrong with a call, then raises it all."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def add(self, problem: str) -> None:
        """Note one problem."""
        self.found.append(problem)

    def raise_if_any(self) -> None:
        """Raise `InvalidArgumentError` when something was noted."""
        if self.found:
            raise InvalidArgumentError(self.found)

    def integer(self, name: str, value: object, *, least: int) -> None:
        """Note a problem unless ``value`` is None or an integer ≥ ``least``."""
        if value is None:
            return
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.add(f"{name}: expected None or an integer ≥ {least}, got {shown(value)}")

    def seconds(self, name: str, value: object) -> None:
        """Note a problem unless ``value`` is None or a finite number of seconds above 0."""
        number = real_number(value)
        if value is not None and (number is None or not 0.0 < number < math.inf):
            self.add(f"{name}: expected None or a positive number of seconds, got {shown(value)}")

    def fraction(self, name: str, value: object) -> float | None:
        """The value as a float in [0, 1], or None; notes a problem otherwise."""
        if value is None:
            return None
        # float before Real: asking an abstract class takes ten times as long
        if isinstance(value, bool) or not isinstance(value, float | Real):
            self.add(f"{name}: expected None or a number in [0, 1], got {type(value).__name__}")
            return None
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not 0.0 <= number <= 1.0:
            self.add(f"{name}: expected None or a number in [0, 1], got {number!r}")
            return None
        return number

    def weight(self, name: str, value: object) -> float:
        """The value as a float in (0, 1]; notes a problem otherwise."""
        before = len(self.found)
        number = self.fraction(name, value)
        if not number and len(self.found) == before:
            self.add(f"{name}: expected a number above 0")
        return number or 0.0

    def text(self, name: str, value: object, *, limit: int, blank: bool = False) -> str:
        """The value as text that can be stored; notes a problem otherwise."""
        if not isinstance(value, str):
            self.add(f"{name}: expected text, got {type(value).__name__}")
            return ""
        if not blank and not value.strip():
            self.add(f"{name}: expected some text, got a blank")
        if len(value) > limit:
            self.add(f"{name}: expected at most {limit:,} characters, got {len(value):,}")
        if not value.isascii():
            self.encodable(name, value)
        return value

    def encodable(self, name: str, value: str) -> bool:
        """Whether text can be stored as UTF-8; notes a problem otherwise."""
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            self.add(f"{name}: contains a lone surrogate, which cannot be stored as UTF-8")
            return False
        return True


def read_scope(problems: Problems, name: str, value: object) -> Scope | None:
    """One scope, given as a `Scope` or as text."""
    if isinstance(value, Scope):
        return value
    try:
        return Scope.parse(value)  # type: ignore[arg-type]
    except InvalidScopeError as error:
        problems.add(f"{name}: {str(error).removeprefix('scope: ').removeprefix('scope ')}")
        return None


def read_scopes(problems: Problems, value: object) -> tuple[Scope, ...]:
    """One scope or several, as `Scope`s or text; duplicates are dropped, order is kept."""
    if isinstance(value, Scope | str) or not isinstance(value, Iterable):
        scope = read_scope(problems, "scope", value)
        return (scope,) if scope is not None else ()
    found = [read_scope(problems, f"scope[{i}]", item) for i, item in enumerate(value)]
    if not found:
        problems.add("scope: expected at least one scope, got none")
    return tuple(dict.fromkeys(scope for scope in found if scope is not None))


def read_time(problems: Problems, name: str, value: object) -> float | None:
    """An aware datetime (or ISO 8601 text with an offset) as seconds since the epoch, UTC."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            problems.add(f"{name}: expected ISO 8601, e.g. '2026-03-01T12:00:00+00:00'")
            return None
    if not isinstance(value, datetime):
        problems.add(f"{name}: expected an aware datetime, got {type(value).__name__}")
        return None
    if value.tzinfo is None or value.utcoffset() is None:
        problems.add(f"{name}: expected a datetime with a time zone, got a naive one; "
                     "use datetime.now(UTC)")  # fmt: skip
        return None
    try:
        return value.astimezone(UTC).timestamp()
    except OverflowError:
        problems.add(f"{name}: expected a time within the years 1 to 9999 of UTC")
        return None


def as_datetime(seconds: float | None) -> datetime | None:
    """Seconds since the epoch as an aware UTC datetime."""
    return None if seconds is None else datetime.fromtimestamp(min(seconds, _LAST), UTC)


def read_ids(problems: Problems, value: object) -> tuple[str, ...]:
    """One id or several, without repeats."""
    ids = (value,) if isinstance(value, str) else value
    if not isinstance(ids, Iterable):
        problems.add(f"ids: expected an id or several, got {type(value).__name__}")
        return ()
    found = tuple(ids)
    for position, identifier in enumerate(found):
        if not isinstance(identifier, str):
            problems.add(f"ids[{position}]: expected text, got {type(identifier).__name__}")
    return tuple(dict.fromkeys(i for i in found if isinstance(i, str)))


def read_seeds(problems: Problems, value: object) -> tuple[Seed, ...]:
    """Names of memories or entities to start from, or `Seed`s."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        problems.add("seeds: expected a sequence of ids or entity names")
        return ()
    seeds = []
    for position, item in enumerate(value):
        if isinstance(item, Seed):
            problems.text(f"seeds[{position}].id", item.id, limit=MAX_ID)
            problems.weight(f"seeds[{position}].weight", item.weight)
            seeds.append(item)
        elif isinstance(item, str) and item.strip():
            seeds.append(Seed(item))
        else:
            problems.add(f"seeds[{position}]: expected a name or a Seed")
    return tuple(seeds)


def read_reach(problems: Problems, value: object, *, allowed: bool) -> Reach:
    """``ancestors``, or ``subtree`` where the memory was opened for it."""
    try:
        reach = Reach(value)  # type: ignore[arg-type]
    except ValueError:
        problems.add(f"reach: expected 'ancestors' or 'subtree', got {shown(value)}")
        return Reach.ANCESTORS
    if reach is Reach.SUBTREE and not allowed:
        problems.add("reach: 'subtree' shows memories stored below the scope; open the memory with "
                     "allow_subtree=True to permit it")  # fmt: skip
    return reach


def read_vector(problems: Problems, name: str, value: object) -> NDArray[np.float32] | None:
    """A given embedding as it is stored: float32, shape (d,), unit length."""
    if value is None:
        return None
    try:
        return as_unit(_within_reach(value), name, None)
    except InvalidArrayError as error:
        problems.add(str(error))
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
        problems.add(f"query: expected text, got {type(value).__name__}")
        return ""
    if len(value) > MAX_TEXT:
        problems.add(f"query: expected at most {MAX_TEXT:,} characters, got {len(value):,}")
        return ""
    return value.encode("utf-8", "replace").decode("utf-8")


def read_filters(problems: Problems, name: str, value: object) -> Filters:
    """Conditions over metadata, layer and times, as ``filters`` and ``prefer`` take them."""
    try:
        return Filters.parse(value)  # type: ignore[arg-type]
    except InvalidArgumentError as error:
        problems.found += [
            f"{name}: {problem.removeprefix('filters: ')}" for problem in error.problems
        ]
        return Filters()
