"""Opening the demo memory."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from importlib.resources import as_file, files

from rankblend.demo.track_record import TrackRecord
from rankblend.embedders import Embedder
from rankblend.recall import Memory, default_stores, read_lines
from rankblend.relevance.scope import Scope

__all__ = ["ASKED_AT", "QUESTION", "SCOPE", "open_demo"]

QUESTION = "The espresso machine is broken and Ana wants her money back. What do we do?"
SCOPE = Scope.parse("tenant:northwind/user:ana/session:2026-06-29")
ASKED_AT = datetime(2026, 6, 29, 9, 0, tzinfo=UTC)

# What support looked up lately: scope → ids that were of use.
_USED = {
    "tenant:northwind": ("refund-broken", "refund-broken", "refund-broken", "iban-by-phone",
                         "iban-by-phone", "proc-iban", "tone", "tone", "tone", "tone"),
    "tenant:northwind/user:ana": ("ana-transfer",),
}  # fmt: skip


def open_demo(
    path: str | os.PathLike[str] = ":memory:", *, embedder: Embedder | None = None
) -> Memory:
    """The demo memory in a new file (or in RAM), its clock standing at `ASKED_AT`.

    The tickets of ``imported.jsonl`` come from a system that had no embedder: similarity is absent
    for them, which is not the same as 0.
    """
    memory = Memory.open(
        path,
        embedder=embedder,
        stores=[*default_stores(), TrackRecord()],
        clock=lambda: ASKED_AT,
        allow_subtree=True,
    )
    for name in ("memories.jsonl", "imported.jsonl"):
        with as_file(files("rankblend.demo") / name) as source:
            memories, links = read_lines(source)
        memory.remember_many(memories, embed=name == "memories.jsonl")
        for link in links:
            scope = str(link["scope"])
            memory.link_many([{k: v for k, v in link.items() if k != "scope"}], scope=scope)
    for used_at, ids in _USED.items():
        for identifier in ids:
            memory.reinforce(identifier, scope=used_at)
    return memory
