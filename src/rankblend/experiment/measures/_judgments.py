"""What is known about the answers of each query, in the form that measures need."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError
from rankblend.experiment.measures._kernels import dcg
from rankblend.values import real_number


class Graded(NamedTuple):
    """Rankings as grades.

    Attributes:
        grades: float64, shape (q, k), in rank order; NaN where not judged or not returned.
        returned: int64, shape (q,): how many results each ranking has, before any cutoff.
    """

    grades: NDArray[np.float64]
    returned: NDArray[np.int64]


@frozen(eq=False, slots=False)
class Judgments:
    """The grades of q queries.

    Args:
        queries: q distinct ids.
        grades: Per query, id of a memory → grade, a finite number; 0 and below say that it was
            judged and does not answer. Empty where nothing was judged: such a query is excluded
            from every measure (NaN), never scored 0.

    Raises:
        InvalidArgumentError: Ids that are not distinct, another number of grades, grades that are
            no finite numbers; all at once.
    """

    queries: tuple[str, ...]
    grades: tuple[Mapping[str, float], ...]

    def __attrs_post_init__(self) -> None:
        problems = []
        if len(set(self.queries)) != len(self.queries):
            problems.append("queries: expected distinct ids")
        if len(self.grades) != len(self.queries):
            problems.append(
                f"grades: expected {len(self.queries)}, one a query, got {len(self.grades)}"
            )
        problems += [
            f"grades of query {query!r}: expected finite numbers"
            for query, grades in zip(self.queries, self.grades, strict=False)
            if not all(_is_grade(grade) for grade in grades.values())
        ]
        if problems:
            raise InvalidArgumentError(problems)

    @classmethod
    def of(cls, grades: Mapping[str, Mapping[str, float]]) -> Judgments:
        """From query → memory → grade, in that order."""
        return cls(tuple(grades), tuple(grades.values()))

    @cached_property
    def judged(self) -> NDArray[np.bool_]:
        """bool, shape (q,): whether anything was judged for the query."""
        return np.array([bool(grades) for grades in self.grades], np.bool_)

    def relevant(self, rel: float = 1.0) -> NDArray[np.float64]:
        """float64, shape (q,): how many memories have a grade ≥ ``rel``."""
        counts = np.count_nonzero(self._best_first >= rel, axis=-1)
        return np.asarray(counts, np.float64)

    def ideal(self, *, cutoff: int | None = None, exponential: bool = False) -> NDArray[np.float64]:
        """float64, shape (q,): the greatest DCG that the judged memories allow."""
        return dcg(self._best_first, cutoff=cutoff, exponential=exponential)

    def look_up(self, rankings: Sequence[Sequence[str]], *, depth: int | None = None) -> Graded:
        """The grades of what was returned for each query.

        Args:
            rankings: q rankings, each of distinct ids, best first.
            depth: At most this many ranks are looked up; None for all.
        """
        tops = [ranking[:depth] for ranking in rankings]
        rows = [
            [grades.get(identifier, math.nan) for identifier in top]
            for top, grades in zip(tops, self.grades, strict=True)
        ]
        return Graded(_padded(rows), np.array([len(ranking) for ranking in rankings], np.int64))

    @cached_property
    def _best_first(self) -> NDArray[np.float64]:
        return _padded([sorted(grades.values(), reverse=True) for grades in self.grades])


def _padded(rows: Iterable[Sequence[float]]) -> NDArray[np.float64]:
    listed = list(rows)
    table = np.full((len(listed), max(map(len, listed), default=0)), np.nan)
    for row, values in zip(table, listed, strict=True):
        row[: len(values)] = values
    return table


def _is_grade(value: object) -> bool:
    number = real_number(value)
    return number is not None and math.isfinite(number)
