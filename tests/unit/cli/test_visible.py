"""Texts of memories reach a terminal as text, never as commands to it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rankblend.cli.console import escaped, output, visible
from rankblend.recall import Memory

SCOPE = "tenant:acme"
EVIL = "tea\x1b]0;owned\x07 \x1b[2J\r\x9b31m\u202eevil\u2066\x7f\x08 cup"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "m.db"
    with Memory.open(path) as memory:
        memory.remember(EVIL, scope=SCOPE, id="i\u202ed", layer="la\x1byer", links=["x\x1b[31m"])
        memory.remember(EVIL + " two", scope=SCOPE, id="b", salience=0.9)
    return path


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--explain"],
        ["--id", "i\u202ed"],
        ["--id", "un\x1bknown"],
        ["--compare", "crewai"],
        ["--json", "--explain", "--compare", "crewai"],
        ["--scope", "bad\x1b[2J"],
        ["--weight", "bad\x1b[2J"],
    ],
)
def test_recall_when_memories_hold_control_characters_then_none_is_printed(
    rankblend: Any, db: Path, options: list[str]
) -> None:
    done = rankblend(
        "recall", "tea cup", "--db", db, "--scope", SCOPE, "--embedder", "none", *options
    )
    assert (done.out + done.err).strip()
    assert RAW.findall(done.out + done.err) == []


def test_recall_when_shown_then_the_control_characters_are_seen(
    rankblend: Any, db: Path, width: Any
) -> None:
    width(200)
    done = rankblend("recall", "tea cup", "--db", db, "--scope", SCOPE, "--embedder", "none")
    assert "tea␛]0;owned␇ ␛[2J" in done.out
    assert "�evil�␡␈ cup" in done.out


def test_recall_when_json_then_the_text_is_read_back_unchanged(rankblend: Any, db: Path) -> None:
    done = rankblend(
        "recall", "tea cup", "--db", db, "--scope", SCOPE, "--embedder", "none", "--json"
    )
    found = json.loads(done.out)
    assert EVIL in {match["memory"]["text"] for match in found["matches"]}


def test_print_when_colors_are_on_then_only_its_own_sequences_are_written() -> None:
    before = output._color_system, output._force_terminal
    try:
        output._force_terminal = True
        with output.capture() as capture:
            output.print(EVIL, style="red")
    finally:
        output._color_system, output._force_terminal = before
    printed = capture.get()
    assert "\x1b]0;" not in printed
    assert "\x1b[2J" not in printed
    assert "␛[2J" in printed


def test_visible_when_text_is_ordinary_then_it_stays() -> None:
    for text in ("", "a\tb\n", "ü 😀 👩\u200d👩\u200d👧 שלום \u200f", "日本"):
        assert visible(text) == escaped(text) == text
    assert len(visible(EVIL)) == len(EVIL)
