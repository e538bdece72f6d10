"""Recordings: everything about a set of queries that any profile may need, in one file."""

from __future__ import annotations

from rankblend.experiment.recording.manifest import Manifest, RecordedStore
from rankblend.experiment.recording.query import RecordedQuery
from rankblend.experiment.recording.recorder import record
from rankblend.experiment.recording.recording import Recording

__all__ = ["Manifest", "RecordedQuery", "RecordedStore", "Recording", "record"]
