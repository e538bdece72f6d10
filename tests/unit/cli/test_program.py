"""The program as such: version, help, exit codes, streams."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rankblend.version import __version__

COMMANDS = ("demo", "ingest", "recall", "profiles", "export", "reembed")


def test_version_then_one_line(program: Any) -> None:
    assert program("--version") == (0, f"rankblend {__version__}\n", "")


def test_help_then_every_command_has_its_sentence(rankblend: Any) -> None:
    done = rankblend("--help")
    assert done.code == 0
    for command in COMMANDS:
        line = next(line for line in done.out.splitlines() if f"│ {command} " in line)
        assert line.rstrip(" │").endswith(".")


@pytest.mark.parametrize("command", COMMANDS)
def test_command_when_help_is_asked_then_it_is_shown(rankblend: Any, command: str) -> None:
    done = rankblend(command, "--help")
    assert done.code == 0
    assert f"rankblend {command}" in done.out or "Usage:" in done.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fly"], "No such command 'fly'"),
        (["recall"], "Missing argument"),
        (["recall", "x", "--scope", "t:a"], "Missing option '--db'"),
        (["recall", "x", "--db", "m.db"], "Missing option '--scope'"),
        (["recall", "x", "--db", "m.db", "--scope", "t:a", "--top", "many"], "Invalid value for '--top'"),
        (["recall", "x", "--topp", "3"], "--topp"),
        (["export", "--db", "m.db"], "Missing option '--out'"),
        (["reembed", "--db", "m.db", "--relabel"], "--relabel"),
        (["reembed"], "Missing option '--db'"),
    ],
)  # fmt: skip
def test_program_when_a_command_is_incomplete_then_the_exit_code_is_2(
    rankblend: Any, arguments: list[str], said: str
) -> None:
    done = rankblend(*arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_program_when_the_reader_goes_away_then_it_ends_without_a_word(
    command: list[str], environment: Mapping[str, str]
) -> None:
    process = subprocess.Popen(
        [*command, "profiles", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 141
    assert said == ""


def test_program_when_the_disk_says_no_then_it_is_one_line(rankblend: Any, notes: Path) -> None:
    name = "x" * 300  # longer than a file name may be
    done = rankblend("export", "--db", notes, "--out", notes.parent / name)
    assert done.code == 1
    assert len(done.errors) == 1
    assert "name too long" in done.errors[0]
