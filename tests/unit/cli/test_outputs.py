"""What a command is given to read is not written over, and what it prints reaches any reader."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from rankblend.cli.options import NEW_FOLDER, OUTPUT, safe
from rankblend.errors import InvalidArgumentError
from rankblend.files import read_text, write_whole
from rankblend.recall import Memory

posix = pytest.mark.skipif(os.name != "posix", reason="needs links and pipes of POSIX")
SCOPE = "tenant:acme"


def state(folder: Path) -> dict[str, str]:
    """Every file with its contents, but what SQLite makes while a database is open."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def reach(kind: str, path: Path) -> Path:
    """Another name of a file."""
    link = path.with_name("another-name")
    if kind == "symbolic link":
        link.symlink_to(path)
    elif kind == "hard link":
        link.hardlink_to(path)
    elif kind == "dotted":
        return path.parent / "." / ".." / path.parent.name / path.name
    return link if link.exists() else path


@posix
@pytest.mark.parametrize("kind", ["itself", "dotted", "symbolic link", "hard link"])
@pytest.mark.parametrize("command", [["export"], ["reasonlets", "export"]])
def test_export_when_the_output_is_the_database_then_nothing_is_touched(
    program: Any, notes: Path, kind: str, command: list[str]
) -> None:
    out = reach(kind, notes)
    before = state(notes.parent)
    done = program(*command, "--db", notes, "--out", out)
    assert (done.code, done.out) == (2, "")
    assert len(done.errors) == 1
    assert "is being read" in done.errors[0]
    assert state(notes.parent) == before


@posix
@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("command", [["export"], ["reasonlets", "export"]])
@pytest.mark.parametrize("held", [False, True])
def test_export_when_the_output_lies_beside_the_database_then_nothing_is_touched(
    program: Any, notes: Path, end: str, command: list[str], held: bool
) -> None:
    memory = Memory.open(notes)
    try:
        if held:  # another process has it open, and its log is not empty
            memory.remember("new in the log", scope=SCOPE, id="logged")
        else:
            memory.close()
        done = program(*command, "--db", notes, "--out", f"{notes}{end}")
        assert done.code == 2
        assert "belongs to" in done.errors[0]
    finally:
        memory.close()
    with Memory.open(notes) as memory:
        assert len(memory) == 3 + held


def test_ingest_when_the_database_would_be_the_log_of_another_then_it_is_not_made(
    rankblend: Any, notes: Path
) -> None:
    done = rankblend(
        "ingest", notes.with_suffix(".jsonl"), "--db", f"{notes}-wal", "--embedder", "none"
    )
    assert done.code == 2
    assert "belongs to a database" in done.errors[0]
    assert not Path(f"{notes}-wal").exists()


@pytest.mark.parametrize("kind", ["itself", "symbolic link", "hard link"])
def test_fit_when_the_output_is_the_recording_then_it_is_refused_before_it_is_opened(
    rankblend: Any, tmp_path: Path, kind: str
) -> None:
    recording = tmp_path / "r.arrow"
    recording.write_bytes(b"whatever is in it is not looked at")
    for command in ("fit", "replay", "ablate", "compare"):
        out = reach(kind, recording)
        done = rankblend(command, recording, "--out", out)
        assert done.code == 2
        assert "--out" in done.errors[0]
        assert "is being read" in done.errors[0]
        (tmp_path / "another-name").unlink(missing_ok=True)
    assert recording.read_bytes() == b"whatever is in it is not looked at"


def test_report_when_the_output_is_the_results_or_the_ledger_then_it_is_refused(
    rankblend: Any, tmp_path: Path
) -> None:
    results = tmp_path / "kept.json"
    results.write_text("{}", encoding="utf-8")
    assert "is being read" in rankblend("report", results, "--out", results).errors[0]
    ledger = tmp_path / "tried.html"  # not there yet
    done = rankblend("report", results, "--out", ledger, "--ledger", ledger)
    assert "is being read" in done.errors[0]
    assert {path.name for path in tmp_path.iterdir()} == {"kept.json"}


def test_fit_when_the_output_is_the_profile_then_it_is_refused(
    rankblend: Any, tmp_path: Path
) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('extends = "default"\n', encoding="utf-8")
    done = rankblend("fit", tmp_path / "r.arrow", "--profile", mine, "--out", mine)
    assert (done.code, done.out) == (2, "")
    assert "is being read" in done.errors[0]


