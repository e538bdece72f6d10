"""Replay: profiles measured on a recording, as live recalls would have come out."""

from __future__ import annotations

from rankblend.experiment.replay._replay import replay

__all__ = ["replay"]
