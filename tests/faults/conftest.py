"""Fixtures shared by the fault tests."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rankblend as rb

sys.path.insert(0, str(Path(__file__).parent))
from processes import Forks
from scenario import SECRET, START, USER


@pytest.fixture(scope="module")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    """A process whose forks write, and are killed."""
    with Forks(tmp_path_factory.mktemp("forks") / "errors") as running:
        yield running


@pytest.fixture
def opened() -> Iterator[Callable[..., rb.Memory]]:
    """Open memories in RAM with a few memories, and a store of one's own; closed afterwards."""
    memories = []

    def make(store: Any = None, *, path: Any = ":memory:", **options: Any) -> rb.Memory:
        if store is not None:
            options["stores"] = [*rb.default_stores(), store]
        memory = rb.Memory.open(path, **{"clock": lambda: START, "profile": "crewai", **options})
        memories.append(memory)
        memory.remember("refund policy", scope=USER, id="a", salience=0.5)
        memory.remember("refund of an order", scope=USER, id="b")
        memory.remember(SECRET, scope="tenant:globex", id="secret")
        return memory

    yield make
    for memory in memories:
        memory.close()


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """What a hanging store waits for; set when the test is over, so that no thread outlives it."""
    event = threading.Event()
    yield event
    event.set()
