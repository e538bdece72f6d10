"""Between `Record` and the rows of the catalog: checked on the way in, rebuilt on the way out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError
from rankblend.relevance import Scope
from rankblend.stores._record import Key, Link, Record
from rankblend.stores.catalog._record_checks import dump_json, record_problems, unsound

DIGEST = 9  # where the digest stands in an encoded record
_VECTOR = np.dtype("<f4")
_IN_CACHE = 256  # rows
_read_json = json.JSONDecoder().raw_decode


class ScopeReader:
    """Storage paths back to scopes; each path is parsed once."""

    def __init__(self) -> None:
        self._known: dict[str, Scope] = {}

    def __call__(self, path: str) -> Scope:
        """The scope with this `Scope.path`."""
        scope = self._known.get(path)
        if scope is None:
            scope = self._known[path] = Scope.parse(path[:-1])
        return scope


def text_digest(text: str, normalize: Callable[[str], str]) -> int:
    """64 bits of the normalized text, as a signed integer: equal texts have equal digests."""
    digest = blake2b(normalize(text).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def encode_records(
    records: Sequence[Record], normalize: Callable[[str], str]
) -> list[tuple[Any, ...]]:
    """What each revision says, in the order of the columns ``at`` … ``metadata``.

    Raises:
        InvalidArgumentError: What could not be stored or read back unchanged: every problem of
            every record, ``drafts[i]: field: …``.
    """
    problems = unsound(records)
    if problems:
        raise InvalidArgumentError(problems)
    try:
        return [_encode(record, normalize) for record in records]
    except (TypeError, ValueError, RecursionError):  # metadata that is no JSON
        problems = record_problems(records, range(len(records)))
        if not problems:
            raise
        raise InvalidArgumentError(problems) from None


def _encode(record: Record, normalize: Callable[[str], str]) -> tuple[Any, ...]:
    metadata = dump_json(dict(record.metadata)) if record.metadata else None
    if metadata is not None and not metadata.isascii():
        metadata.encode()
    expires, salience, confidence = record.expires, record.salience, record.confidence
    return (
        float(record.at),
        None if expires is None else float(expires),
        record.layer,
        record.slot,
        None if salience is None else float(salience),
        None if confidence is None else float(confidence),
        record.review,
        record.maturity,
        record.certainty,
        text_digest(record.text, normalize),
        record.text,
        dump_json([[link.target, link.kind, link.weight, link.verified] for link in record.links])
        if record.links
        else None,
        metadata,
    )


def stored_records(
    drafts: Sequence[Record],
    contents: Sequence[tuple[Any, ...]],
    serials: Sequence[int],
    vectors: Sequence[NDArray[np.float32] | None],
) -> list[Record]:
    """New memories as reading them would give them: nothing in them is shared with the drafts."""
    return [
        Record(
            draft.key,
            draft.text,
            serial,
            draft.layer,
            vector,
            decode_links(content[-2]),
            float(draft.created),
            content[0],
            None if draft.used is None else float(draft.used),
            draft.uses,
            content[4],
            content[5],
            draft.review,
            draft.maturity,
            draft.certainty,
            draft.slot,
            content[1],
            decode_metadata(content[-1]),
        )
        for draft, content, serial, vector in zip(drafts, contents, serials, vectors, strict=True)
    ]


def decode_metadata(text: str | None) -> dict[str, object]:
    """Metadata as it was written; a new mapping each time."""
    return _load(text) if text else {}


def decode_links(text: str | None) -> tuple[Link, ...]:
    """Links as they were written."""
    return tuple([Link(*link) for link in _load(text)]) if text else ()


def _load(text: str) -> Any:
    """JSON as it was written, without a blank before or behind it."""
    value, end = _read_json(text)
    if end < len(text):
        raise ValueError("something follows the JSON")
    return value


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
    lengths = _squared_lengths(matrix)
    bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(bad):
        raise InvalidArgumentError(
            f"drafts[{positions[row]}]: vector: expected finite values that are not all zero"
            for row in bad
        )
    matrix.setflags(write=False)
    return np.array(positions, np.int64), matrix


def _squared_lengths(matrix: NDArray[np.float32]) -> NDArray[np.float64]:
    """float64, shape (n,): the sum of the squares of each row."""
    squares = np.empty(len(matrix))
    for start in range(0, len(matrix), _IN_CACHE):
        part = matrix[start : start + _IN_CACHE].astype(np.float64)
        squares[start : start + _IN_CACHE] = np.einsum("ij,ij->i", part, part)
    return squares


def rebuild(
    rows: Iterable[Sequence[Any]],
    scopes: ScopeReader,
    vectors: Sequence[NDArray[np.float32] | None],
) -> list[Record]:
    """Records from rows of ``scope, id, serial, created, used, uses, at … metadata`` (see SQL)."""
    records = []
    for (
        path, identifier, serial, created, used, uses, at, expires, layer, slot, salience,
        confidence, review, maturity, certainty, _, text, links, metadata, *_,
    ), vector in zip(rows, vectors, strict=True):  # fmt: skip
        records.append(
            Record(
                Key(scopes(path), identifier),
                text,
                serial,
                layer,
                vector,
                decode_links(links),
                created,
                at,
                used,
                uses,
                salience,
                confidence,
                review,
                maturity,
                certainty,
                slot,
                expires,
                decode_metadata(metadata),
            )
        )
    return records
