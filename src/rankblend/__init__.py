"""Compose what several memory stores say into one ranking that can be explained.

>>> import rankblend as rb
>>> memory = rb.Memory.open(":memory:")
>>> memory.remember("Refunds over 500 need approval", scope="tenant:acme", id="policy")
'policy'
>>> [match.memory.id for match in memory.recall("refund approval", scope="tenant:acme/user:7")]
['policy']
>>> memory.close()

Names are loaded when they are first used: ``import rankblend`` loads neither an index nor a graph.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from rankblend import _moved
from rankblend.version import __version__

if TYPE_CHECKING:
    from rankblend import embedders, errors
    from rankblend.errors import MemoryContractError, RankblendError
    from rankblend.profiles import RankingProfile, dump_profile, load_profile, profile_names
    from rankblend.recall import Comparison, Explanation, Match, Memory, Recall, default_stores
    from rankblend.relevance import (
        Evidence,
        RelevanceSignals,
        RelevanceWeights,
        Scope,
        ScopeBlend,
        ScopeBlendMode,
        SignalTable,
        cue_overlap,
        register_evidence,
    )
    from rankblend.stores import (
        Edge,
        LayerPolicy,
        Link,
        Observation,
        Record,
        Seed,
        SignalStore,
        Store,
        StoreQuery,
    )

_moved.install()

# Name → where it lives.
_HOMES = {
    "Comparison": "rankblend.recall",
    "Edge": "rankblend.stores",
    "Evidence": "rankblend.relevance",
    "Explanation": "rankblend.recall",
    "LayerPolicy": "rankblend.stores",
    "Link": "rankblend.stores",
    "Match": "rankblend.recall",
    "Memory": "rankblend.recall",
    "MemoryContractError": "rankblend.errors",
    "Observation": "rankblend.stores",
    "RankblendError": "rankblend.errors",
    "RankingProfile": "rankblend.profiles",
    "Recall": "rankblend.recall",
    "Record": "rankblend.stores",
    "RelevanceSignals": "rankblend.relevance",
    "RelevanceWeights": "rankblend.relevance",
    "Scope": "rankblend.relevance",
    "ScopeBlend": "rankblend.relevance",
    "ScopeBlendMode": "rankblend.relevance",
    "Seed": "rankblend.stores",
    "SignalStore": "rankblend.stores",
    "SignalTable": "rankblend.relevance",
    "Store": "rankblend.stores",
    "StoreQuery": "rankblend.stores",
    "cue_overlap": "rankblend.relevance",
    "default_stores": "rankblend.recall",
    "dump_profile": "rankblend.profiles",
    "load_profile": "rankblend.profiles",
    "profile_names": "rankblend.profiles",
    "register_evidence": "rankblend.relevance",
}
_MODULES = ("embedders", "errors")

__all__ = [
    "Comparison",
    "Edge",
    "Evidence",
    "Explanation",
    "LayerPolicy",
    "Link",
    "Match",
    "Memory",
    "MemoryContractError",
    "Observation",
    "RankblendError",
    "RankingProfile",
    "Recall",
    "Record",
    "RelevanceSignals",
    "RelevanceWeights",
    "Scope",
    "ScopeBlend",
    "ScopeBlendMode",
    "Seed",
    "SignalStore",
    "SignalTable",
    "Store",
    "StoreQuery",
    "__version__",
    "cue_overlap",
    "default_stores",
    "dump_profile",
    "embedders",
    "errors",
    "load_profile",
    "profile_names",
    "register_evidence",
]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        value: object = getattr(import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = import_module(f"rankblend.{name}")
    else:
        raise AttributeError(f"module 'rankblend' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
