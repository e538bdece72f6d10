"""What a data set is: memories to remember, links to make, and queries with judgments."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any

from attrs import field, frozen

from rankblend.errors import InvalidArgumentError
from rankblend.files import read_text, text_lines
from rankblend.relevance import Scope


@frozen
class JudgedQuery:
    """A query with the memories that answer it.

    Attributes:
        id: Unique in the data set.
        text: The question.
        scope: Where it is asked.
        relevant: Id of a memory → gain ≥ 0. Everything else counts as 0, but is not judged, which
            ``Judged@k`` tells apart.
        family: Kind of question, for slices.
        cluster: What it shares with other queries (a conversation, a scenario): queries of one
            cluster are not independent, and intervals resample whole clusters.
        now: When it is asked, for ages; None when the data set has no dates.
    """

    id: str
    text: str
    scope: Scope
    relevant: Mapping[str, float] = field(hash=False)
    family: str = ""
    cluster: str = ""
    now: datetime | None = None


@frozen
class Dataset:
    """A data set ready to be remembered and asked.

    Attributes:
        name: Of the loader.
        licence: Under which the data may be used; shown to whoever loads it.
        memories: Arguments of `Memory.remember`, one mapping a memory.
        links: Scope → arguments of `Memory.link`, one mapping a link.
        queries: With judgments.
        reach: The reach its queries are meant to be asked with.
        excluded: Reason → how many queries of the source were left out for it.
    """

    name: str
    licence: str
    memories: tuple[Mapping[str, Any], ...] = field(repr=False)
    links: Mapping[Scope, tuple[Mapping[str, Any], ...]] = field(repr=False, hash=False)
    queries: tuple[JudgedQuery, ...] = field(repr=False)
    reach: str = "subtree"
    excluded: Mapping[str, int] = field(factory=dict, hash=False)


def read_json(path: Path) -> Any:
    """A JSON file, or the JSON lines of one.

    Raises:
        InvalidArgumentError: Missing, unreadable or not JSON.
    """
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{path}: cannot be read ({type(error).__name__})") from error
    try:
        return json.loads(text)
    except ValueError:
        try:
            return [json.loads(line) for _, line in text_lines(path)]
        except ValueError as error:
            raise InvalidArgumentError(f"{path}: expected JSON or JSON lines") from error


def wrong_format(name: str, path: str | PathLike[str], expected: str) -> InvalidArgumentError:
    """The error for a path that holds something else."""
    return InvalidArgumentError(f"{path}: this is not {name}; expected {expected}")


@contextmanager
def reading(name: str, path: str | PathLike[str], expected: str) -> Iterator[None]:
    """What falls out of data of another form becomes the error that says what was expected.

    Raises:
        InvalidArgumentError: See `wrong_format`.
    """
    try:
        yield
    except InvalidArgumentError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise wrong_format(name, path, expected) from error


def judged(
    name: str,
    licence: str,
    memories: Iterable[Mapping[str, Any]],
    queries: Sequence[JudgedQuery],
    *,
    lacking: str,
    links: Mapping[Scope, Iterable[Mapping[str, Any]]] = MappingProxyType({}),
    reach: str = "ancestors",
) -> Dataset:
    """The data set of those queries that have a relevant memory; ``lacking`` is why others have not."""
    usable = tuple(query for query in queries if any(query.relevant.values()))
    return Dataset(
        name, licence, tuple(memories), {at: tuple(some) for at, some in links.items()}, usable,
        reach=reach, excluded={lacking: len(queries) - len(usable)},
    )  # fmt: skip
