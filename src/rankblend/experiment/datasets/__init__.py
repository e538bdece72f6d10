"""Data sets with relevance judgments, read from a path the user gives; nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from types import MappingProxyType

from rankblend.errors import UnknownNameError
from rankblend.experiment.datasets._bfcl import load_bfcl
from rankblend.experiment.datasets._dataset import Dataset, JudgedQuery
from rankblend.experiment.datasets._jsonl import load_jsonl
from rankblend.experiment.datasets._locomo import load_locomo
from rankblend.experiment.datasets._musique import load_musique
from rankblend.experiment.datasets._scifact import load_scifact
from rankblend.experiment.datasets._tau2_banking import load_tau2_banking
from rankblend.experiment.datasets._taubench import TaskRun, load_taubench_runs
from rankblend.experiment.datasets._trec import read_qrels, read_run, write_run

__all__ = [
    "LOADERS",
    "Dataset",
    "JudgedQuery",
    "TaskRun",
    "load_bfcl",
    "load_dataset",
    "load_jsonl",
    "load_locomo",
    "load_musique",
    "load_scifact",
    "load_tau2_banking",
    "load_taubench_runs",
    "read_qrels",
    "read_run",
    "write_run",
]

LOADERS: Mapping[str, Callable[[str | PathLike[str]], Dataset]] = MappingProxyType(
    {
        "bfcl": load_bfcl,
        "jsonl": load_jsonl,
        "locomo": load_locomo,
        "musique": load_musique,
        "scifact": load_scifact,
        "tau2-banking": load_tau2_banking,
    }
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
