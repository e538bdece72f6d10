"""Data sets with relevance judgments, read from a path the user gives; nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from types import MappingProxyType

from rankblend.errors import UnknownNameError
from rankblend.experiment.datasets.bfcl import load_bfcl
from rankblend.experiment.datasets.dataset import Dataset, JudgedQuery
from rankblend.experiment.datasets.locomo import load_locomo
from rankblend.experiment.datasets.musique import load_musique

__all__ = [
    "LOADERS",
    "Dataset",
    "JudgedQuery",
    "load_bfcl",
    "load_dataset",
    "load_locomo",
    "load_musique",
]

LOADERS: Mapping[str, Callable[[str | PathLike[str]], Dataset]] = MappingProxyType(
    {"bfcl": load_bfcl, "locomo": load_locomo, "musique": load_musique}
)


def load_dataset(name: str, path: str | PathLike[str]) -> Dataset:
    """Read a data set by the name of its loader.

    Raises:
        UnknownNameError: No such loader.
        InvalidArgumentError: The path does not hold that data set.
    """
    if name not in LOADERS:
        raise UnknownNameError("data set", name, LOADERS)
    return LOADERS[name](path)
