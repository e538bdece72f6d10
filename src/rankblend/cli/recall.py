"""``rankblend recall``: ask a memory file, and see why."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.text import Text

from rankblend.cli.console import errors, output, print_json
from rankblend.cli.options import (
    AsJson,
    Db,
    EmbedderChoice,
    Profile,
    embedder_for,
    number,
    require_file,
)
from rankblend.cli.table import recall_table
from rankblend.errors import InvalidArgumentError
from rankblend.profiles import load_profile
from rankblend.recall import Memory, Recall, stored_embedder

__all__ = ["recall"]


def recall(
    query: Annotated[str, typer.Argument(help="The question; '' for a cold start.")],
    db: Db,
    scope: Annotated[
        list[str],
        typer.Option(
            "--scope", help="Whose memories, e.g. tenant:acme/user:7; repeat for several."
        ),
    ],
    profile: Profile = "default",
    top: Annotated[int | None, number("shown", "--top", "At most this many")] = None,
    reach: Annotated[
        str, typer.Option("--reach", help="ancestors, or subtree to see below the scope too.")
    ] = "ancestors",
    weight: Annotated[
        list[str] | None,
        typer.Option(
            "--weight", help="Change a weight: similarity=0.5, words.keyword=0.9; repeat."
        ),
    ] = None,
    seed: Annotated[
        list[str] | None, typer.Option("--seed", help="Entity or id for the graph to start from.")
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option("--as-of", help="Answer as of this time (ISO 8601, UTC unless it says)."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Explain the first match.")] = False,
    id: Annotated[
        str | None, typer.Option("--id", help="Explain this memory, shown or not.")
    ] = None,
    compare: Annotated[
        str | None, typer.Option("--compare", help="Another profile: show the rank moves.")
    ] = None,
    embedder: EmbedderChoice = "auto",
    as_json: AsJson = False,
    strict: Annotated[bool, typer.Option("--strict", help="Fail when a store fails.")] = False,
) -> None:
    """Ask a memory file and rank what it knows."""
    recipe = load_profile(profile)
    another = load_profile(compare) if compare else None
    require_file(db)
    weights = dict(_weight(text) for text in weight or ())
    with Memory.open(
        db, embedder=embedder_for(embedder, stored_embedder(db)), allow_subtree=True
    ) as memory:
        arguments: dict[str, Any] = {
            "scope": scope[0] if len(scope) == 1 else scope, "reach": reach, "top": top,
            "seeds": seed or (), "as_of": _with_zone(as_of), "strict": strict,
        }  # fmt: skip
        result = memory.recall(query, profile=recipe, weights=weights or None, **arguments)
        other = memory.recall(query, profile=another, **arguments) if another else None
        subject = id if id is not None else 0 if explain and len(result) else None
        explanation = None if subject is None else result.explain(subject)
    if as_json:
        document = result.plain()
        if explanation is not None:
            document["explanation"] = explanation.plain()
        if other is not None:
            document["comparison"] = result.compare(other).plain()
        print_json(document)
        return
    _show(result, top)
    if explanation is not None:
        output.print()
        output.print(explanation)
    if other is not None:
        output.print()
        output.print(result.compare(other))


def _show(result: Recall, top: int | None) -> None:
    if len(result):
        output.print(recall_table(result, columns=output.width))
    elif top == 0:
        output.print("nothing shown: --top 0")
    elif not result.trace.pool:
        output.print("nothing found: no store proposed a memory that this scope sees")
    else:
        output.print(f"nothing found: none of {result.trace.pool:,} candidates passed the floors")
    for failure in result.trace.failures:
        errors.print(Text(f"degraded: {failure.words}; its evidence is absent", "yellow"))
    for note in result.trace.notes:
        errors.print(Text(note, "yellow"))


def _with_zone(text: str | None) -> datetime | str | None:
    """A time that names no zone is meant in UTC; what is no time is left for `Memory` to refuse."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _weight(text: str) -> tuple[str, float]:
    name, separator, value = text.partition("=")
    try:
        if separator and name.strip():
            return name.strip(), float(value)
    except ValueError:
        pass
    raise InvalidArgumentError(f"--weight: expected name=number, got {text!r:.60}")
