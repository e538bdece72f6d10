"""The counters of the chat pipeline; `docs/telemetry.md` lists every value of every tag."""

from __future__ import annotations

from rankblend.telemetry import EventCounter

__all__ = ["CAPTURES", "RECALLS"]

RECALLS = EventCounter(
    "mnemosyne.chat.recalls", "{call}", "Chat calls by what came of recalling a procedure for them."
)
CAPTURES = EventCounter(
    "mnemosyne.capture.queue", "{capture}", "Finished chat calls by what came of remembering them."
)
