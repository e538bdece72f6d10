"""A file or folder that cannot be written: it is read as it is, and every write says so."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest
from processes import Forks, child, finished, read_only
from scenario import USER, agree, image, opened, steps

from rankblend.errors import CatalogReadOnlyError

REMEDY = "open a copy"
NOBODY = 65534


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "locked" / "m.db"
    path.parent.mkdir()
    with opened(path) as memory:
        for _ in steps(memory):
            pass
    return path


@pytest.fixture
def public(written: Path) -> Iterator[Path]:
    """The file where every user may read it, as root may write whatever the mode says."""
    folder = Path(mkdtemp())
    folder.chmod(0o755)
    path = folder / "locked" / "m.db"
    path.parent.mkdir()
    shutil.copy(written, path)
    (folder / "free").mkdir()
    (folder / "free").chmod(0o777)
    yield path
    path.parent.chmod(0o755)
    shutil.rmtree(folder)


def check_read(lines: list[str]) -> None:
    """Everything was read and nothing written, with an error that helps for each attempt."""
    held, *errors, closed = lines
    # n4 and n5 are equivalent, so that one stands for both.
    assert held == "8 ['n0', 'n1', 'n3', 'n4', 'order', 'policy'] 1"
    assert len(errors) == 6
    assert all(REMEDY in error for error in errors)
    assert closed == "closed"


def test_memory_when_the_file_system_is_read_only_then_it_is_read_and_no_write_is_done(
    written: Path, tmp_path: Path
) -> None:
    before = written.read_bytes()
    prefix = read_only(written.parent)
    check_read(finished(child("read_where_read_only", written, tmp_path, prefix=prefix)))
    assert written.read_bytes() == before


@pytest.mark.parametrize("what", ["file", "folder", "both"])
def test_memory_when_the_modes_forbid_writing_then_it_is_read_and_no_write_is_done(
    public: Path, forks: Forks, what: str
) -> None:
    if what != "folder":
        public.chmod(0o444)
    else:
        public.chmod(0o666)
    public.parent.chmod(0o777 if what == "file" else 0o555)
    before = public.read_bytes()
    free = public.parents[1] / "free"
    lines, killed = forks.run("read_where_read_only", public, free, NOBODY)
    assert not killed
    check_read(lines)
    assert public.read_bytes() == before


def test_memory_when_it_may_not_even_be_read_then_an_error(public: Path, forks: Forks) -> None:
    public.chmod(0o000)
    lines, _ = forks.run("read_where_read_only", public, public.parents[1] / "free", NOBODY)
    assert lines[0].startswith("CatalogCorruptError") or lines[0].startswith("CatalogReadOnly")
    assert len(lines) == 1


def test_memory_when_the_folder_is_read_only_and_a_writer_was_killed_then_its_writes_are_seen(
    tmp_path: Path, forks: Forks
) -> None:
    path = tmp_path / "locked" / "m.db"
    path.parent.mkdir()
    (last,) = [
        int(line.split()[1])
        for line in forks.run("write_all", tmp_path / "count.db", 0)[0]
        if line.startswith("closed")
    ]
    log = path.with_name("m.db-wal")
    for point in range(last, 0, -1):  # closing, it empties the log before its last statements
        for left in path.parent.iterdir():
            left.unlink()
        forks.run("write_all", path, point)
        if log.exists() and log.stat().st_size:
            break  # killed: the log is not yet in the file
    assert log.stat().st_size > 0
    prefix = read_only(path.parent)
    check_read(finished(child("read_where_read_only", path, tmp_path, prefix=prefix)))
    # Without the index of the log it cannot be read there: an error, not the file without its log.
    path.with_name("m.db-shm").unlink()
    lines = finished(child("read_where_read_only", path, tmp_path, prefix=prefix))
    assert [line.split()[0] for line in lines] == ["CatalogReadOnlyError"]


def test_open_when_the_folder_is_read_only_and_there_is_no_file_then_an_error(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    prefix = read_only(folder)
    lines = finished(child("read_where_read_only", folder / "new.db", tmp_path, prefix=prefix))
    assert [line.split()[0] for line in lines] == ["CatalogReadOnlyError"]
    assert REMEDY in lines[0]
    assert list(folder.iterdir()) == []


def test_write_when_the_connection_is_query_only_then_an_error_and_reads_work(
    written: Path, tmp_path: Path
) -> None:
    with opened(written) as memory:
        writer = memory._engine.catalog._database._writer
        assert writer is not None
        writer.execute("PRAGMA query_only = ON")
        before = image(memory)
        with pytest.raises(CatalogReadOnlyError, match=REMEDY):
            memory.remember("refund", scope=USER, id="new")
        with pytest.raises(CatalogReadOnlyError):
            memory.forget("n0", scope=USER)
        assert image(memory) == before
        agree(memory, tmp_path)
    assert os.access(written, os.R_OK)
