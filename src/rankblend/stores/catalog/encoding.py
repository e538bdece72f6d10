"""Between `Record` and the rows of the catalog: checked on the way in, rebuilt on the way out."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError
from rankblend.relevance.evidence import CERTAINTY_LEVELS, MATURITY_LEVELS, REVIEW_LEVELS
from rankblend.relevance.scope import Scope
from rankblend.stores.protocol import Key, Link, Record

__all__ = [
    "DIGEST",
    "LABELS",
    "ScopeReader",
    "decode_metadata",
    "encode_records",
    "is_number",
    "is_text",
    "rebuild",
    "stacked_vectors",
    "stored_records",
    "text_digest",
]

LABELS: Mapping[str, Mapping[str, float]] = {
    "review": REVIEW_LEVELS,
    "maturity": MATURITY_LEVELS,
    "certainty": CERTAINTY_LEVELS,
}
DIGEST = 9  # where the digest stands in an encoded record
_VECTOR = np.dtype("<f4")
_dump = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_load = json.JSONDecoder().decode


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
    problems = _found(records, [i for i, record in enumerate(records) if not _sound(record)])
    if problems:
        raise InvalidArgumentError(problems)
    try:
        return [_encode(record, normalize) for record in records]
    except (TypeError, ValueError, RecursionError):  # metadata that is no JSON
        problems = _found(records, range(len(records)))
        if not problems:
            raise
        raise InvalidArgumentError(problems) from None


def _found(records: Sequence[Record], positions: Iterable[int]) -> list[str]:
    return [f"drafts[{i}]: {problem}" for i in positions for problem in _problems(records[i])]


def _encode(record: Record, normalize: Callable[[str], str]) -> tuple[Any, ...]:
    metadata = _dump(dict(record.metadata)) if record.metadata else None
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
        _dump([[link.target, link.kind, link.weight, link.verified] for link in record.links])
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
            _links(content[-2]),
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


def _links(text: str | None) -> tuple[Link, ...]:
    return tuple(Link(*link) for link in _load(text)) if text else ()


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
            matrix = np.stack(arrays, dtype=_VECTOR, casting="same_kind")
    except (TypeError, ValueError):
        raise InvalidArgumentError("drafts: vector: expected float32 arrays") from None
    lengths = np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64)
    bad = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
    if len(bad):
        raise InvalidArgumentError(
            f"drafts[{positions[row]}]: vector: expected finite values that are not all zero"
            for row in bad
        )
    matrix.setflags(write=False)
    return np.array(positions, np.int64), matrix


def rebuild(
    rows: Iterable[Sequence[Any]],
    scopes: ScopeReader,
    vectors: Sequence[NDArray[np.float32] | None],
) -> list[Record]:
    """Records from rows of ``scope, id, serial, created, used, uses, at … metadata`` (see SQL)."""
    records = []
    for row, vector in zip(rows, vectors, strict=True):
        (path, identifier, serial, created, used, uses, at, expires, layer, slot, salience) = row[
            :11
        ]
        (confidence, review, maturity, certainty, _, text, links, metadata) = row[11:19]
        records.append(
            Record(
                Key(scopes(path), identifier),
                text,
                serial,
                layer,
                vector,
                _links(links),
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


def _sound(record: Record) -> bool:
    """A quick look that passes ordinary records; what it does not pass is looked at closely."""
    try:
        return _ordinary(record)
    except (AttributeError, TypeError):
        return False


def _ordinary(record: Record) -> bool:
    salience, confidence, expires = record.salience, record.confidence, record.expires
    names = (record.key.id, record.layer, record.slot or "-")
    return bool(
        record.text.isascii()
        and all(map(str.isascii, names))
        and all(map(str.strip, names))
        and type(record.key.scope) is Scope
        and type(record.created) is type(record.at) is float
        and math.isfinite(record.created + record.at)
        and record.used is None
        and record.uses == 0
        and (expires is None or (type(expires) is float and math.isfinite(expires)))
        and (salience is None or (type(salience) is float and 0.0 <= salience <= 1.0))
        and (confidence is None or (type(confidence) is float and 0.0 <= confidence <= 1.0))
        and (record.review is None or record.review in REVIEW_LEVELS)
        and (record.maturity is None or record.maturity in MATURITY_LEVELS)
        and (record.certainty is None or record.certainty in CERTAINTY_LEVELS)
        and not record.links
        and all(type(name) is str for name in record.metadata)
    )


def _problems(record: object) -> list[str]:
    if not isinstance(record, Record):
        return [f"expected a Record, got {type(record).__name__}"]
    problems = []
    if type(record.key) is not Key or type(record.key.scope) is not Scope:
        problems.append("key: expected a Key with a Scope")
    elif not (is_text(record.key.id) and record.key.id.strip()):
        problems.append("id: expected text that is not blank")
    if not is_text(record.text):
        problems.append("text: expected text of valid code points")
    for name in ("layer", "slot"):
        value = getattr(record, name)
        if not (is_text(value) and value.strip()) and not (name == "slot" and value is None):
            problems.append(f"{name}: expected text that is not blank")
    for name in ("created", "at", "used", "expires"):
        value = getattr(record, name)
        if not is_number(value) and not (name in ("used", "expires") and value is None):
            problems.append(f"{name}: expected finite seconds, got {type(value).__name__}")
    for name in ("salience", "confidence"):
        value = getattr(record, name)
        if value is not None and not (is_number(value) and 0 <= value <= 1):
            problems.append(f"{name}: expected None or a number in [0, 1]")
    for name, levels in LABELS.items():
        value = getattr(record, name)
        if value is not None and not (isinstance(value, str) and value in levels):
            problems.append(f"{name}: expected None or one of {', '.join(levels)}")
    if type(record.uses) is not int or not 0 <= record.uses < 2**31:
        problems.append("uses: expected a count ≥ 0")
    problems += _link_problems(record.links)
    problems += _metadata_problems(record.metadata)
    return problems


def _link_problems(links: object) -> list[str]:
    if not isinstance(links, tuple | list) or {type(link) for link in links} - {Link}:
        return ["links: expected a tuple of Link"]
    return [
        f"links[{i}]: expected a target and kind that are not blank, and a weight in (0, 1]"
        for i, link in enumerate(links)
        if not (is_text(link.target) and link.target.strip())
        or not (is_text(link.kind) and link.kind.strip())
        or not (is_number(link.weight) and 0 < link.weight <= 1)
        or type(link.verified) is not bool
    ]


def _metadata_problems(metadata: object) -> list[str]:
    if not isinstance(metadata, Mapping):
        return [f"metadata: expected a mapping, got {type(metadata).__name__}"]
    if not all(isinstance(name, str) for name in metadata):
        return ["metadata: expected texts as names"]
    try:
        _dump(dict(metadata)).encode()
    except (TypeError, ValueError, RecursionError) as error:
        return [f"metadata: expected JSON values ({type(error).__name__})"]
    return []


def is_text(value: object) -> TypeGuard[str]:
    """Whether a value is text that can be stored: without lone surrogates."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a finite number, and not a bool."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an int no float can hold
        return False
