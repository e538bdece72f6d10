"""Opening a closed memory until a recall can be answered, beside reading its bytes (P9).

The reference reads as many bytes as its vectors and postings have, from a file of their own; both
files are in the cache of the system. The graph is filled by the first recall that asks it, which is
measured too.
"""

from __future__ import annotations

import numpy as np
import pytest

import rankblend as rb
from many_memories import N, kept, write

pytestmark = pytest.mark.benchmark(group=f"reopen {N:,} memories × 384")
ROUNDS = 7


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("reopened") / "memories.db"
    write(path)
    rb.Memory.open(path).close()  # whatever is imported at the first opening is imported now
    return path


@pytest.fixture
def opened():
    """Memories a benchmark opened; each round closes the one before."""
    memories = []
    yield memories
    close_all(memories)


def close_all(memories):
    while memories:
        memories.pop().close()


def test_reference_the_bytes(benchmark, path):
    benchmark.extra_info["reference"] = True
    flat = path.with_name("bytes")
    flat.write_bytes(np.random.default_rng(0).bytes(kept(path)))
    benchmark.pedantic(flat.read_bytes, rounds=ROUNDS, warmup_rounds=1)


def test_open(benchmark, path, opened):
    benchmark.extra_info["target"] = "<= 6 x"
    benchmark.pedantic(
        lambda: opened.append(rb.Memory.open(path)),
        setup=lambda: close_all(opened),
        rounds=ROUNDS,
    )


def test_open_and_recall(benchmark, path, opened):
    def recall():
        opened.append(rb.Memory.open(path))
        return opened[-1].recall("word1 word7 word99", scope="tenant:t1/user:u1")

    assert len(benchmark.pedantic(recall, setup=lambda: close_all(opened), rounds=ROUNDS))
