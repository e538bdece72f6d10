"""``rankblend demo``: the main job on one screen."""

from __future__ import annotations

from typing import Annotated

import typer
from attrs import evolve
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from rankblend.cli.console import errors, output
from rankblend.cli.embedder import embedder_for
from rankblend.cli.table import recall_table
from rankblend.demo import ASKED_AT, QUESTION, SCOPE, open_demo
from rankblend.profiles import RankingProfile, load_profile
from rankblend.recall import Memory, Recall
from rankblend.relevance.blend import ScopeBlend
from rankblend.relevance.missing import Zero

__all__ = ["demo"]

_SHOWN = 10


def demo(
    profile: Annotated[
        str, typer.Option("--profile", help="Rank with another preset or .toml.")
    ] = "default",
) -> None:
    """A support desk's memory, asked one question: stores composed, explained, compared."""
    recipe = load_profile(profile)
    with errors.status("opening the demo memory"):
        memory = open_demo(embedder=embedder_for("auto", None))
    with memory:
        result = memory.recall(QUESTION, scope=SCOPE, profile=recipe, top=_SHOWN)
        output.print(Text.assemble(("“" + QUESTION + "”", "bold")))
        output.print(
            f"{len(memory)} memories of 3 tenants in 4 stores; asked at {SCOPE} on "
            f"{ASKED_AT:%d %B %Y}",
            style="dim",
        )
        output.print()
        output.print(recall_table(result))
        output.print(
            "A bar is a signal, dots an observed 0, a gap an absent signal: no vector, no link, "
            "nobody gave it. up = levels above the session.",
            style="dim",
        )
        _explained(result)
        _absence(memory, result, recipe)
        _scopes(memory, recipe)
        _compared(memory, result)


def _explained(result: Recall) -> None:
    lacking = [m for m in result if len(m.signals.present()) < len(result.profile.signals_scored)]
    if lacking:
        output.print(Rule("why it stands there", style="dim"))
        output.print(result.explain(lacking[0].memory.id))


def _absence(memory: Memory, result: Recall, recipe: RankingProfile) -> None:
    """The memory that gains most from absence not being zero."""
    zero = memory.recall(
        QUESTION,
        scope=SCOPE,
        profile=evolve(recipe, score=evolve(recipe.score, missing=Zero())),
        top=len(memory),
    )
    rank_under_zero = {identifier: rank for rank, identifier in enumerate(zero.ids, start=1)}
    gains = [(rank_under_zero.get(m.memory.id, 0) - m.rank, m) for m in result]
    gain, match = max(gains, key=lambda pair: pair[0], default=(0, None))
    if match is None or gain <= 0:
        return
    absent = sorted(result.profile.signals_scored - match.signals.present().keys())
    output.print(Rule("absence is not zero", style="dim"))
    output.print(
        Text.assemble(
            (f"#{match.rank} ", "bold"), f"“{match.memory.text}”\nhas no {' and no '.join(absent)}. "
            f"Counted as 0 it would stand at {rank_under_zero[match.memory.id]}.",
        )
    )  # fmt: skip


def _scopes(memory: Memory, recipe: RankingProfile) -> None:
    """The same question with the hierarchy folded in three ways."""
    table = Table(box=None, pad_edge=False, header_style="dim", expand=True)
    columns = []
    for mode in ("off", "blend", "backfill"):
        table.add_column(mode, ratio=1, no_wrap=True, overflow="ellipsis")
        found = memory.recall(
            QUESTION, scope=SCOPE, profile=evolve(recipe, scope=ScopeBlend(mode)), top=6
        )
        columns.append(
            [
                Text.assemble((f"{'↑' * m.distance or '·':<3}", "cyan" if m.distance else "green"),
                              m.memory.text)
                for m in found
            ]
        )  # fmt: skip
    for row in zip(*columns, strict=False):
        table.add_row(*row)
    output.print(Rule("own session · first, user ↑, tenant ↑↑", style="dim"))
    output.print(table)


def _compared(memory: Memory, result: Recall) -> None:
    other = memory.recall(QUESTION, scope=SCOPE, profile="crewai", top=_SHOWN)
    comparison = result.compare(other)
    output.print(Rule(f"{result.profile.name} against {other.profile.name}", style="dim"))
    output.print(comparison)
    if len(result) > 1 and (swap := result.swap(result.ids[0], result.ids[1])) is not None:
        output.print(f"The first two would change places with one weight: {swap}", style="dim")
