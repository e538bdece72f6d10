"""The columns a graph keeps its edges in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError
from rankblend.stores.graph.columns import Column
from rankblend.stores.protocol import Edge, Record

__all__ = ["EdgeTable", "check_edges", "check_links", "edge_problems"]


def edge_problems(
    where: str, source: object, target: object, kind: object, weight: object
) -> list[str]:
    """What is wrong with the parts of an edge or link, one line each; empty when nothing is."""
    problems = [
        f"{where}.{name}: expected text that is not blank"
        for name, value in (("source", source), ("target", target), ("kind", kind))
        if not isinstance(value, str) or not value.strip()
    ]
    number = isinstance(weight, int | float | np.floating) and not isinstance(weight, bool)
    if not number or not (math.isfinite(float(weight)) and 0 < float(weight) <= 1):  # type: ignore[arg-type]
        problems.append(f"{where}.weight: expected a finite number in (0, 1]")
    return problems


def check_links(records: Iterable[Record]) -> None:
    """Refuse records with a link that is no edge.

    Raises:
        InvalidArgumentError: All problems at once, ``records[i].links[j].weight: …``.
    """
    _refuse(
        problem
        for place, record in enumerate(records)
        for number, link in enumerate(record.links)
        for problem in edge_problems(
            f"records[{place}].links[{number}]", record.id, link.target, link.kind, link.weight
        )
    )


def check_edges(edges: Iterable[Edge]) -> None:
    """Refuse edges that are none.

    Raises:
        InvalidArgumentError: All problems at once, ``edges[i].weight: …``.
    """
    _refuse(
        problem
        for place, edge in enumerate(edges)
        for problem in edge_problems(
            f"edges[{place}]", edge.source, edge.target, edge.kind, edge.weight
        )
    )


def _refuse(problems: Iterable[str]) -> None:
    found = list(problems)
    if found:
        raise InvalidArgumentError(found)


class EdgeTable:
    """All edges as columns. A row never changes except that it dies; replacing appends.

    Attributes:
        source, target, kind, scope: int32 numbers of the nodes, kind and scope, shape (e,).
        weight: float64, shape (e,).
        owner: int32: the memory slot the edge belongs to, −1 for an edge of its own.
        verified, alive: bool.
        extra: Edge → further attributes, for edges that came from a networkx graph.
    """

    def __init__(self) -> None:
        self.source = Column(np.int32)
        self.target = Column(np.int32)
        self.kind = Column(np.int32)
        self.scope = Column(np.int32)
        self.weight = Column(np.float64)
        self.owner = Column(np.int32)
        self.verified = Column(np.bool_)
        self.alive = Column(np.bool_)
        self.extra: dict[int, Mapping[str, Any]] = {}
        self.dead = 0

    def __len__(self) -> int:
        return len(self.source)

    def extend(self, rows: Sequence[tuple[int, int, int, int, float, int, bool]]) -> None:
        """Append (source, target, kind, scope, weight, owner, verified) rows."""
        if not rows:
            return
        names = ("source", "target", "kind", "scope", "weight", "owner", "verified")
        for name, values in zip(names, zip(*rows, strict=True), strict=True):
            getattr(self, name).extend(values)
        self.alive.extend(np.ones(len(rows), dtype=np.bool_))

    def kill(self, rows: NDArray[np.int64]) -> None:
        """Take rows out of every answer at once."""
        self.dead += int(np.count_nonzero(self.alive.values[rows]))
        self.alive.values[rows] = False
        for row in rows.tolist() if self.extra else ():
            self.extra.pop(row, None)

    def select(self, rows: NDArray[np.int64], nodes: NDArray[np.int32]) -> EdgeTable:
        """A new table of these rows, with node numbers and nothing else mapped by ``nodes``."""
        table = EdgeTable()
        for name in ("kind", "scope", "weight", "owner", "verified", "alive"):
            getattr(table, name).extend(getattr(self, name).values[rows])
        table.source.extend(nodes[self.source.values[rows]])
        table.target.extend(nodes[self.target.values[rows]])
        if self.extra:
            table.extra = {
                new: self.extra[old] for new, old in enumerate(rows.tolist()) if old in self.extra
            }
        return table
