"""Recordings: everything about a set of queries that any profile may need, in one file."""

from __future__ import annotations

from rankblend.experiment.recording._block import Block
from rankblend.experiment.recording._gather import NOT_RECORDED
from rankblend.experiment.recording._manifest import Manifest, RecordedStore
from rankblend.experiment.recording._pools import Demand, demand_of
from rankblend.experiment.recording._query import Pools, RecordedQuery, pools_of
from rankblend.experiment.recording._recorder import record
from rankblend.experiment.recording._recording import Recording

__all__ = ["Manifest", "RecordedQuery", "RecordedStore", "Recording", "record"]
