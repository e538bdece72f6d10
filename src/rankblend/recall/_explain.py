"""Explanations: a table whose last column adds up to the score, or the reason for an absence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from io import StringIO
from typing import TYPE_CHECKING

import numpy as np
from attrs import frozen

from rankblend.recall._rank import Fate, Ranking
from rankblend.relevance import Composition, Node
from rankblend.stores import Reason

if TYPE_CHECKING:
    from rich.console import RenderableType


@frozen
class ExplanationRow:
    """One line: a signal, a nested score, or something the missing policy added.

    Attributes:
        depth: 0 for inputs of the score itself, 1 for inputs of those, …; depth 0 adds up.
        name: The signal or node; ``prior``, ``filled:<signal>`` or ``duplicate_penalty``.
        evidence: What was observed, e.g. ``cosine 0.62``; empty for nodes.
        value: The signal in [0, 1], or None when absent.
        why: Why it is absent, or whose value it borrows; empty otherwise.
        weight: Its weight, or None.
        contribution: What it added, or None.
    """

    depth: int
    name: str
    evidence: str
    value: float | None
    why: str
    weight: float | None
    contribution: float | None


@frozen
class Explanation:
    """Why a memory stands where it stands, or why it is not in the result.

    Attributes:
        id: The memory.
        shown: Whether it is in the result.
        verdict: One sentence.
        rank: From 1 when shown, else None.
        score, rank_score, distance, gate: As in `Match`; None when it was never scored.
        rows: The table; empty when it was never scored.
        additive: Whether the contributions at depth 0 add up to the score.
        label: What the contributions are otherwise, e.g. ``winner``.
        profile, profile_hash: The recipe.
    """

    id: str
    shown: bool
    verdict: str
    rank: int | None
    score: float | None
    rank_score: float | None
    distance: int | None
    gate: float | None
    rows: tuple[ExplanationRow, ...]
    additive: bool
    label: str
    profile: str
    profile_hash: str

    def plain(self) -> dict[str, object]:
        """JSON-ready values."""
        return {
            "id": self.id, "shown": self.shown, "verdict": self.verdict, "rank": self.rank,
            "score": self.score, "rank_score": self.rank_score, "distance": self.distance,
            "gate": self.gate, "additive": self.additive, "label": self.label,
            "profile": self.profile, "profile_hash": self.profile_hash,
            "rows": [
                {"depth": r.depth, "name": r.name, "evidence": r.evidence, "value": r.value,
                 "why": r.why, "weight": r.weight, "contribution": r.contribution}
                for r in self.rows
            ],
        }  # fmt: skip

    def __rich__(self) -> RenderableType:
        """For a rich console."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        title = Text.assemble((self.id, "bold"), ": ", self.verdict)
        if not self.rows:
            return title
        table = Table(box=None, pad_edge=False, show_footer=True, header_style="dim")
        table.add_column("signal", footer="score")
        table.add_column("evidence")
        table.add_column("value", justify="right")
        table.add_column("weight", justify="right")
        last = "contribution" if self.additive else f"contribution ({self.label})"
        table.add_column(last, justify="right", footer=_number(self.score))
        for row in self.rows:
            table.add_row(
                "  " * row.depth + row.name,
                Text(row.evidence),  # may hold an id, which is not markup
                _number(row.value) if row.value is not None else Text("absent", "yellow"),
                "" if row.weight is None else f"{row.weight:g}",
                Text(row.why, "yellow") if row.value is None and row.why
                else _number(row.contribution, signed=True),
                style="dim" if row.depth else "",
            )  # fmt: skip
        scope = Text(
            f"distance {self.distance} → gate {_number(self.gate)} → "
            f"rank score {_number(self.rank_score)}   profile {self.profile} "
            f"{self.profile_hash[:12]}",
            "dim",
        )
        return Group(title, table, scope)

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(width=100, no_color=True, highlight=False, file=StringIO())
        with console.capture() as capture:
            console.print(self)
        return "\n".join(line.rstrip() for line in capture.get().splitlines())


def explain(ranking: Ranking, identifier: str) -> Explanation:
    """Explain a memory of the pool, whatever became of it."""
    position = ranking.candidates.ids.index(identifier)
    own_row = np.flatnonzero(ranking.rows == position)
    verdict = ranking.verdicts[position]
    if not own_row.size:
        return _never_scored(ranking, identifier, f"duplicate of {verdict.by!r}, which stands for "
                                                  "both")  # fmt: skip
    row = int(own_row[0])
    ranks = {int(shown): rank for rank, shown in enumerate(ranking.shown, start=1)}
    rows = tuple(_rows(ranking, row, position))
    return Explanation(
        identifier,
        verdict.fate is Fate.SHOWN,
        _verdict_words(ranking, row, ranks),
        ranks.get(row),
        float(ranking.scores[row]),
        float(ranking.rank_scores[row]),
        int(ranking.candidates.distances[position]),
        float(ranking.gates[row]),
        rows,
        ranking.composition.additive,
        ranking.composition.label,
        ranking.profile.name,
        ranking.profile.hash,
    )


def explain_absence(ranking: Ranking, identifier: str, *, visible: bool | None) -> Explanation:
    """Explain a memory that was not in the pool."""
    if visible is None:
        return _never_scored(
            ranking, identifier, "not considered; a copy of a recall cannot say more"
        )
    if not visible:
        return _never_scored(ranking, identifier, "not visible to this query or unknown")
    pool = ranking.profile.pool
    words = f"not proposed: no store had it among its best {pool.size}"
    if len(ranking.candidates) >= pool.max:
        words += f", or the pool was full at {pool.max}"
    return _never_scored(ranking, identifier, words)


