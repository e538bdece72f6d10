"""What an open memory keeps resident, beside its vectors alone (P11).

Measured in a fresh process: how much VmRSS grows by opening, once everything is imported. Catalog,
vectors and keywords are open; the graph is not filled until somebody asks.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from many_memories import D, N, write

MEASURED = """
import re, sys
from pathlib import Path
import rankblend as rb

def resident():
    return int(re.search(r"VmRSS:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

with rb.Memory.open(":memory:") as small:  # imports what opening and asking import
    small.remember("text", scope="tenant:a", vector=[0.6, 0.8])
    small.recall("text", scope="tenant:a")
before = resident()
memory = rb.Memory.open(sys.argv[1])
opened = resident()
memory.recall("word1 word7 word99", scope="tenant:t1/user:u1")
print(opened - before, resident() - before)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("footprint") / "memories.db"
    write(path)
    return path


def measured(path):
    command = [sys.executable, "-c", MEASURED, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [int(size) for size in done.stdout.split()]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc/self/status")
@pytest.mark.benchmark(group=f"resident memory, {N:,} memories × {D}")
def test_open_in_a_fresh_process(benchmark, path):
    opened, asked = benchmark.pedantic(measured, args=(path,), rounds=3)
    vectors = N * D * 4
    benchmark.extra_info |= {
        "target": "resident / vectors <= 1.6",
        "resident / vectors": opened / vectors,
        "bytes a memory": opened / N,
        "after a recall, graph filled": asked / vectors,
    }
