"""``rankblend demo``: the main job on one screen."""

from __future__ import annotations

from attrs import evolve
from rich.rule import Rule
from rich.text import Text

from rankblend.cli.console import errors, output, plain_table, visible
from rankblend.cli.options import Profile, embedder_for
from rankblend.cli.table import recall_table, scored_signals
from rankblend.demo import QUESTION, SCOPE, open_demo
from rankblend.profiles import RankingProfile, load_profile
from rankblend.recall import Match, Memory, Recall
from rankblend.relevance import ScopeBlend, Zero

__all__ = ["demo"]

_SHOWN = 10


def demo(profile: Profile = "default") -> None:
    """A support desk's memory, asked one question: stores composed, explained, compared."""
    recipe = load_profile(profile)
    embedder = embedder_for("auto", None)
    if embedder is None:
        advice = "pip install 'rankblend[wordllama]'"
        errors.print(Text(f"no embedder is installed, so similarity is absent: {advice}", "yellow"))
    with errors.status("opening the demo memory"):
        memory = open_demo(embedder=embedder)
    with memory:
        result = memory.recall(QUESTION, scope=SCOPE, profile=recipe, top=_SHOWN)
        output.print(Text.assemble(("“" + QUESTION + "”", "bold")))
        output.print(
            f"{len(memory)} memories of 3 tenants in 4 layers and 6 stores; asked at {SCOPE}",
            style="dim",
        )
        output.print()
        output.print(recall_table(result, columns=output.width))
        output.print(
            "bar: a signal · dots: an observed 0 · gap: absent (no vector, no link, nobody gave it) "
            "· up: levels above the session",
            style="dim",
        )
        _explained(result)
        _absence(memory, result, recipe)
        _scopes(memory, recipe)
        _compared(memory, result)


def _lacking(match: Match, result: Recall) -> list[str]:
    """The signals that would score but are absent."""
    present = match.signals.present()
    return [name for name in scored_signals(result) if name not in present]


def _explained(result: Recall) -> None:
    """The first of the memories that lack most."""
    if len(result):
        subject = max(result, key=lambda match: len(_lacking(match, result)))
        output.print(Rule(f"why #{subject.rank} stands there", style="dim"))
        output.print(result.explain(subject.memory.id))


def _absence(memory: Memory, result: Recall, recipe: RankingProfile) -> None:
    """The memory that gains most from absence not being zero."""
    zero = memory.recall(
        QUESTION,
        scope=SCOPE,
        profile=evolve(recipe, score=evolve(recipe.score, missing=Zero())),
        top=len(memory),
    )
    rank_under_zero = {identifier: rank for rank, identifier in enumerate(zero.ids, start=1)}
    gains = [
        (rank_under_zero.get(m.memory.id, 0) - m.rank, m) for m in result if _lacking(m, result)
    ]
    gain, match = max(gains, key=lambda pair: pair[0], default=(0, None))
    if match is None or gain <= 0:
        return
    absent = _lacking(match, result)
    *first, last = absent
    words = f"{', no '.join(first)} and no {last}" if first else last
    output.print(Rule("absence is not zero", style="dim"))
    output.print(
        Text.assemble(
            (f"#{match.rank} ", "bold"), f"“{visible(match.memory.text)}”\nhas no {words}. Counted as 0, "
            f"these would put it on rank {rank_under_zero[match.memory.id]}.",
        )
    )  # fmt: skip


def _scopes(memory: Memory, recipe: RankingProfile) -> None:
    """The same question with the hierarchy folded in three ways."""
    table = plain_table(expand=True)
    columns = []
    for mode in ("off", "blend", "backfill"):
        table.add_column(mode, ratio=1, no_wrap=True, overflow="ellipsis")
        found = memory.recall(
            QUESTION, scope=SCOPE, profile=evolve(recipe, scope=ScopeBlend(mode)), top=6
        )
        columns.append(
            [
                Text.assemble((f"{'↑' * m.distance or '·':<3}", "cyan" if m.distance else "green"),
                              visible(m.memory.text))
                for m in found
            ]
        )  # fmt: skip
    for row in zip(*columns, strict=False):
        table.add_row(*row)
    output.print(
        Rule("three ways to count the distance: own session ·, user ↑, tenant ↑↑", style="dim")
    )
    output.print(table)


def _compared(memory: Memory, result: Recall) -> None:
    crewai = load_profile("crewai")
    rival = load_profile("default") if result.profile.hash == crewai.hash else crewai
    other = memory.recall(QUESTION, scope=SCOPE, profile=rival, top=_SHOWN)
    comparison = result.compare(other)
    output.print(Rule(f"{result.profile.name} against {other.profile.name}", style="dim"))
    output.print(comparison)
    if len(result) > 1 and (swap := result.swap(result.ids[0], result.ids[1])) is not None:
        output.print(f"one weight would swap the first two: {swap}", style="dim")
