"""Stores: what answers a recall, what stores share, and the contract between them."""

from rankblend.stores._layers import DEFAULT_LAYERS, LayerPolicy, LayerVisibility, layer_policy
from rankblend.stores._protocol import (
    Contents,
    Observation,
    Reach,
    Reason,
    Seed,
    Statistics,
    Store,
    StoreQuery,
    SupportsBatch,
    SupportsCache,
    SupportsEdges,
    SupportsLoad,
    SupportsRebuild,
    SupportsSeeds,
    SupportsVectors,
    SupportsWalk,
    SupportsWrite,
)
from rankblend.stores._record import FIELDS as FIELDS
from rankblend.stores._record import Edge, Key, Keys, Link, Record
from rankblend.stores._rows import NumberedIds, ScopedRows, latest
from rankblend.stores._signal_store import SignalStore, SupportsPresent
from rankblend.stores._unit_vectors import as_unit, lengths, to_unit

__all__ = [
    "DEFAULT_LAYERS",
    "Contents",
    "Edge",
    "Key",
    "Keys",
    "LayerPolicy",
    "LayerVisibility",
    "Link",
    "Observation",
    "Reach",
    "Reason",
    "Record",
    "Seed",
    "SignalStore",
    "Statistics",
    "Store",
    "StoreQuery",
    "SupportsBatch",
    "SupportsCache",
    "SupportsEdges",
    "SupportsLoad",
    "SupportsPresent",
    "SupportsRebuild",
    "SupportsSeeds",
    "SupportsVectors",
    "SupportsWalk",
    "SupportsWrite",
    "layer_policy",
]
