"""Numbers that cost time or memory: the least and the most of each, said in one place.

A call or a command that is given another number is refused before it begins, in one wording, and
the help of a command says the bounds from here. The greatest are far above what is of use and below
what a machine could not take: they catch a slip of the keyboard, not a plan.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType

from attrs import frozen

from rankblend.checks import Problems
from rankblend.errors import InvalidArgumentError
from rankblend.values import whole_number

__all__ = ["LIMITS", "Limit", "beyond", "check"]


@frozen
class Limit:
    """Whole numbers from ``least`` to ``most``, both included.

    Args:
        least: The least.
        most: The most.
        every: A number that stands for as many as there are, such as −1; None for none.
    """

    least: int
    most: int
    every: int | None = None

    def __str__(self) -> str:
        told = f"{self.least:,} to {self.most:,}"
        return told if self.every is None else f"{told}, or {self.every} for all"

    def hold(self, problems: Problems, at: str, value: object, *, optional: bool = False) -> None:
        """Note what is wrong with a number; None may be fine."""
        if optional and value is None:
            return
        number = whole_number(value)
        if number is None or not (self.least <= number <= self.most or number == self.every):
            problems.expected(at, f"{problems.whole_word} from {self}", value)


def _processors() -> int:
    """How many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


LIMITS: Mapping[str, Limit] = MappingProxyType(
    {
        # processes
        "n_jobs": Limit(1, _processors(), every=-1),
        # recalls and recordings
        "top": Limit(1, 1_000_000),
        "shown": Limit(0, 1_000_000),  # the ``top`` of a recall, which may show nothing
        "depth": Limit(1, 1_000_000),  # the greatest pool a profile may have
        # embedders
        "batch_size": Limit(1, 1_000_000),
        "dimension": Limit(1, 100_000),
        "max_retries": Limit(0, 100),
        # procedures and chat
        "procedures": Limit(1, 50),  # the ``top`` of their recall
        "candidate_pool": Limit(1, 200),
        "page": Limit(1, 100),  # the ``limit`` of what waits for review
        "keep": Limit(0, 1_000_000),
        "capacity": Limit(1, 1_000_000),
        # statistics: a bootstrap holds 8 bytes a resample and row
        "resamples": Limit(1, 10_000_000),
        "seed": Limit(0, 2**32 - 1),  # what every generator takes
        # plans: each point is an arm
        "points": Limit(1, 10_000),
        "count": Limit(1, 100_000),
        "trials": Limit(1, 100_000),
        "batch": Limit(1, 10_000),
        "most": Limit(1, 100),
        "cutoff": Limit(1, 1_000_000),
        # fitting
        "folds": Limit(2, 1_000),
        "starts": Limit(0, 10_000),
        # releasing a reranker
        "memories": Limit(1, 1_000_000),
        "pool": Limit(1, 1_000_000),
        "rounds": Limit(1, 10_000),
        "days": Limit(1, 3_650),
    }
)
"""What is counted → its limit; nearly always under the name of the argument."""


def beyond(**numbers: object) -> list[str]:
    """What is wrong with some arguments, by their names in `LIMITS`; empty if nothing is."""
    problems = Problems()
    for name, value in numbers.items():
        LIMITS[name].hold(problems, name, value)
    return problems.lines


def check(**numbers: object) -> None:
    """Refuse arguments beyond their limits, all of them at once.

    Raises:
        InvalidArgumentError: See `beyond`.
    """
    problems = beyond(**numbers)
    if problems:
        raise InvalidArgumentError(problems)
