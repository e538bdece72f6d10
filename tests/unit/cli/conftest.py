"""The command line, in this process or as the installed program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rankblend.cli import console
from rankblend.cli.app import run

SCRIPT = Path(sysconfig.get_path("scripts")) / "rankblend"
PROGRAM = (
    [str(SCRIPT)]
    if SCRIPT.exists()
    else [sys.executable, "-c", "from rankblend.cli import main; main()"]
)


class Result(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def errors(self) -> list[str]:
        """The lines that name a mistake."""
        return [line for line in self.err.splitlines() if line.startswith("error: ")]


@pytest.fixture
def width() -> Iterator[Callable[[int], None]]:
    """Set the width of the terminal; 130 columns unless a test says otherwise."""
    consoles = (console.output, console.errors)
    before = [(one, one._width) for one in consoles]

    def set_to(columns: int) -> None:
        for one in consoles:
            one.width = columns

    set_to(130)
    yield set_to
    for one, columns in before:
        one._width = columns


@pytest.fixture
def rankblend(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    width: Callable[[int], None],
) -> Callable[..., Result]:
    """Run a command in this process, as the program does: exit code, standard output and error."""
    monkeypatch.delenv("RANKBLEND_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "110")  # for the help pages, which have a console of their own

    def call(*arguments: object) -> Result:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Result(ended.value.code, out, err)

    return call


@pytest.fixture(scope="session")
def environment() -> Mapping[str, str]:
    """For the program: a known width, no colors, no debugging."""
    kept = {name: value for name, value in os.environ.items() if name != "RANKBLEND_DEBUG"}
    return {**kept, "COLUMNS": "110", "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}


@pytest.fixture(scope="session")
def program(environment: Mapping[str, str]) -> Callable[..., Result]:
    """Run the installed program."""

    def call(*arguments: object, **options: Any) -> Result:
        done = subprocess.run(
            [*PROGRAM, *map(str, arguments)],
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=120,
            check=False,
            env={**environment, **options.pop("env", {})},
            **options,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture(scope="session")
def command() -> list[str]:
    """The installed program, for tests that start it themselves."""
    return PROGRAM


Line = Mapping[str, Any]


@pytest.fixture
def write_lines(tmp_path: Path) -> Callable[..., Path]:
    """Write JSON lines (or raw text) to a new file."""

    def write(name: str, *lines: Line | str) -> Path:
        path = tmp_path / name
        texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
        path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        return path

    return write


@pytest.fixture
def notes(write_lines: Callable[..., Path], rankblend: Callable[..., Result]) -> Path:
    """A memory file without vectors: three memories at two scopes and a link."""
    source = write_lines(
        "notes.jsonl",
        {"id": "p1", "scope": "tenant:acme/user:7", "salience": 0.8,
         "text": "Ana prefers refunds by bank transfer"},
        {"id": "p2", "scope": "tenant:acme", "links": ["refund"],
         "text": "Refunds over 500 need approval"},
        {"id": "p3", "scope": "tenant:acme", "text": "The office is closed on Mondays"},
        {"type": "link", "scope": "tenant:acme", "source": "refund", "target": "p2"},
    )  # fmt: skip
    db = source.with_suffix(".db")
    assert rankblend("ingest", source, "--db", db, "--embedder", "none").code == 0
    return db
