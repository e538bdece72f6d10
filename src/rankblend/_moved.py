"""Modules that users could name and that moved: they still import, with a warning, for one release."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["MOVED", "install"]

# Old name → the door that has its names now. Goes with the release after 0.2.
MOVED = {
    "rankblend.reasonlets.store": "rankblend.stores.procedures",
    "rankblend.stores.activity": "rankblend.stores.catalog",
    "rankblend.stores.catalog_store": "rankblend.stores.catalog",
    "rankblend.stores.layers": "rankblend.stores",
    "rankblend.stores.protocol": "rankblend.stores",
    "rankblend.stores.signal_store": "rankblend.stores",
}


class _Moved(MetaPathFinder, Loader):
    """Finds a module under its old name and says where its names are now."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """The spec of a module that moved, else None."""
        return ModuleSpec(fullname, self) if fullname in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        """Give the old module every name that its new home has."""
        home = MOVED[module.__name__]
        # The frames of the import system do not count: the line told is the one that names it.
        warnings.warn(
            f"{module.__name__} moved; import its names from {home}",
            DeprecationWarning,
            stacklevel=2,
        )
        vars(module).update(
            {name: value for name, value in vars(import_module(home)).items() if name[:2] != "__"}
        )


def install() -> None:
    """Let the old names be found; doing it twice is harmless."""
    if not any(isinstance(finder, _Moved) for finder in sys.meta_path):
        # Before the search of folders: one that an older version left behind is empty, but found.
        sys.meta_path.insert(0, _Moved())
