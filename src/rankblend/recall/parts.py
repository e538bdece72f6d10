"""Reading the parts a memory is opened with: its stores and the policies of its layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rankblend.errors import nearest_name
from rankblend.recall.arguments import Problems
from rankblend.relevance.evidence import evidence_names, lookup_evidence
from rankblend.relevance.values import named
from rankblend.stores.layers import LayerPolicy
from rankblend.stores.protocol import Store

__all__ = ["read_layers", "read_stores"]


def read_layers(problems: Problems, given: object) -> Mapping[str, LayerPolicy]:
    """Policies by layer name; None is none."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        problems.add(f"layers: expected policies by layer name, got {type(given).__name__}")
        return {}
    for name, policy in given.items():
        if not isinstance(name, str):
            problems.add(f"layers: expected names, got {type(name).__name__}")
        if not isinstance(policy, LayerPolicy):
            problems.add(
                f"layers[{named(name)!r}]: expected a LayerPolicy, got {type(policy).__name__}"
            )
    return given


def read_stores(problems: Problems, given: object) -> tuple[Store, ...] | None:
    """The stores of a memory; None leaves the choice to it."""
    if given is None:
        return None
    if not isinstance(given, Iterable):
        problems.add(f"stores: expected several stores, got {type(given).__name__}")
        return ()
    stores = tuple(given)
    for position, store in enumerate(stores):
        if not isinstance(store, Store):
            problems.add(
                f"stores[{position}]: expected a store (name, emits, propose, observe, close), "
                f"got {type(store).__name__}"
            )
        elif isinstance(store.emits, str):
            problems.add(f"stores[{position}].emits: expected a tuple of names, got one text")
        else:
            for name in map(str, store.emits):
                if lookup_evidence(name) is None:
                    near = nearest_name(name, evidence_names())
                    hint = f'did you mean "{near}"?' if near else "register_evidence makes it known"
                    problems.add(f"stores[{position}].emits: unknown evidence {name!r:.40}: {hint}")
    return stores
