"""Fixtures shared by all tests."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("default", deadline=None, derandomize=True)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# A shell's background job ignores Ctrl-C, and so would the programs that tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with expected values and real data that lies beside the project."""
    if not SHARED.is_dir():
        pytest.skip("needs the folder ../shared (expected values and real data) beside the project")
    return SHARED


@pytest.fixture(scope="session")
def vectors(shared: Path) -> Callable[[str], Any]:
    """Load a file of expected values by name, e.g. ``vectors("relevance")``."""

    def load(name: str) -> Any:
        return json.loads((shared / "vectors" / f"{name}.json").read_text(encoding="utf-8"))

    return load


@pytest.fixture
def rng() -> np.random.Generator:
    """A random generator that is the same on every run."""
    return np.random.default_rng(20261129)
