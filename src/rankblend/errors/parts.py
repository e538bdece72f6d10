"""What may be missing or broken around rankblend, and warnings about it."""

from __future__ import annotations

from rankblend.errors.tree import RankblendError, RankblendWarning

__all__ = ["CacheWarning", "MissingDependencyError", "PluginError", "PluginWarning"]


class MissingDependencyError(RankblendError, ImportError):
    """An optional part of rankblend needs a package that is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(f"{purpose} needs {package}: pip install 'rankblend[{extra}]'")


class PluginError(RankblendError, RuntimeError):
    """A plug-in was asked for by name and could not be loaded; the original is the cause."""


class PluginWarning(RankblendWarning):
    """A plug-in was skipped: it is a duplicate, has an invalid name or failed to load."""


class CacheWarning(RankblendWarning):
    """An index cache was missing, stale or corrupt and was rebuilt from the catalog."""
