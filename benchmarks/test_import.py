"""Importing the package, beside importing numpy (P10 of the performance targets)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from conftest import PEAK

GREATEST = (
    "from pathlib import Path; status = Path('/proc/self/status');"
    "lines = status.read_text().splitlines() if status.exists() else [];"
    "print(*(line.split()[1] for line in lines if line.startswith('VmHWM')))"
)


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout


@pytest.mark.benchmark(group="import in a fresh process")
@pytest.mark.parametrize("code", ["numpy", "rankblend", "rankblend; rankblend.Memory"])
def test_import(benchmark, code):
    """The package's names are loaded when they are first used; the last one loads what it needs."""
    benchmark.extra_info |= {"numpy": {"reference": True}, "rankblend": {"target": "<= 2 x"}}.get(
        code, {}
    )
    benchmark.pedantic(run, args=(f"import {code}",), rounds=9, warmup_rounds=1)
    greatest = run(f"import {code}\n{GREATEST}").strip()
    if greatest:  # of the fresh process, all of it
        benchmark.extra_info[PEAK] = round(int(greatest) / 1024, 1)
