"""Fixtures of the adapter tests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "chat"))
from chat_world import Emitted
from chat_world import emitted as what_was_emitted
from model_server import ModelServer


@pytest.fixture
def emitted() -> Callable[[], Emitted]:
    """Telemetry from here on."""
    what_was_emitted()
    return what_was_emitted


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A model behind OpenAI's API, on this machine."""
    with ModelServer() as server:
        yield server
