"""``rankblend reasonlets recall`` and ``show``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from rankblend.cli.console import errors, output, print_json
from rankblend.cli.embedder import HELP
from rankblend.cli.reasonlets_file import (
    AsJson,
    Db,
    Identifier,
    Scope,
    lineage_table,
    match_table,
    open_for_asking,
    open_procedures,
    plain_match,
    plain_procedure,
    record_text,
    steps_table,
)
from rankblend.errors import InvalidArgumentError
from rankblend.reasonlets import Reasonlet, draw_graph, mermaid_text

__all__ = ["recall", "show"]


def recall(
    question: Annotated[str, typer.Argument(help="The question at hand.")],
    db: Db,
    scope: Scope,
    intent: Annotated[
        str | None, typer.Option("--intent", help="Only procedures of this intent.")
    ] = None,
    top: Annotated[int | None, typer.Option("--top", help="At most this many, 1 to 50.")] = None,
    min_similarity: Annotated[
        float | None,
        typer.Option("--min-similarity", help="Leave out less similar questions (.5)."),
    ] = None,
    embedder: Annotated[str, typer.Option("--embedder", help=HELP)] = "auto",
    as_json: AsJson = False,
) -> None:
    """Ask for the procedures most worth trying, best first."""
    with open_for_asking(db, embedder) as memory, errors.status("asking"):
        matches = memory.recall(
            question, scope=scope, intent=intent, top=top, min_similarity=min_similarity
        )
    if as_json:
        print_json([plain_match(match) for match in matches])
    elif matches:
        output.print(match_table(matches))
    else:
        output.print("no known procedure: no active one of this scope is similar enough")


def show(
    identifier: Identifier,
    db: Db,
    scope: Scope,
    mermaid: Annotated[
        bool, typer.Option("--mermaid", help="Only its graph, as Mermaid text.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Draw its graph into this .svg, .pdf or .png.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a procedure: its steps, its track record, and all versions of it."""
    if mermaid and as_json:
        raise InvalidArgumentError("--mermaid, --json: expected one of them")
    with open_procedures(db) as memory:
        found = memory.get(scope, identifier)
        versions = memory.lineage(scope, identifier)
    if picture is not None:
        draw_graph(found.graph, picture)
        errors.print(Text(f"drawn into {picture}"), soft_wrap=True)
    if mermaid:
        print(mermaid_text(found.graph), end="")  # noqa: T201
    elif as_json:
        print_json({**plain_procedure(found), "lineage": [_version(each) for each in versions]})
    elif picture is None:
        output.print(record_text(found), soft_wrap=True)
        output.print(steps_table(found.graph))
        if len(versions) > 1:
            output.print(lineage_table(versions, found.id))


def _version(made: Reasonlet) -> dict[str, object]:
    """A version without its definition, which `show` of its own id tells."""
    told = plain_procedure(made)
    return {name: told[name] for name in ("id", "version", "parent_id", "status", "metrics")}