def _never_scored(ranking: Ranking, identifier: str, verdict: str) -> Explanation:
    profile = ranking.profile
    return Explanation(
        identifier, False, verdict, None, None, None, None, None, (), True, "",
        profile.name, profile.hash,
    )  # fmt: skip


def _verdict_words(ranking: Ranking, row: int, ranks: dict[int, int]) -> str:
    position = int(ranking.rows[row])
    verdict = ranking.verdicts[position]
    if verdict.fate is Fate.SHOWN:
        return f"rank {ranks[row]} of {len(ranking.shown)}"
    if verdict.fate is Fate.DROPPED:
        return f"dropped by the missing policy ({verdict.by})"
    if verdict.fate is Fate.FLOOR:
        had = "absent" if verdict.value is None else f"{verdict.value:.4f}"
        return f"under the floor of {verdict.by!r}: {had}, needed {verdict.limit:g}"
    if verdict.fate is Fate.TOKEN_CAP:
        return f"token cap: {verdict.value:g} tokens, {verdict.limit:g} left"
    place = int(np.flatnonzero(ranking.order == row)[0]) + 1
    if not ranking.shown.size:
        return f"out-ranked: place {place}, nothing was asked for"
    last = int(ranking.shown[-1])
    gap = float(ranking.rank_scores[last] - ranking.rank_scores[row])
    last_id = ranking.candidates.ids[int(ranking.rows[last])]
    return f"out-ranked: place {place}, {gap:.4f} below the last one shown ({last_id!r})"


def _rows(ranking: Ranking, row: int, position: int) -> Iterator[ExplanationRow]:
    profile = ranking.profile
    root = profile.rerank if ranking.node == "rerank" and profile.rerank else profile.score
    yield from _node_rows(ranking, root, ranking.composition, row, position, 0)
    penalty = float(ranking.penalties[row])
    if penalty:
        yield ExplanationRow(0, "duplicate_penalty", "", None, "", None, -penalty)


def _node_rows(
    ranking: Ranking, node: Node, composition: Composition, row: int, position: int, depth: int
) -> Iterator[ExplanationRow]:
    nodes = ranking.profile.nodes
    added = {
        name: float(column[row])
        for name, column in composition.contributions.items()
        if not np.isnan(column[row])
    }
    for name, weight in node.weights:
        contribution = added.pop(name, None)
        if name in nodes and name in composition.children:
            child = composition.children[name]
            value = float(child.scores[row]) if child.present[row] else None
            why = "" if value is not None else "nothing present"
            yield ExplanationRow(depth, name, "", value, why, weight, contribution)
            yield from _node_rows(ranking, nodes[name], child, row, position, depth + 1)
        else:
            value, evidence, why = _signal_words(ranking, name, position)
            yield ExplanationRow(depth, name, evidence, value, why, weight, contribution)
    for name, contribution in added.items():
        yield ExplanationRow(depth, name, "", None, "", None, contribution)


def _signal_words(ranking: Ranking, name: str, position: int) -> tuple[float | None, str, str]:
    derived = ranking.derived
    value = float(derived.table.column(name)[position])
    lender = int(derived.lenders[name][position])
    evidence = _evidence_words(ranking, name, lender)
    if math.isnan(value):
        return None, "", Reason(int(derived.reasons[name][position])).words
    if lender != position:
        return value, f"{evidence} (from {ranking.candidates.ids[lender]!r})", ""
    return value, evidence, ""


def _evidence_words(ranking: Ranking, name: str, position: int) -> str:
    """The evidence behind a signal in its natural unit, for the stores that gave any."""
    recipe = ranking.profile.signals[name]
    if recipe.of:
        passed: list[str] = []  # what came first, but is absent, and why
        for other in recipe.of:
            if not math.isnan(ranking.derived.table.column(other)[position]):
                return "; ".join([f"{other}: {_evidence_words(ranking, other, position)}", *passed])
            why = Reason(int(ranking.derived.reasons[other][position])).words
            passed.append(f"{other} {why}")
        return ""
    words = []
    kinds = dict(zip(recipe.evidence, ranking.profile.kinds(name), strict=False))
    for evidence in recipe.evidence:
        store, dot, bare = evidence.rpartition(".")
        columns = [
            column
            for column in ranking.candidates.evidence.get(bare, ())
            if (not dot or column.store == store) and not math.isnan(column.values[position])
        ]
        for column in columns:
            value = _natural(float(column.values[position]), kinds[evidence].unit)
            words.append(f"{bare} {value}" + (f" ({column.store})" if len(columns) > 1 else ""))
    return ", ".join(words)


def _natural(value: float, unit: str) -> str:
    if unit == "seconds":
        for length, name in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
            if abs(value) >= length:
                return f"{value / length:.1f} {name}"
        return f"{value:.0f} s"
    if unit == "hops" and math.isinf(value):
        return "not reached"
    return f"{value:g}" if unit in ("count", "hops") else f"{value:.3f}"


def _number(value: float | None, *, signed: bool = False) -> str:
    if value is None:
        return ""
    return f"{value:+.4f}" if signed else f"{value:.4f}"
