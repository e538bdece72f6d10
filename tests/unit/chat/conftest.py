"""Fixtures of the chat tests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from chat_world import Emitted
from chat_world import emitted as what_was_emitted


@pytest.fixture
def emitted() -> Callable[[], Emitted]:
    """Telemetry from here on."""
    what_was_emitted()
    return what_was_emitted
