"""``rankblend mcp``: a memory file as a server of tools for agents."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from rankblend.cli.options import EmbedderChoice, NewDb, Profile, embedder_for
from rankblend.embedders import Embedder
from rankblend.errors import InvalidArgumentError
from rankblend.profiles import RankingProfile, load_profile
from rankblend.reasonlets import ReasonletOptions
from rankblend.recall import Memory, stored_embedder
from rankblend.relevance import Scope

__all__ = ["mcp"]


def mcp(
    db: NewDb,
    scope: Annotated[
        str | None,
        typer.Option(
            "--scope", help="Whose memories and procedures; clients cannot leave it. Required."
        ),
    ] = None,
    allow_below: Annotated[
        bool, typer.Option("--allow-below", help="Let a call name a place below the scope.")
    ] = False,
    profile: Profile = "default",
    embedder: EmbedderChoice = "auto",
    min_similarity: Annotated[
        float,
        typer.Option("--min-similarity", help="find_procedure leaves out less similar questions."),
    ] = ReasonletOptions().min_similarity,
) -> None:
    """Serve a memory file to agents: MCP over standard input and output.

    Tools: recall, remember, explain, find_procedure, record_outcome. Who starts the server says
    whose memory it is; a client sees that scope and nothing beside it.
    """
    if scope is None:
        raise InvalidArgumentError(
            "--scope: required, there is no default; it says whose memory is served, e.g. "
            "--scope tenant:acme"
        )
    where = Scope.parse(scope)
    options = ReasonletOptions(min_similarity=min_similarity)
    recipe = load_profile(profile)
    asker = embedder_for(embedder, stored_embedder(db))
    asyncio.run(_serve(db, where, recipe, asker, options, below=allow_below))


async def _serve(
    db: Path,
    scope: Scope,
    profile: RankingProfile,
    embedder: Embedder | None,
    options: ReasonletOptions,
    *,
    below: bool,
) -> None:
    from rankblend.adapters.mcp import MemoryTools, serve
    from rankblend.reasonlets import ReasonletMemory, SqliteReasonletStore

    with Memory.open(db, embedder=embedder, profile=profile) as memory:
        if embedder is None:
            await serve(MemoryTools(memory, None, scope, allow_below=below))
            return
        store = SqliteReasonletStore.open(db)
        async with ReasonletMemory(embedder, store, options=options) as procedures:
            await serve(MemoryTools(memory, procedures, scope, allow_below=below))
