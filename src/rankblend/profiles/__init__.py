"""Ranking profiles: the whole recipe of a ranking as data, with a hash, never code.

``load_profile`` finds one by name or path, ``dump_profile`` writes one, ``RankingProfile`` is one.
"""

from __future__ import annotations

from rankblend.canonical import canonical_hash, canonical_json
from rankblend.profiles._canonical import signal_schema_hash
from rankblend.profiles._profile import RankingProfile
from rankblend.profiles._recipe import (
    Floor,
    Floors,
    Pool,
    Select,
    SignalRecipe,
    inputs_first,
    reachable,
)
from rankblend.profiles._registry import PLUGIN_GROUP, load_profile, profile_names, read_profile
from rankblend.profiles._tree import Row, dump_profile, plain_profile

__all__ = [
    "PLUGIN_GROUP",
    "Floor",
    "Floors",
    "Pool",
    "RankingProfile",
    "Row",
    "Select",
    "SignalRecipe",
    "canonical_hash",
    "canonical_json",
    "dump_profile",
    "load_profile",
    "profile_names",
    "read_profile",
    "signal_schema_hash",
]
