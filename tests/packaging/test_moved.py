"""Modules that moved still import under their old names, with a warning that says where to go."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from rankblend._moved import MOVED


@pytest.mark.parametrize("old", sorted(MOVED))
def test_module_when_it_moved_then_its_old_name_warns_and_gives_the_same_things(old: str) -> None:
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=f"{old} moved; import its names from {MOVED[old]}"):
        module = importlib.import_module(old)
    home = importlib.import_module(MOVED[old])
    assert {name: getattr(module, name) for name in home.__all__} == {
        name: getattr(home, name) for name in home.__all__
    }
    sys.modules.pop(old)


def test_module_when_it_moved_then_the_warning_points_at_the_line_that_names_it() -> None:
    code = "from rankblend.stores.protocol import Store"
    done = subprocess.run(
        [sys.executable, "-W", "always::DeprecationWarning", "-c", code],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stderr.startswith("<string>:1: DeprecationWarning: rankblend.stores.protocol moved")
