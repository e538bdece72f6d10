"""Importing the package, beside importing numpy (P10 of the performance targets)."""

from __future__ import annotations

import subprocess
import sys

import pytest


def _import(module: str) -> None:
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)


@pytest.mark.benchmark(group="import in a fresh process")
@pytest.mark.parametrize("module", ["numpy", "rankblend"])
def test_import(benchmark, module):
    benchmark.pedantic(_import, args=(module,), rounds=5, warmup_rounds=1)
