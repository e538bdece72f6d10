"""Run and judgment files as trec_eval reads them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import TypeVar

from rankblend.errors import InvalidArgumentError
from rankblend.files import text_lines, write_whole

_SHOWN = 10
_OF_A_RUN = 6  # columns
# A number as C reads one; Python would take 1_0 for 10, and digits of other scripts.
_WHOLE = re.compile(r"[+-]?[0-9]+")
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_Value = TypeVar("_Value", int, float)


def read_qrels(path: str | PathLike[str]) -> dict[str, dict[str, int]]:
    """Read ``query 0 document gain`` lines.

    Gains below zero are kept as they are: ir-measures counts them as judged and not relevant.
    Lines that begin with ``#`` are comments.

    Returns:
        Query → document → gain.

    Raises:
        InvalidArgumentError: Lines of another form, or a document judged twice for one query; all
            of them, with their numbers.
    """
    return _read(path, "query 0 document gain", 4, lambda parts: (parts[0], parts[2], _gain(parts)))


def read_run(path: str | PathLike[str]) -> dict[str, dict[str, float]]:
    """Read ``query Q0 document rank score name`` lines.

    The score decides, as in trec_eval; the rank column is not read, nor is anything after the name.
    Lines that begin with ``#`` are comments.

    Returns:
        Query → document → score, finite.

    Raises:
        InvalidArgumentError: Lines of another form, or a document listed twice for one query; all
            of them, with their numbers.
    """
    form = "query Q0 document rank score name"
    return _read(path, form, _OF_A_RUN, lambda parts: (parts[0], parts[2], _score(parts)))


def write_run(
    path: str | PathLike[str], rankings: dict[str, list[str]], *, name: str = "rankblend"
) -> None:
    """Write rankings as a run file that every evaluator orders as given.

    The score of a document is the number of documents not ranked before it, so that readers which
    sort by score, in single precision and with their own rule for ties, keep this order.

    Raises:
        InvalidArgumentError: An id or the name is empty or holds white space of ASCII, or a query
            begins with ``#``, which the format cannot express.
    """
    bad = [
        word
        for query, documents in rankings.items()
        for word in (query, name, *documents)
        if word.encode("utf-8", "surrogatepass").split() != [word.encode("utf-8", "surrogatepass")]
    ]
    bad += [query for query in rankings if query.startswith("#")]
    if bad:
        raise InvalidArgumentError(
            f"run file: {len(set(bad))} ids are empty, hold white space or make a line a comment, "
            f"first {bad[0]!r}; rename them or export JSON"
        )
    lines = [
        f"{query} Q0 {document} {rank} {len(documents) - rank + 1} {name}\n"
        for query, documents in rankings.items()
        for rank, document in enumerate(documents, 1)
    ]
    write_whole(path, "".join(lines))


def _gain(parts: list[str]) -> int:
    if not _WHOLE.fullmatch(parts[3]):
        raise ValueError
    return int(parts[3])


def _score(parts: list[str]) -> float:
    score = float(parts[4]) if _REAL.fullmatch(parts[4]) else math.nan
    if not math.isfinite(score):
        raise ValueError
    return score


def _read(
    path: str | PathLike[str],
    form: str,
    columns: int,
    take: Callable[[list[str]], tuple[str, str, _Value]],
) -> dict[str, dict[str, _Value]]:
    table: dict[str, dict[str, _Value]] = {}
    problems = []
    for number, parts in _lines(Path(path)):
        if len(parts) != columns and not (columns == _OF_A_RUN and len(parts) > columns):
            problems.append(f"line {number}: expected {form!r}, got {len(parts)} columns")
            continue
        try:
            query, document, value = take(parts)
        except ValueError:
            problems.append(f"line {number}: the number in it is not one")
            continue
        if document in table.setdefault(query, {}):
            problems.append(f"line {number}: a second line for one query and document")
        table[query][document] = value
    if not table and not problems:
        problems.append("no line in it")
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise InvalidArgumentError(f"{path}: " + "; ".join(problems[:_SHOWN]) + more)
    return table


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    try:
        for number, line in text_lines(path):
            if not line.startswith("#"):
                # White space is that of ASCII: a no-break space belongs to an id.
                yield number, [part.decode() for part in line.encode().split()]
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{path}: cannot be read ({type(error).__name__})") from error
