"""Files: whole or not at all, never over what is being read, and read as people save them."""

from __future__ import annotations

import gzip
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rankblend import Memory
from rankblend.errors import InvalidArgumentError
from rankblend.files import hold, note, noting, read_text, release, text_lines, whole, write_whole

posix = pytest.mark.skipif(os.name != "posix", reason="needs links, modes and pipes of POSIX")


class Reader:
    """Somebody who reads a file."""


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# What is being read is not written over.

LINKS: dict[str, Callable[[Path, Path], None]] = {
    "itself": lambda _path, _link: None,
    "symbolic link": lambda path, link: link.symlink_to(path),
    "link to a link": lambda path, link: (
        link.with_name("between").symlink_to(path),
        link.symlink_to("between"),
    )[0],
    "hard link": lambda path, link: link.hardlink_to(path),
}


@posix
@pytest.mark.parametrize("kind", LINKS)
@pytest.mark.parametrize("how", ["held", "input", "read", "database"])
def test_output_when_it_is_being_read_then_it_is_refused_by_every_name_it_has(
    tmp_path: Path, kind: str, how: str
) -> None:
    path, link = tmp_path / "there", tmp_path / "link"
    path.write_text("precious", encoding="utf-8")
    if how == "database":
        path.unlink()
        Memory.open(path).close()
    LINKS[kind](path, link)
    target = path if kind == "itself" else link
    before = path.read_bytes(), names(tmp_path)
    reader = Reader()
    with noting([path] if how == "input" else []):
        if how == "held":
            hold(reader, path)
        elif how == "read":
            note(path)
        with pytest.raises(InvalidArgumentError, match=f"{target.name}: is "), whole(target):
            pytest.fail("the block was entered")
    release(reader)
    assert (path.read_bytes(), names(tmp_path)) == before
    if how != "database":
        write_whole(target, "free again")
        assert target.read_text(encoding="utf-8") == "free again"


@posix
@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("way", ["name", "dotted", "symbolic link", "hard link"])
def test_output_when_it_lies_beside_a_database_then_it_is_refused_there_or_not(
    tmp_path: Path, end: str, way: str
) -> None:
    db = tmp_path / "m.db"
    with Memory.open(db) as memory:
        memory.remember("tea is at four", scope="tenant:acme", id="tea")
        beside = Path(f"{db}{end}")
        target = {"name": beside, "dotted": tmp_path / ".." / tmp_path.name / beside.name}.get(
            way, tmp_path / "link"
        )
        if way == "symbolic link":
            target.symlink_to(beside)  # dangling where the file is not there
        elif way == "hard link":
            if not beside.exists():
                return
            target.hardlink_to(beside)
        with pytest.raises(InvalidArgumentError, match="database"):
            write_whole(target, "no database")
        if way != "hard link":
            with pytest.raises(InvalidArgumentError, match="database"):
                memory.export(target)
    with Memory.open(db) as memory:
        assert memory.get("tea", scope="tenant:acme") is not None
    if way != "hard link":  # closed, its name is still its own
        with pytest.raises(InvalidArgumentError, match="database"):
            write_whole(target, "no database")


def test_output_when_the_reader_is_gone_then_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "there"
    path.write_text("old", encoding="utf-8")
    reader = Reader()
    hold(reader, path)
    del reader
    write_whole(path, "new")
    assert path.read_text(encoding="utf-8") == "new"


def test_output_when_it_was_an_input_of_a_command_before_then_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "there"
    path.write_text("old", encoding="utf-8")
    with noting():
        assert read_text(path) == "old"
        with pytest.raises(InvalidArgumentError, match="is being read"):
            write_whole(path, "new")
    write_whole(path, read_text(path) + "er")
    assert path.read_text(encoding="utf-8") == "older"


def test_database_when_its_name_would_be_part_of_another_then_none_is_made(tmp_path: Path) -> None:
    db = tmp_path / "m.db"
    Memory.open(db).close()
    with pytest.raises(InvalidArgumentError, match="belongs to"):
        Memory.open(tmp_path / "m.db-wal")
    assert names(tmp_path) == {"m.db"}


# How a file is written.


def test_output_when_the_block_fails_then_what_was_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "there"
    path.write_text("old", encoding="utf-8")
    for error in (ValueError, KeyboardInterrupt, OSError):
        with pytest.raises(error), whole(path) as file:
            raise error(file.write(b"half"))
    assert names(tmp_path) == {"there"}
    assert path.read_text(encoding="utf-8") == "old"


@posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o666, 0o755])
def test_output_when_it_is_there_then_its_mode_is_kept(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "there"
    path.write_text("old", encoding="utf-8")
    path.chmod(mode)
    with whole(path) as file:
        (partial,) = names(tmp_path) - {"there"}
        assert stat.S_IMODE((tmp_path / partial).stat().st_mode) == mode
        file.write(b"new")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_bytes() == b"new"


@posix
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o000])
def test_output_when_it_is_new_then_its_mode_is_the_users(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        write_whole(tmp_path / "new", "x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o666 & ~mask


@posix
def test_output_when_it_is_a_link_then_the_file_behind_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    behind = tmp_path / "elsewhere" / "there"
    for exists in (False, True):
        link = tmp_path / f"link-{exists}"
        link.symlink_to(behind)
        write_whole(link, f"{exists}")
        assert link.is_symlink()
        assert behind.read_text(encoding="utf-8") == f"{exists}"
    assert names(tmp_path / "elsewhere") == {"there"}
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(OSError, match="symbolic links"):
        write_whole(loop, "x")


@posix
def test_output_when_it_is_no_file_then_it_is_written_to_and_stays_what_it_is(
    tmp_path: Path,
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[str] = []
    reading = threading.Thread(target=lambda: got.append(pipe.read_text(encoding="utf-8")))
    reading.start()
    write_whole(pipe, "through")
    reading.join(timeout=30)
    assert got == ["through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    null = Path(os.devnull).stat()
    write_whole(os.devnull, "gone")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    assert Path(os.devnull).stat().st_ino == null.st_ino
    assert names(tmp_path) == {"pipe"}
    with pytest.raises(IsADirectoryError):
        write_whole(tmp_path, "x")


@posix
def test_output_when_it_is_standard_output_then_it_is_written_there(tmp_path: Path) -> None:
    code = "from rankblend.files import write_whole; write_whole('/dev/stdout', 'said')"
    run = [sys.executable, "-c", code]
    assert subprocess.run(run, capture_output=True, check=True, timeout=60).stdout == b"said"
    with (tmp_path / "out").open("wb") as file:
        subprocess.run(run, stdout=file, check=True, timeout=60)
    assert (tmp_path / "out").read_bytes() == b"said"
    assert names(tmp_path) == {"out"}


@posix
def test_output_when_the_name_is_as_long_as_can_be_then_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    write_whole(path, "long")
    assert names(tmp_path) == {path.name}


def test_output_when_its_folder_is_missing_then_the_error_names_what_was_asked_for(
    tmp_path: Path,
) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        write_whole(tmp_path / "nowhere" / "x", "x")
    assert caught.value.filename == str(tmp_path / "nowhere" / "x")


def test_output_when_many_write_at_once_then_one_of_them_stands_whole(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from rankblend.files import whole\n"
        "with whole(sys.argv[1]) as file:\n"
        "    for _ in range(200): file.write(sys.argv[2].encode() * 1000)\n"
    )
    path = tmp_path / "there"
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(path), letter]) for letter in "abcd"
    ]
    threads = [
        threading.Thread(target=write_whole, args=(path, letter * 200_000)) for letter in "xyz"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0, 0]
    text = path.read_text(encoding="utf-8")
    assert len(text) == 200_000
    assert len(set(text)) == 1
    assert names(tmp_path) == {"there"}


# How text is read.

TEXTS = {
    "plain": b'{"a": "\xc3\xa9"}\n{"b": 1}\n',
    "marked": b'\xef\xbb\xbf{"a": "\xc3\xa9"}\n{"b": 1}\n',
    "of Windows": b'\xef\xbb\xbf{"a": "\xc3\xa9"}\r\n\r\n{"b": 1}\r\n',
    "joined": b'\xef\xbb\xbf{"a": "\xc3\xa9"}\n\xef\xbb\xbf{"b": 1}',
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", TEXTS)
def test_text_when_it_was_saved_in_any_usual_way_then_its_lines_are_the_same(
    tmp_path: Path, kind: str, packed: bool
) -> None:
    path = tmp_path / "text"
    path.write_bytes(gzip.compress(TEXTS[kind], mtime=0) if packed else TEXTS[kind])
    assert [line for _, line in text_lines(path)] == ['{"a": "é"}', '{"b": 1}']


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\v", "\f", "\x1c"])
def test_text_when_it_holds_other_separators_then_a_line_ends_at_a_line_feed_only(
    tmp_path: Path, separator: str
) -> None:
    path = tmp_path / "text"
    path.write_text(f"one{separator}line\nnext\n", encoding="utf-8", newline="")
    assert list(text_lines(path)) == [(1, f"one{separator}line"), (2, "next")]


@pytest.mark.parametrize("content", [b"\x1f\x8b", gzip.compress(b"x" * 100, mtime=0)[:-9]])
def test_text_when_it_is_damaged_then_it_cannot_be_read(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "text.gz"
    path.write_bytes(content)
    with pytest.raises(OSError, match=r"damaged|end-of-stream|gzip"):
        read_text(path)


def test_database_when_it_is_of_somebody_else_then_it_is_not_replaced_either(
    tmp_path: Path,
) -> None:
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    before = other.read_bytes()
    with pytest.raises(InvalidArgumentError, match=r"other\.db: is a database"):
        write_whole(other, "x")
    assert other.read_bytes() == before
