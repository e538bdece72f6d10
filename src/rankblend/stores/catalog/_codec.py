"""Between `Record` and the rows of the catalog: checked on the way in, rebuilt on the way out.

Everything follows from the declared fields: `MEMORY` and `REVISED` are the names of the columns that
belong to a memory and to each of its revisions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from operator import attrgetter
from typing import Any

import numpy as np
from attrs import fields
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError, RankblendError
from rankblend.relevance import Scope
from rankblend.stores._fields import NAME
from rankblend.stores._record import FIELDS, Key, Record
from rankblend.stores._unit_vectors import lengths

MEMORY = tuple(each.name for each in FIELDS if not each.revised)
REVISED = (*(each.name for each in FIELDS if each.revised), "digest")
DIGEST = len(MEMORY) + REVISED.index("digest")  # where it stands in an encoded record
_ATTRIBUTES = tuple(each.name for each in fields(Record))
_FIELD_NAMES = tuple(each.name for each in FIELDS)
_VALUES = attrgetter(*_FIELD_NAMES)
_ROW = ("scope", "id", "serial", *MEMORY, *REVISED)
_BY_PLACE = sorted(FIELDS, key=lambda each: each.revised)  # as in MEMORY, then REVISED
_VECTOR = np.dtype("<f4")


def listed(table: str, names: Sequence[str]) -> str:
    """Columns of a table, as a statement lists them."""
    return ", ".join(f"{table}.{name}" for name in names)


class ScopeReader:
    """Storage paths back to scopes; each path is parsed once."""

    def __init__(self) -> None:
        self._known: dict[str, Scope] = {}

    def __call__(self, path: str) -> Scope:
        """The scope with this `Scope.path`.

        Raises:
            ValueError, TypeError: There is none; the path was damaged.
        """
        scope = self._known.get(path)
        if scope is None:
            try:
                scope = Scope.parse(path[:-1])
            except RankblendError as error:
                raise LookupError("no scope has such a path") from error
            if scope.path != path:
                raise ValueError("a scope has another path")
            self._known[path] = scope
        return scope


def text_digest(text: str, normalize: Callable[[str], str]) -> int:
    """64 bits of the normalized text, as a signed integer: equal texts have equal digests."""
    digest = blake2b(normalize(text).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def encode_records(
    records: Sequence[Record], normalize: Callable[[str], str]
) -> list[tuple[Any, ...]]:
    """What the file keeps of each record, in the order of `MEMORY` and `REVISED`.

    Raises:
        InvalidArgumentError: What could not be stored or read back unchanged: every problem of
            every record, ``drafts[i]: field: …``.
    """
    given: Sequence[object] = records
    problems = [
        (at, f"expected a Record, got {type(each).__name__}")
        for at, each in enumerate(given)
        if not isinstance(each, Record)
    ]
    if problems or not records:
        _refuse(problems)
        return []
    columns = dict(zip(_FIELD_NAMES, zip(*map(_VALUES, records), strict=True), strict=True))
    _refuse(_problems(records, columns, closely=False))
    try:
        encoded = [each.encoded(columns[each.name]) for each in _BY_PLACE]
    except (TypeError, ValueError, RecursionError):  # metadata that is no JSON
        _refuse(_problems(records, columns, closely=True))
        raise
    digests = [text_digest(text, normalize) for text in columns["text"]]
    return list(zip(*encoded, digests, strict=True))


def _problems(
    records: Sequence[Record], columns: Mapping[str, Sequence[Any]], *, closely: bool
) -> list[tuple[int, str]]:
    found = _key_problems([record.key for record in records])
    for each in FIELDS:
        found += each.problems(columns[each.name], closely=closely)
    return found


def _refuse(problems: list[tuple[int, str]]) -> None:
    if problems:
        problems.sort(key=lambda found: found[0])
        raise InvalidArgumentError(f"drafts[{at}]: {problem}" for at, problem in problems)


def _key_problems(keys: Sequence[Key]) -> list[tuple[int, str]]:
    problems = [
        (at, "key: expected a Key with a Scope")
        for at, key in enumerate(keys)
        if type(key) is not Key or type(key.scope) is not Scope
    ]
    if problems:
        return problems
    ids = [key.id for key in keys]
    if NAME.sound(ids):
        return []
    return [(at, f"id{problem}") for at, id_ in enumerate(ids) for problem in NAME.wrong(id_)]


def stored_records(
    drafts: Sequence[Record],
    contents: Sequence[tuple[Any, ...]],
    serials: Sequence[int],
    vectors: Sequence[NDArray[np.float32] | None],
) -> list[Record]:
    """New memories as reading them would give them: nothing in them is shared with the drafts."""
    if not drafts:
        return []
    columns = dict(zip((*MEMORY, *REVISED), zip(*contents, strict=True), strict=True))
    return _made([draft.key for draft in drafts], serials, vectors, columns)


def rebuild(
    rows: Sequence[Sequence[Any]],
    scopes: ScopeReader,
    vectors: Sequence[NDArray[np.float32] | None],
) -> list[Record]:
    """Records from rows of ``scope, id, serial``, `MEMORY`, `REVISED` and whatever follows."""
    if not rows:
        return []
    columns = dict(zip(_ROW, zip(*rows, strict=True), strict=False))
    ids = NAME.decode(columns["id"])
    keys = [Key(scopes(path), id_) for path, id_ in zip(columns["scope"], ids, strict=True)]
    return _made(keys, columns["serial"], vectors, columns)


def _made(
    keys: Sequence[Key],
    serials: Sequence[int],
    vectors: Sequence[NDArray[np.float32] | None],
    columns: Mapping[str, Sequence[Any]],
) -> list[Record]:
    """Records from what the file keeps of them, column by column."""
    values: dict[str, Sequence[Any]] = {"key": keys, "serial": serials, "vector": vectors}
    values |= {each.name: each.decoded(columns[each.name]) for each in FIELDS}
    return list(map(Record, *(values[name] for name in _ATTRIBUTES)))


def stacked_vectors(
    records: Sequence[Record], dimension: int | None
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Positions of the records that have a vector, and the vectors: float32 (n, d), read-only.

    Args:
        records: Checked records.
        dimension: d of the catalog; None while it holds no vector.

    Raises:
        InvalidArgumentError: Vectors of another dimension, not finite, or of length 0; all at once.
    """
    positions = [i for i, record in enumerate(records) if record.vector is not None]
    if not positions:
        return np.empty(0, np.int64), np.empty((0, dimension or 0), _VECTOR)
    arrays = [np.asarray(records[i].vector) for i in positions]
    expected = dimension or max(arrays[0].size, 1)
    wrong = [
        f"drafts[{i}]: vector: expected shape ({expected},), got {array.shape}"
        for i, array in zip(positions, arrays, strict=True)
        if array.shape != (expected,)
    ]
    if wrong:
        raise InvalidArgumentError(wrong)
    try:
        with np.errstate(over="ignore"):  # becomes infinite, which is refused below
            joined = np.concatenate(arrays, dtype=_VECTOR, casting="same_kind")
    except (TypeError, ValueError):
        raise InvalidArgumentError("drafts: vector: expected float32 arrays") from None
    matrix = joined.reshape(len(arrays), expected)
    found = lengths(matrix)
    bad = np.flatnonzero(~(np.isfinite(found) & (found > 0)))
    if len(bad):
        raise InvalidArgumentError(
            f"drafts[{positions[row]}]: vector: expected finite values that are not all zero"
            for row in bad
        )
    matrix.setflags(write=False)
    return np.array(positions, np.int64), matrix
