"""What an experiment measured: every arm on every query."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError, UnknownNameError

__all__ = ["Results"]


@frozen(eq=False)
class Results:
    """Measures of a arms on q queries.

    Attributes:
        arms: Names of the arms.
        hashes: What each arm ranks by (`Arm.hash`).
        queries: Ids of the queries.
        clusters: What each query shares with others; queries of one cluster are not independent.
        families: Kind of each query, for slices.
        values: Measure → float64, shape (a, q). NaN for queries without judgments and in the rows
            of arms that did not run, nowhere else: nothing returned is 0.
        judged: bool, shape (q,): whether the query has judgments; the others are excluded.
        empty: bool, shape (a, q): where the arm returned nothing; judged queries then score 0.
        not_run: Arm → why it did not run. Such an arm need not be among ``arms``.
        coverage: float64, shape (a, q): mean share of the score's weight that was present, over the
            candidates of the query; None when it was not asked for.
        manifest: What was measured: data set, recording, versions.
    """

    arms: tuple[str, ...]
    hashes: tuple[str, ...]
    queries: tuple[str, ...]
    clusters: tuple[str, ...]
    families: tuple[str, ...]
    values: Mapping[str, NDArray[np.float64]] = field(repr=False)
    judged: NDArray[np.bool_] = field(repr=False)
    empty: NDArray[np.bool_] = field(repr=False)
    not_run: Mapping[str, str] = field(factory=dict)
    coverage: NDArray[np.float64] | None = field(default=None, repr=False)
    manifest: Mapping[str, Any] = field(factory=dict, repr=False)

    def __attrs_post_init__(self) -> None:
        a, q = len(self.arms), len(self.queries)
        tables = {f"values of {name}": table.shape for name, table in self.values.items()}
        tables["empty"] = self.empty.shape
        if self.coverage is not None:
            tables["coverage"] = self.coverage.shape
        problems = [
            f"{name}: expected shape {(a, q)}, got {shape}"
            for name, shape in tables.items()
            if shape != (a, q)
        ]
        lengths = {"hashes": (self.hashes, a)} | {
            name: (getattr(self, name), q) for name in ("clusters", "families", "judged")
        }
        problems += [
            f"{name}: expected {length} entries, got {len(column)}"
            for name, (column, length) in lengths.items()
            if len(column) != length
        ]
        problems += [f"{name}: expected distinct names" for name in ("arms", "queries")
                     if len(set(getattr(self, name))) != len(getattr(self, name))]  # fmt: skip
        if problems:
            raise InvalidArgumentError(problems)

    def arm(self, name: str) -> int:
        """The row of an arm.

        Raises:
            UnknownNameError: No such arm.
        """
        if name not in self.arms:
            raise UnknownNameError("arm", name, self.arms)
        return self.arms.index(name)

    def measure(self, name: str) -> NDArray[np.float64]:
        """The table of a measure, float64, shape (a, q).

        Raises:
            UnknownNameError: It was not measured.
        """
        if name not in self.values:
            raise UnknownNameError("measure", name, self.values)
        return self.values[name]

    def mean(self, measure: str) -> NDArray[np.float64]:
        """float64, shape (a,): the mean over judged queries; NaN for arms that did not run."""
        table = self.measure(measure)[:, self.judged]
        return table.mean(axis=1) if table.shape[1] else np.full(len(self.arms), np.nan)

    def ran(self, arm: str) -> bool:
        """Whether the arm was run."""
        return arm in self.arms and arm not in self.not_run

    def pick(self, arms: Sequence[str], measures: Sequence[str] | None = None) -> Results:
        """Some arms in the order given, by some measures (None: all), on the same queries.

        Raises:
            UnknownNameError: An arm or measure that is not there.
        """
        rows = [self.arm(name) for name in arms]
        names = self.values if measures is None else measures
        return evolve(
            self,
            arms=tuple(arms),
            hashes=tuple(self.hashes[row] for row in rows),
            values={name: self.measure(name)[rows] for name in names},
            empty=self.empty[rows],
            not_run={arm: why for arm, why in self.not_run.items() if arm in arms},
            coverage=None if self.coverage is None else self.coverage[rows],
        )

    def only(self, mask: NDArray[np.bool_]) -> Results:
        """The same arms on the queries where ``mask``, bool of shape (q,), is true."""
        kept = np.flatnonzero(mask)

        def picked(labels: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(labels[position] for position in kept)

        return evolve(
            self,
            queries=picked(self.queries),
            clusters=picked(self.clusters),
            families=picked(self.families),
            values={name: table[:, kept] for name, table in self.values.items()},
            judged=self.judged[kept],
            empty=self.empty[:, kept],
            coverage=None if self.coverage is None else self.coverage[:, kept],
        )

    def to_json(self) -> str:
        """As JSON text that `from_json` reads; absent numbers are null."""
        tables = {name: _listed(table) for name, table in self.values.items()}
        return json.dumps(
            {
                "arms": self.arms, "hashes": self.hashes, "queries": self.queries,
                "clusters": self.clusters, "families": self.families, "values": tables,
                "judged": self.judged.tolist(), "empty": self.empty.tolist(),
                "not_run": dict(self.not_run), "manifest": dict(self.manifest),
                "coverage": None if self.coverage is None else _listed(self.coverage),
            }
        )  # fmt: skip

    @classmethod
    def from_json(cls, text: str) -> Results:
        """What `to_json` wrote, the same bits.

        Raises:
            InvalidArgumentError: The text is something else.
        """
        try:
            told = json.loads(text)
            names = ("arms", "hashes", "queries", "clusters", "families")
            shape = (len(told["arms"]), len(told["queries"]))
            tables = {name: _table(rows, shape) for name, rows in told["values"].items()}
            coverage = None if told["coverage"] is None else _table(told["coverage"], shape)
            empty = np.array(told["empty"], np.bool_).reshape(shape)
            labels = {name: tuple(map(str, told[name])) for name in names}
            return cls(
                **labels,
                values=tables,
                judged=np.array(told["judged"], np.bool_),
                empty=empty,
                not_run=dict(told["not_run"]),
                coverage=coverage,
                manifest=dict(told["manifest"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, InvalidArgumentError):
                raise
            raise InvalidArgumentError("results: expected what Results.to_json writes") from error


def _listed(table: NDArray[np.float64]) -> list[list[float | None]]:
    return [[None if np.isnan(value) else float(value) for value in row] for row in table]


def _table(rows: Any, shape: tuple[int, int]) -> NDArray[np.float64]:
    filled = [[np.nan if value is None else value for value in row] for row in rows]
    return np.array(filled, np.float64).reshape(shape)
