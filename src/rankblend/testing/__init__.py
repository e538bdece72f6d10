"""Conformance kits: subclass one class, fill in one method, and pytest does the rest.

====================================  ============================================================
`StoreConformance`                    a store that keeps memories
`SignalStoreConformance`              a store that only answers for ids, e.g. a `SignalStore`
`EmbedderConformance`                 an embedder
`ReasonletStoreConformance`           a store of procedures
`run_conformance`                     run a kit from code and get the outcomes
`ReferenceStore`                      a store that is slow and easily seen to be right
`hashed_embedder`                     an embedder for tests that needs no model
`strategies`                          hypothesis strategies for scopes, memories and questions
====================================  ============================================================

Needs ``pip install 'rankblend[testing]'`` (pytest and hypothesis). Both are imported when a name is
first used, not before.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from rankblend.errors import MissingDependencyError

if TYPE_CHECKING:
    from rankblend.testing import strategies
    from rankblend.testing._embedding import EmbedderConformance, hashed_embedder
    from rankblend.testing._guard import Outcome, run_conformance
    from rankblend.testing._reasonlets import ReasonletStoreConformance
    from rankblend.testing._reference import ReferenceStore
    from rankblend.testing._stores import SignalStoreConformance, StoreConformance

__all__ = [
    "EmbedderConformance",
    "Outcome",
    "ReasonletStoreConformance",
    "ReferenceStore",
    "SignalStoreConformance",
    "StoreConformance",
    "hashed_embedder",
    "run_conformance",
    "strategies",
]

_HOMES = {
    "EmbedderConformance": "_embedding",
    "Outcome": "_guard",
    "ReasonletStoreConformance": "_reasonlets",
    "ReferenceStore": "_reference",
    "SignalStoreConformance": "_stores",
    "StoreConformance": "_stores",
    "hashed_embedder": "_embedding",
    "run_conformance": "_guard",
    "strategies": "strategies",
}
# Their assert statements are rewritten by pytest, so that a failure shows the values compared.
_ASSERTING = (
    "_capabilities",
    "_contract",
    "_embedding",
    "_machine",
    "_proposing",
    "_reasonlet_machine",
    "_reasonlets",
    "_seeing",
    "_subject",
    "_writing",
)


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    _prepare()
    module = importlib.import_module(f"{__name__}.{home}")
    return module if home == name else getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)


def _prepare() -> None:
    for package in ("pytest", "hypothesis"):
        try:
            importlib.import_module(package)
        except ImportError:
            raise MissingDependencyError(package, "testing", "the conformance kit") from None
    import sys

    import pytest

    names = [f"{__name__}.{module}" for module in _ASSERTING]
    pytest.register_assert_rewrite(*(name for name in names if name not in sys.modules))
