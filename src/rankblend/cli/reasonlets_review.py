"""``rankblend reasonlets pending``, ``approve`` and ``reject``: people decide what is recalled."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from rankblend.cli.console import output, print_json
from rankblend.cli.reasonlets_file import (
    AsJson,
    Db,
    Identifier,
    Scope,
    open_procedures,
    plain_procedure,
    waiting_table,
)

__all__ = ["approve", "pending", "reject"]


def pending(
    db: Db,
    scope: Scope,
    limit: Annotated[int, typer.Option("--limit", help="At most this many, 1 to 100.")] = 20,
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
        output.print(Text(f"perhaps more: --after {found[-1].id}", "dim"), soft_wrap=True)


def approve(identifier: Identifier, db: Db, scope: Scope) -> None:
    """Let a procedure be recalled, from the next question on."""
    with open_procedures(db) as memory:
        memory.approve(scope, identifier)
    output.print(Text(f"{identifier} approved"), soft_wrap=True)


def reject(identifier: Identifier, db: Db, scope: Scope) -> None:
    """Delete a procedure that waits for review, with its runs and their feedback."""
    with open_procedures(db) as memory:
        memory.reject(scope, identifier)
    output.print(Text(f"{identifier} rejected and deleted"), soft_wrap=True)