def test_command_when_it_reads_more_than_it_was_given_then_that_is_not_written_over(
    tmp_path: Path,
) -> None:
    from pathlib import Path as Annotation
    from typing import Annotated

    inner = tmp_path / "inner.toml"
    inner.write_text("precious", encoding="utf-8")

    def command(
        out: Annotated[Annotation, OUTPUT], made: Annotated[Annotation, NEW_FOLDER]
    ) -> None:
        write_whole(out, read_text(inner))  # what an input led to

    command.__annotations__ = {
        "out": Annotated[Annotation, OUTPUT], "made": Annotated[Annotation, NEW_FOLDER],
    }  # fmt: skip
    with pytest.raises(InvalidArgumentError, match="is being read"):
        safe(command)(out=inner, made=tmp_path / "new" / "x")
    assert inner.read_text(encoding="utf-8") == "precious"
    with pytest.raises(InvalidArgumentError, match="--out: expected a file in an existing folder"):
        safe(command)(out=tmp_path / "new" / "x", made=tmp_path / "x")


def test_commands_when_they_name_an_output_then_all_are_marked() -> None:
    import inspect

    from rankblend.cli import commands
    from rankblend.cli.app import app

    commands.register(app)
    found = set()
    for group in (app, *(each.typer_instance for each in app.registered_groups)):
        for command in group.registered_commands:
            assert command.callback is not None
            for name, parameter in inspect.signature(
                command.callback, eval_str=True
            ).parameters.items():
                if name in ("out", "picture"):
                    found.add(command.callback.__name__)
                    marks = parameter.annotation.__metadata__
                    assert OUTPUT in marks or NEW_FOLDER in marks, command.callback.__name__
                    assert hasattr(command.callback, "__wrapped__"), command.callback.__name__
    assert found >= {
        "export", "record", "replay", "ablate", "compare", "fit", "report", "show",
    }  # fmt: skip


# Readers and encodings.


@pytest.fixture
def spoken(
    command: list[str], environment: Mapping[str, str]
) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Run the program with an encoding of its own."""

    def call(encoding: str, *arguments: object) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*command, *map(str, arguments)],
            capture_output=True,
            timeout=120,
            check=False,
            env={**environment, "PYTHONIOENCODING": encoding},
        )

    return call


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "latin-1:strict", "cp437"])
def test_program_when_the_encoding_lacks_characters_then_they_are_drawn_or_escaped(
    spoken: Any, notes: Path, encoding: str
) -> None:
    with Memory.open(notes) as memory:
        memory.remember("我家的猫很可爱 ✓ tea", scope=SCOPE, id="cat", metadata={"a": "😀"})
    asked = ["recall", "tea", "--db", notes, "--scope", SCOPE, "--embedder", "none"]
    for arguments in (asked, [*asked, "--explain"], [*asked, "--json"], ["--help"]):
        done = spoken(encoding, *arguments)
        assert done.returncode == 0, done.stderr
        said = done.stdout.decode(encoding.partition(":")[0])
        assert b"Traceback" not in done.stderr
        if "--json" in arguments:
            (cat,) = [m for m in json.loads(said)["matches"] if m["memory"]["id"] == "cat"]
            assert cat["memory"]["text"] == "我家的猫很可爱 ✓ tea"
            assert cat["memory"]["metadata"] == {"a": "😀"}
    done = spoken(encoding, "recall", "猫", "--db", "没有.db", "--scope", SCOPE)
    assert done.returncode == 2
    assert b"no such file" in done.stderr


@pytest.mark.slow
def test_demo_when_the_encoding_lacks_characters_then_it_is_shown_whole(spoken: Any) -> None:
    done = spoken("cp1252", "demo")
    assert done.returncode == 0, done.stderr
    assert b"one weight would swap" in done.stdout


@posix
@pytest.mark.parametrize("taken", [0, 1])
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "arguments", [["profiles", "--json"], ["profiles"], ["profiles", "default"], ["--help"], ["--version"]]
)  # fmt: skip
def test_program_when_its_reader_has_gone_then_it_ends_by_the_convention_without_a_word(
    command: list[str],
    environment: Mapping[str, str],
    arguments: list[str],
    unbuffered: str,
    taken: int,
) -> None:
    read, write = os.pipe()
    process = subprocess.Popen(
        [*command, *arguments],
        stdout=write,
        stderr=subprocess.PIPE,
        env={**environment, "PYTHONUNBUFFERED": unbuffered},
    )
    os.close(write)
    if taken:
        os.read(read, taken)
    os.close(read)
    assert process.stderr is not None
    said = process.stderr.read()
    process.stderr.close()
    # 0 where all of it had been written before the reader went.
    assert process.wait(timeout=60) in ((0, 141) if taken else (141,))
    assert said == b""


@posix
def test_program_when_nobody_reads_the_errors_then_the_code_says_so(
    command: list[str], environment: Mapping[str, str]
) -> None:
    read, write = os.pipe()
    os.close(read)
    process = subprocess.Popen(
        [*command, "profiles", "unheard-of"], stdout=write, stderr=write, env=environment
    )
    os.close(write)
    assert process.wait(timeout=60) == 141
