"""``rankblend reasonlets``: ask, look at, review and move the procedures in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from attrs import asdict

from rankblend.cli.console import counted, errors, output, print_json, say
from rankblend.cli.options import OUTPUT, AsJson, Db, EmbedderChoice, NewDb, number, safe
from rankblend.cli.reasonlets_shown import (
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
    waiting_table,
)
from rankblend.errors import InvalidArgumentError
from rankblend.reasonlets import Reasonlet, draw_graph, mermaid_text, read_entries

__all__ = ["reasonlets"]

reasonlets = typer.Typer(
    name="reasonlets",
    help="Procedures with a track record: ask for them, review them, move them.",
    no_args_is_help=True,
)


@reasonlets.command()
def recall(
    question: Annotated[str, typer.Argument(help="The question at hand.")],
    db: Db,
    scope: Scope,
    intent: Annotated[
        str | None, typer.Option("--intent", help="Only procedures of this intent.")
    ] = None,
    top: Annotated[int | None, number("procedures", "--top", "At most this many")] = None,
    min_similarity: Annotated[
        float | None,
        typer.Option("--min-similarity", help="Leave out less similar questions (.5)."),
    ] = None,
    embedder: EmbedderChoice = "auto",
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


@reasonlets.command()
@safe
def show(
    identifier: Identifier,
    db: Db,
    scope: Scope,
    mermaid: Annotated[
        bool, typer.Option("--mermaid", help="Only its graph, as Mermaid text.")
    ] = False,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", help="Draw its graph into this .svg, .pdf or .png."),
        OUTPUT,
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
        say(f"drawn into {picture}", to=errors)
    if mermaid:
        print(mermaid_text(found.graph), end="")  # noqa: T201
    elif as_json:
        print_json({**plain_procedure(found), "lineage": [_version(each) for each in versions]})
    elif picture is None:
        output.print(record_text(found), soft_wrap=True)
        output.print(steps_table(found.graph))
        if len(versions) > 1:
            output.print(lineage_table(versions, found.id))


@reasonlets.command()
def pending(
    db: Db,
    scope: Scope,
    limit: Annotated[int, number("page", "--limit", "At most this many")] = 20,
    after: Annotated[
        str | None, typer.Option("--after", help="The last id of the page before.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List procedures that wait for review, the oldest first."""
    with open_procedures(db) as memory:
        found = memory.list_pending(scope, limit=limit, after=after)
    if as_json:
        print_json([plain_procedure(made) for made in found])
        return
    if not found:
        output.print("nothing waits for review")
        return
    output.print(waiting_table(found))
    if len(found) == limit:
        say(f"perhaps more: --after {found[-1].id}", "dim")


@reasonlets.command()
def approve(identifier: Identifier, db: Db, scope: Scope) -> None:
    """Let a procedure be recalled, from the next question on."""
    with open_procedures(db) as memory:
        memory.approve(scope, identifier)
    say(f"{identifier} approved")


@reasonlets.command()
def reject(identifier: Identifier, db: Db, scope: Scope) -> None:
    """Delete a procedure that waits for review, with its runs and their feedback."""
    with open_procedures(db) as memory:
        memory.reject(scope, identifier)
    say(f"{identifier} rejected and deleted")


@reasonlets.command()
def stats(
    db: Db,
    scope: Annotated[
        str | None, typer.Option("--scope", help="Exactly this scope; without it the whole file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Count procedures, runs and verdicts."""
    with open_procedures(db) as memory:
        found = memory.statistics(scope)
    if as_json:
        print_json(asdict(found))
        return
    every = counted(found.active + found.pending, "procedure", "procedures")
    families = counted(found.families, "family", "families")
    say(
        f"{every} in {families}: {found.active:,} active, {found.pending:,} waiting for review\n"
        f"{counted(found.runs, 'run', 'runs')}, {found.successes:,} of them worked; "
        f"{found.judged_runs:,} judged, {found.judged_successes:,} of those worked\n"
        f"{found.stored_runs:,} still stored one by one"
    )


@reasonlets.command()
@safe
def export(
    db: Db, out: Annotated[Path, typer.Option("--out", help="The .jsonl to write."), OUTPUT]
) -> None:
    """Write every procedure with its runs and feedback as JSON lines."""
    with open_procedures(db) as memory, errors.status("writing"):
        count = memory.export(out)
    written = counted(count, "procedure", "procedures")
    say(f"{written} written to {out}", to=errors)


@reasonlets.command(name="import")
def import_(
    source: Annotated[Path, typer.Argument(help="Written by `rankblend reasonlets export`.")],
    db: NewDb,
) -> None:
    """Add exported procedures to a file: all of them, or nothing."""
    if not source.is_file():
        raise InvalidArgumentError(f"{source}: no such file")
    if not db.exists():
        read_entries(source)  # so that no file is made for what cannot be read
    with open_procedures(db, create=True) as memory, errors.status("reading and writing"):
        count = memory.import_(source)
    written = counted(count, "procedure", "procedures")
    say(f"{written} written to {db}")


def _version(made: Reasonlet) -> dict[str, object]:
    """A version without its definition, which `show` of its own id tells."""
    told = plain_procedure(made)
    return {name: told[name] for name in ("id", "version", "parent_id", "status", "metrics")}
