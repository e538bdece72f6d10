"""The keyword index as bytes, so that opening a memory does not read every text again.

::

    magic (8) │ CRC-32 of the rest (4) │ header length (4) │ header │ array │ array │ …

The header is JSON: the identity of the analysis, and name, dtype and length of each array. Texts
are one UTF-8 array and one of lengths in code points. Little-endian throughout; nothing in it is
code.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankblend.relevance import Scope
from rankblend.stores._rows import ScopedRows
from rankblend.stores.keywords._analysis import Analysis
from rankblend.stores.keywords._index import Encoded, TokenIndex

_MAGIC = b"rbkw\x00\x00\x00\x02"  # the last byte is the version of the layout
_CHECKSUM = 4
_LENGTH = struct.Struct("<I")
_DTYPES = {"|u1", "<u2", "<u4", "<u8", "<i4", "<i8"}

Arrays = dict[str, NDArray[np.integer]]


def pack(rows: ScopedRows, index: TokenIndex) -> bytes:
    """Bytes of an index whose rows are all alive, sorted and in the postings."""
    sizes, held, counts = index.postings.arrays
    arrays: Arrays = {
        **_packed_rows(rows),
        **_packed_texts("word", index.vocabulary.words),
        "stems": index.vocabulary.stems,
        "sizes": index.forward.sizes.astype(np.int32),
        "tokens": index.forward.tokens,
        "counts": index.forward.counts,
        "lengths": index.forward.lengths,
        "posting_sizes": sizes.astype(np.int32),
        "posting_rows": held,
        "posting_counts": counts,
    }
    return joined(arrays, index.analysis.identity)


def joined(arrays: Arrays, identity: str) -> bytes:
    """Arrays as bytes."""
    little = {name: array.astype(array.dtype.newbyteorder("<")) for name, array in arrays.items()}
    header = json.dumps(
        {
            "analysis": identity,
            "arrays": [[name, array.dtype.str, len(array)] for name, array in little.items()],
        }
    ).encode("ascii")
    body = b"".join(
        [_LENGTH.pack(len(header)), header, *(array.tobytes() for array in little.values())]
    )
    return b"".join([_MAGIC, _checksum(body), body])


def unpack(
    data: bytes, analysis: Analysis, rows: ScopedRows | None
) -> tuple[ScopedRows, TokenIndex] | None:
    """Inverse of `pack`; None when the bytes are not a snapshot for this analysis and these rows."""
    try:
        arrays = _arrays(data, analysis.identity)
        return None if arrays is None else _index(arrays, analysis, rows)
    # whatever a damaged or foreign file may lead to while it is being read
    except (ValueError, TypeError, LookupError, AttributeError, struct.error):
        return None


def _arrays(data: bytes, identity: str) -> Arrays | None:
    start = len(_MAGIC) + _CHECKSUM
    view = memoryview(data)
    if view[: len(_MAGIC)] != _MAGIC or view[len(_MAGIC) : start] != _checksum(view[start:]):
        return None
    (length,) = _LENGTH.unpack_from(view, start)
    at = start + _LENGTH.size + length
    header = json.loads(bytes(view[start + _LENGTH.size : at]))
    if header["analysis"] != identity:
        return None
    arrays: Arrays = {}
    for name, dtype, count in header["arrays"]:
        if dtype not in _DTYPES:
            return None
        # A copy: native byte order, aligned, writable, and the bytes read can be let go.
        little = np.frombuffer(view, dtype=dtype, count=count, offset=at)
        arrays[name] = little.astype(little.dtype.newbyteorder("="))
        at += little.nbytes
    return arrays if at == len(view) else None


def _index(
    arrays: Arrays, analysis: Analysis, given: ScopedRows | None
) -> tuple[ScopedRows, TokenIndex] | None:
    rows = _own_rows(arrays) if given is None else given
    if rows is None or (given is not None and not _same_rows(arrays, given)):
        return None
    index = TokenIndex(analysis)
    index.vocabulary.load(_unpacked_texts("word", arrays), arrays["stems"])
    sizes, tokens, counts = arrays["sizes"], arrays["tokens"], arrays["counts"]
    words, lengths = len(index.vocabulary), arrays["lengths"]
    fits = (
        rows.sorted_rows == rows.size == len(sizes) == len(lengths)
        and len(tokens) == len(counts) == int(sizes.sum())
        and not ((sizes < 0).any() or (tokens < 0).any() or (tokens >= words).any())
        and len(arrays["posting_sizes"]) <= words
    )
    if not fits:
        return None
    index.append([Encoded(sizes, tokens, counts, lengths)])
    index.postings.load(
        rows.size, arrays["posting_sizes"], arrays["posting_rows"], arrays["posting_counts"]
    )
    return rows, index


def _packed_rows(rows: ScopedRows) -> Arrays:
    return {
        **_packed_texts("scope", [scope.path for scope in rows.scopes]),
        **_packed_texts("id", rows.ids),
        "scopes": rows.scope_codes,
        "serials": rows.serials,
    }


def _same_rows(arrays: Arrays, rows: ScopedRows) -> bool:
    """Whether a snapshot is one of these rows."""
    expected = _packed_rows(rows)
    return all(np.array_equal(arrays[name], array) for name, array in expected.items())


def _own_rows(arrays: Arrays) -> ScopedRows | None:
    """The rows a snapshot was made of; None when they are not sorted as rows are."""
    ids, paths = _unpacked_texts("id", arrays), _unpacked_texts("scope", arrays)
    codes, serials = arrays["scopes"], arrays["serials"]
    steps = np.diff(codes, prepend=np.int64(-1), append=np.int64(len(paths)))
    sorted_rows = (
        len(serials) == len(ids) == len(codes)
        and ((steps == 0) | (steps == 1)).all()
        and all(a < b for a, b in pairwise(paths))
        and all(a < b for (a, b), step in zip(pairwise(ids), steps[1:], strict=False) if not step)
    )
    if not sorted_rows:
        return None
    scopes = [Scope.parse(path[:-1]) for path in paths]
    return ScopedRows.restored(
        scopes, codes.astype(np.int32, copy=False), ids, serials.astype(np.int64, copy=False)
    )


def _packed_texts(name: str, texts: Sequence[str]) -> Arrays:
    blob = "".join(texts).encode("utf-8", "surrogatepass")
    return {
        f"{name}_ends": np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts))),
        f"{name}_texts": np.frombuffer(blob, dtype=np.uint8),
    }


def _unpacked_texts(name: str, arrays: Arrays) -> list[str]:
    text = arrays[f"{name}_texts"].tobytes().decode("utf-8", "surrogatepass")
    ends = arrays[f"{name}_ends"].tolist()
    if ends and ends[-1] != len(text):
        raise ValueError(f"{name}: the texts are cut short")
    return [text[start:stop] for start, stop in pairwise([0, *ends])]


def _checksum(body: bytes | memoryview) -> bytes:
    # Against damage, not against forgery; BLAKE2b would take a third of the time of reading.
    return zlib.crc32(body).to_bytes(_CHECKSUM, "little")
