"""Ranking profiles: the whole recipe of a ranking as data, with a hash, never code.

``load_profile`` finds one by name or path, ``dump_profile`` writes one, ``RankingProfile`` is one.
"""

from __future__ import annotations

from rankblend.profiles.canonical import canonical_hash, canonical_json
from rankblend.profiles.identity import signal_schema_hash
from rankblend.profiles.profile import RankingProfile
from rankblend.profiles.recipe import Floor, Floors, Pool, Select, SignalRecipe
from rankblend.profiles.registry import PLUGIN_GROUP, load_profile, profile_names, read_profile
from rankblend.profiles.tree import Row
from rankblend.profiles.write import dump_profile

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
