"""docs/architecture.md and CONTRIBUTING.md show the whole map, and every room they name is there."""

from __future__ import annotations

import re
from pathlib import Path

from rankblend._moved import MOVED

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "rankblend"
PACKAGES = {path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("__init__.py")} - {
    "."
}
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_map_when_read_then_it_has_every_package_and_none_that_is_gone() -> None:
    assert [name for name in sorted(PACKAGES) if f"`{name}`" not in PAGE] == []
    bottom = {path.stem for path in SOURCE.glob("[a-z]*.py")} - {"version"}
    assert [name for name in sorted(bottom) if f"`{name}`" not in PAGE] == []


def test_map_when_it_names_a_room_then_it_is_there() -> None:
    named = re.findall(r"`((?:\w+/)+\w+)`", PAGE)
    assert len(named) > 40
    gone = [
        name
        for name in named
        if not (SOURCE / f"{name}.py").is_file() and not (SOURCE / name).is_dir()
    ]
    assert gone == []


def test_contributing_when_read_then_it_shows_every_folder() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    tops = {name.partition("/")[0] for name in PACKAGES}
    folders = {
        path.name
        for place in (ROOT, ROOT / "tests")
        for path in place.iterdir()
        if path.is_dir() and any(path.glob("*.*")) and not path.name.startswith((".", "_"))
    } - {"src", "tests", "build", "dist", "htmlcov"}
    missing = [name for name in sorted(tops | folders) if not re.search(rf"\b{name}`", page)]
    assert missing == []


def test_upgrade_page_when_read_then_it_lists_every_module_that_moved() -> None:
    page = (ROOT / "docs" / "upgrade.md").read_text(encoding="utf-8")
    rows = dict(
        re.findall(r"^\| `(rankblend[\w.]+)` \| `(rankblend[\w.]+)` \|$", page, re.MULTILINE)
    )
    assert rows == MOVED
