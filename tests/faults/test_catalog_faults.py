"""What the catalog must survive: kills, damage, full disks, read-only folders, other writers."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankblend
from rankblend.errors import (
    CatalogBusyError,
    CatalogCorruptError,
    CatalogFullError,
    CatalogReadOnlyError,
    CatalogVersionError,
    InvalidArgumentError,
    RankblendError,
    StoreError,
)
from rankblend.relevance.scope import Scope
from rankblend.stores.catalog import Catalog
from rankblend.stores.catalog.schema import APPLICATION_ID, SCHEMA_VERSION
from rankblend.stores.protocol import Key, Record, StoreQuery

SOURCES = Path(rankblend.__file__).resolve().parents[1]
TENANT = Scope.parse("tenant:acme")

# Run by this file and by child processes alike: the same writes in the same order.
STEPS = """
import numpy as np
from rankblend.relevance.scope import Scope
from rankblend.stores.protocol import Edge, Key, Link, Record

TENANT = Scope.parse("tenant:acme")
USER = TENANT / "user:7"

def memory(n, text, scope=TENANT, **fields):
    vector = np.array([1.0, n + 1.0], dtype=np.float32)
    return Record(Key(scope, f"m{n}"), text, vector=vector, **fields)

def steps(catalog):
    yield catalog.put([memory(n, f"first {n}", at=1.0) for n in range(4)])
    yield catalog.put([memory(0, "second", at=2.0), memory(9, "new", USER, metadata={"a": 1})])
    yield catalog.put([memory(1, "backdated", at=0.5)])
    yield catalog.reinforce([Key(TENANT, "m0"), Key(TENANT, "m2")], 5.0)
    yield catalog.add_edges([Edge(TENANT, "m0", "m1"), Edge(TENANT, "m1", "x")])
    yield catalog.forget([Key(TENANT, "m1"), Key(TENANT, "m3")])
    yield catalog.remove_edges([Edge(TENANT, "m0", "m1"), Edge(TENANT, "z", "z")])
    yield catalog.put([memory(1, "again", at=3.0, links=(Link("m0"),)), memory(2, "third", at=3.0)])
    yield catalog.save_cache("keywords", b"postings")
    yield catalog.set_meta("embedder", "hashed")
"""
NAMESPACE: dict[str, Any] = {}
exec(STEPS, NAMESPACE)

WRITER = (
    STEPS
    + """
import os, signal, sys
from rankblend.stores.catalog import Catalog

path, kill_at = sys.argv[1], int(sys.argv[2])
catalog = Catalog.open(path)
seen = 0

def before_statement(_):
    global seen
    seen += 1
    if seen == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)

catalog._database._writer.set_trace_callback(before_statement)
for acknowledged, _ in enumerate(steps(catalog), start=1):
    print(acknowledged, flush=True)
catalog.close()
print("statements", seen, flush=True)
"""
)


def child(code: str, *arguments: object, prefix: Sequence[str] = ()) -> subprocess.Popen[str]:
    """A Python process that runs some code."""
    return subprocess.Popen(
        [*prefix, sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
    )


def finished(process: subprocess.Popen[str]) -> list[str]:
    """The lines a process printed; fails with its errors unless it ended well or was killed."""
    out, errors = process.communicate(timeout=120)
    assert process.returncode in (0, -9), errors
    return out.splitlines()


def image(catalog: Catalog) -> object:
    """Everything a catalog says, comparable."""

    def plain(record: Record) -> tuple[object, ...]:
        vector = None if record.vector is None else tuple(record.vector.tolist())
        fields = (record.text, record.at, record.created, record.used, record.uses, record.links)
        return (str(record.key.scope), record.id, *fields, vector, str(dict(record.metadata)))

    records = list(catalog.iter_records())
    return (
        [plain(record) for record in records],
        [plain(each) for record in records for each in catalog.revisions(record.key)],
        [plain(record) for record in catalog.records_at(2.5)],
        list(catalog.iter_edges()),
        catalog.get_meta("embedder"),
        catalog.load_cache("keywords"),
    )


@pytest.fixture(scope="module")
def images() -> list[object]:
    """What the catalog says before the first step and after each one."""
    with Catalog.open(":memory:") as catalog:
        return [image(catalog), *(image(catalog) for _ in NAMESPACE["steps"](catalog))]


@pytest.fixture(scope="module")
def statements(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many statements all steps take."""
    lines = finished(child(WRITER, tmp_path_factory.mktemp("count") / "c.db", 0))
    return int(lines[-1].split()[1])


def check_after_kill(path: Path, acknowledged: int, images: list[object], *, exact: bool) -> None:
    with Catalog.open(path) as catalog:
        catalog.check()
        found = image(catalog)
        assert found in images[acknowledged : acknowledged + (1 if exact else 2)]
        columns = {record.key for record in catalog.iter_records()}
        rows = catalog._columns.rows
        assert {rows.key(row) for row in np.flatnonzero(rows.alive).tolist()} == columns
        catalog.put([NAMESPACE["memory"](77, "goes on")])
        assert catalog.get(Key(TENANT, "m77")) is not None


def kill_points(statements: int, rounds: int) -> list[int]:
    return sorted({1 + n * (statements - 1) // (rounds - 1) for n in range(rounds)})


def test_killed_before_a_statement_when_reopened_then_all_acknowledged_and_nothing_half(
    tmp_path: Path, images: list[object], statements: int
) -> None:
    for kill_at in kill_points(statements, 12):
        path = tmp_path / f"{kill_at}.db"
        lines = finished(child(WRITER, path, kill_at))
        assert "statements" not in "".join(lines)
        check_after_kill(path, len(lines), images, exact=True)


@pytest.mark.slow
def test_killed_before_every_single_statement_when_reopened_then_nothing_half(
    tmp_path: Path, images: list[object], statements: int
) -> None:
    for kill_at in range(1, statements + 1):
        path = tmp_path / f"{kill_at}.db"
        lines = finished(child(WRITER, path, kill_at))
        check_after_kill(path, len(lines), images, exact=True)


ENDLESS = (
    STEPS
    + """
import sys
from rankblend.stores.catalog import Catalog
catalog = Catalog.open(sys.argv[1])
n = 0
while True:
    catalog.put([memory(n, "x" * 3000, at=float(n)), memory(n + 1, "y" * 3000, at=float(n))])
    n += 2
    print(n, flush=True)
"""
)


def kill_at_random(path: Path, lines: int) -> int:
    """Kill a busy writer as soon as it acknowledged so many writes; how many memories it had."""
    process = child(ENDLESS, path)
    assert process.stdout is not None
    acknowledged = 0
    for _ in range(lines):
        acknowledged = int(process.stdout.readline())
    process.kill()
    rest = process.stdout.read().split()  # acknowledged between the last line read and the kill
    process.communicate(timeout=60)
    return int(rest[-1]) if rest else acknowledged


@pytest.mark.parametrize("lines", [1, 7, 40, 150])
def test_killed_at_any_moment_when_reopened_then_nothing_acknowledged_is_lost(
    tmp_path: Path, lines: int
) -> None:
    path = tmp_path / "c.db"
    acknowledged = kill_at_random(path, lines)
    with Catalog.open(path) as catalog:
        catalog.check()
        assert len(catalog) in (acknowledged, acknowledged + 2)  # never one of a pair
        assert all(record.vector is not None for record in catalog.iter_records())


@pytest.mark.slow
def test_killed_again_and_again_when_reopened_then_nothing_acknowledged_is_lost(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    for n, lines in enumerate(rng.integers(1, 400, 40).tolist()):
        path = tmp_path / f"{n}.db"
        acknowledged = kill_at_random(path, lines)
        with Catalog.open(path) as catalog:
            catalog.check()
            assert len(catalog) in (acknowledged, acknowledged + 2)


CREATOR = """
import os, signal, sys
from rankblend.stores.catalog import Catalog, database

kill_at, seen = int(sys.argv[2]), 0

def before_statement(_):
    global seen
    seen += 1
    if seen == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)

connect = database._connect
def traced(*arguments):
    connection = connect(*arguments)
    connection.set_trace_callback(before_statement)
    return connection
database._connect = traced
Catalog.open(sys.argv[1]).close()
print(seen)
"""


def test_killed_while_created_when_reopened_then_it_is_not_there_or_complete(
    tmp_path: Path,
) -> None:
    (count,) = finished(child(CREATOR, tmp_path / "count.db", 0))
    there = []
    for kill_at in kill_points(int(count), 7):
        path = tmp_path / f"{kill_at}.db"
        finished(child(CREATOR, path, kill_at))
        there.append(path.exists())
        with Catalog.open(path) as catalog:
            assert len(catalog) == 0
            catalog.put([Record(Key(TENANT, "a"), "t")])
            catalog.check()
    assert there == sorted(there)
    assert True in there
    assert False in there


# Damage


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A closed catalog with a few pages of everything."""
    path = tmp_path / "catalog.db"
    with Catalog.open(path) as catalog:
        for _ in NAMESPACE["steps"](catalog):
            pass
        catalog.put(
            [
                NAMESPACE["memory"](n, f"text {n} " * 30, metadata={"n": n}, at=4.0, salience=0.5)
                for n in range(100, 300)
            ]
        )
        catalog.put([NAMESPACE["memory"](n, "revised", at=5.0) for n in range(100, 200)])
    return path


def assert_refused_untouched(path: Path, kind: type[StoreError] = CatalogCorruptError) -> None:
    before = path.read_bytes()
    with pytest.raises(kind) as caught:
        Catalog.open(path)
    assert path.name in str(caught.value) or kind is CatalogVersionError
    assert path.read_bytes() == before


@pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.3, 0.5, 0.9, 0.999])
def test_open_when_truncated_then_an_error_and_never_an_empty_memory(
    written: Path, share: float
) -> None:
    size = written.stat().st_size
    with written.open("r+b") as stream:
        stream.truncate(int(size * share))
    assert_refused_untouched(written)


@pytest.mark.parametrize(
    "content",
    [
        b"\x00" * 5000,
        b"Dear diary",
        b"SQLite format 3\x00",
        b"SQLite format 3\x00" + b"\xff" * 8176,
    ],
)
def test_open_when_it_is_no_database_then_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(content)
    assert_refused_untouched(path)


def test_open_when_it_is_the_database_of_something_else_then_an_error(tmp_path: Path) -> None:
    for name, statements in {
        "tables": ["CREATE TABLE notes (text)"],
        "owner": [f"PRAGMA application_id = {APPLICATION_ID + 1}", "CREATE TABLE state (x)"],
        "ours, without version": [f"PRAGMA application_id = {APPLICATION_ID}"],
        "ours, without tables": [
            f"PRAGMA application_id = {APPLICATION_ID}",
            f"PRAGMA user_version = {SCHEMA_VERSION}",
        ],
    }.items():
        path = tmp_path / f"{name}.db"
        connection = sqlite3.connect(path)
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()
        assert_refused_untouched(path)


def test_open_when_an_sqlite_file_is_empty_then_it_becomes_a_catalog(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    connection = sqlite3.connect(path)
    connection.execute("VACUUM")
    connection.close()
    assert path.stat().st_size > 0
    for count in (1, 2):
        with Catalog.open(path) as catalog:
            catalog.put([Record(Key(TENANT, f"m{count}"), "t")])
            assert len(catalog) == count


def test_open_when_written_by_a_newer_version_then_it_says_which(written: Path) -> None:
    connection = sqlite3.connect(written)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    assert_refused_untouched(written, CatalogVersionError)


def test_open_when_only_the_log_is_left_then_an_error(written: Path) -> None:
    copy = written.with_name("copy.db")
    with Catalog.open(written) as catalog:
        catalog.put([Record(Key(TENANT, "late"), "t")])
        shutil.copy(f"{written}-wal", f"{copy}-wal")
    with pytest.raises(CatalogCorruptError, match="log"):
        Catalog.open(copy)
    assert not copy.exists()


def test_read_when_pages_are_overwritten_then_an_error(written: Path) -> None:
    size = written.stat().st_size
    with written.open("r+b") as stream:
        stream.seek(8192)
        stream.write(b"\xa5" * (size - 8192))
    assert_refused_untouched(written)


def test_read_when_bytes_are_damaged_then_only_errors_of_ours(
    written: Path, rng: np.random.Generator
) -> None:
    intact = written.read_bytes()
    told = 0
    for n in range(60):
        damaged = bytearray(intact)
        start = int(rng.integers(100, len(intact) - 64))
        length = int(rng.choice([1, 8, 64, 4096]))
        part = rng.integers(0, 256, length, dtype=np.uint8).tobytes()
        damaged[start : start + length] = part[: len(intact) - start]
        path = written.with_name(f"damaged{n}.db")
        path.write_bytes(damaged)
        try:
            with Catalog.open(path) as catalog:
                image(catalog)
                catalog.load_vectors()
                catalog.changes(0)
                catalog.admit(StoreQuery("", [TENANT]), filters={"n": 5})
                catalog.check()
        except RankblendError:
            told += 1
        path.unlink()
    assert told > 5


def test_write_when_the_file_is_damaged_then_an_error_of_ours(written: Path) -> None:
    with Catalog.open(written) as catalog:
        size = written.stat().st_size
        with written.open("r+b") as stream:
            stream.seek(8192)
            stream.write(b"\xa5" * (size - 8192))
        with pytest.raises(StoreError):
            list(catalog.iter_records())
        with pytest.raises(CatalogCorruptError):
            catalog.check()


def test_open_when_the_place_is_wrong_then_the_argument_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="folder"):
        Catalog.open(tmp_path)
    with pytest.raises(InvalidArgumentError, match="does not exist"):
        Catalog.open(tmp_path / "missing" / "c.db")
    for path in ("nul\0.db", "\ud800", 5, None, b"bytes.db"):
        with pytest.raises(InvalidArgumentError, match="path"):
            Catalog.open(path)  # type: ignore[arg-type]
    for timeout in (-1.0, float("nan"), float("inf"), True, "5"):
        with pytest.raises(InvalidArgumentError, match="busy_timeout"):
            Catalog.open(":memory:", busy_timeout=timeout)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["a b.db", "ü?#%41.db", "file:x.db", "semi;colon'.db"])
def test_open_when_the_name_is_strange_then_it_is_that_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with Catalog.open(path) as catalog:
        catalog.put([Record(Key(TENANT, "a"), "t")])
    assert [each.name for each in tmp_path.iterdir()] == [name]
    with Catalog.open(str(path)) as catalog:
        assert len(catalog) == 1


def test_open_when_the_path_is_a_link_then_the_log_is_beside_its_target(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "real" / "c.db")
    with Catalog.open(link) as catalog:
        catalog.put([Record(Key(TENANT, "a"), "t")])
        assert {each.name for each in tmp_path.iterdir()} == {"real", "link.db"}
        assert (tmp_path / "real" / "c.db-wal").exists()
    assert link.is_symlink()
    with Catalog.open(tmp_path / "real" / "c.db") as catalog:
        assert len(catalog) == 1


# No space


def test_put_when_the_file_may_not_grow_then_full_and_the_old_data_is_intact(
    written: Path,
) -> None:
    with Catalog.open(written) as catalog:
        before = image(catalog)
        generation = catalog.generation
        writer = catalog._database._writer
        assert writer is not None
        (pages,) = writer.execute("PRAGMA page_count").fetchone()
        writer.execute(f"PRAGMA max_page_count = {pages + 2}")
        big = [NAMESPACE["memory"](n, "x" * 4000) for n in range(5000, 5100)]
        with pytest.raises(CatalogFullError):
            catalog.put(big)
        assert image(catalog) == before
        assert catalog.generation == generation
        assert catalog.locate(StoreQuery("", [TENANT]), ["m5000"]) == [None]
        writer.execute("PRAGMA max_page_count = 1000000")
        catalog.put(big)
        assert catalog.get(Key(TENANT, "m5099")) is not None
        assert not catalog.refresh()
    with Catalog.open(written) as catalog:
        assert catalog.get(Key(TENANT, "m5099")) is not None


def namespace(*commands: str) -> list[str]:
    """The start of a command that runs in a mount namespace of its own, prepared by commands."""
    tools = [shutil.which(tool) for tool in ("unshare", "mount", "sh")]
    probe = ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=64k tmpfs /mnt"]
    if None in tools or subprocess.run(probe, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount file systems (unshare -m) on this machine")
    return ["unshare", "-m", "sh", "-c", f'{" && ".join(commands)} && exec "$0" "$@"']


FILL = """
import os, sys
sys.path.insert(0, "")
from pathlib import Path
from rankblend.errors import CatalogFullError
from rankblend.relevance.scope import Scope
from rankblend.stores.catalog import Catalog
from rankblend.stores.protocol import Key, Record

folder = Path(sys.argv[1])
tenant = Scope.parse("tenant:acme")
path = folder / "c.db"
acknowledged = 0
with Catalog.open(path) as catalog:
    try:
        while True:
            catalog.put([Record(Key(tenant, f"m{acknowledged}"), "x" * 20_000)])
            acknowledged += 1
    except CatalogFullError:
        pass
    assert acknowledged > 10, acknowledged
    assert len(list(catalog.iter_records())) == len(catalog) == acknowledged
    try:
        catalog.save_cache("big", b"x" * 10_000_000)
        raise SystemExit("no error")
    except CatalogFullError:
        pass
    assert len(list(catalog.iter_records())) == acknowledged
with Catalog.open(path) as catalog:
    catalog.check()
    assert len(list(catalog.iter_records())) == len(catalog) == acknowledged
(folder / "rest").write_bytes(b"")
print("kept", acknowledged)
with open(folder / "rest", "wb", buffering=0) as rest:
    try:
        while rest.write(b"x" * 4096):
            pass
    except OSError:
        pass
try:
    Catalog.open(folder / "another.db")
    raise SystemExit("no error")
except CatalogFullError:
    print(sorted(each.name for each in folder.iterdir() if "another" in each.name))
"""


def test_put_when_the_disk_is_full_then_full_and_all_acknowledged_is_kept(tmp_path: Path) -> None:
    prefix = namespace(f"mount -t tmpfs -o size=3m tmpfs '{tmp_path}'")
    process = child(FILL, tmp_path, prefix=prefix)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    kept, left = out.splitlines()
    assert int(kept.split()[1]) > 10
    assert left == "[]"


# Read-only


READ = """
import sys
from rankblend.errors import CatalogReadOnlyError
from rankblend.relevance.scope import Scope
from rankblend.stores.catalog import Catalog
from rankblend.stores.protocol import Key, Record

path = sys.argv[1]
try:
    catalog = Catalog.open(path)
except Exception as error:
    print(type(error).__name__)
    raise SystemExit(0)
tenant = Scope.parse("tenant:acme")
print(len(catalog), len(list(catalog.iter_records())), catalog.get(Key(tenant, "m0")).text)
for write in (
    lambda: catalog.put([Record(Key(tenant, "new"), "t")]),
    lambda: catalog.forget([Key(tenant, "m0")]),
    lambda: catalog.reinforce([Key(tenant, "m0")], 1.0),
    lambda: catalog.save_cache("x", b"y"),
):
    try:
        write()
        print("written")
    except CatalogReadOnlyError:
        pass
assert catalog.get(Key(tenant, "new")) is None
assert len(catalog.revisions(Key(tenant, "m0"))) == 2
catalog.close()
print("done")
"""


def read_only(folder: Path) -> list[str]:
    return namespace(f"mount --bind '{folder}' '{folder}'", f"mount -o remount,bind,ro '{folder}'")


def test_write_when_the_folder_is_read_only_then_an_error_and_reads_work(written: Path) -> None:
    before = written.read_bytes()
    lines = finished(child(READ, written, prefix=read_only(written.parent)))
    assert lines == ["204 204 second", "done"]
    assert written.read_bytes() == before


def test_open_when_the_folder_is_read_only_and_a_writer_was_killed_then_its_writes_are_seen(
    tmp_path: Path, statements: int
) -> None:
    path = tmp_path / "c.db"
    finished(child(WRITER, path, statements))  # killed: the log is not yet in the file
    assert path.with_name("c.db-wal").stat().st_size > 0
    lines = finished(child(READ, path, prefix=read_only(tmp_path)))
    assert lines == ["4 4 second", "done"]
    # Without the index of the log it cannot be read there: an error, not the file without its log.
    path.with_name("c.db-shm").unlink()
    lines = finished(child(READ, path, prefix=read_only(tmp_path)))
    assert lines == ["CatalogReadOnlyError"]


def test_open_when_the_folder_is_read_only_and_there_is_no_file_then_an_error(
    tmp_path: Path,
) -> None:
    lines = finished(child(READ, tmp_path / "new.db", prefix=read_only(tmp_path)))
    assert lines == ["CatalogReadOnlyError"]
    assert list(tmp_path.iterdir()) == []


def test_write_when_the_connection_is_query_only_then_an_error_and_reads_work(
    written: Path,
) -> None:
    with Catalog.open(written) as catalog:
        writer = catalog._database._writer
        assert writer is not None
        writer.execute("PRAGMA query_only = ON")
        before = image(catalog)
        with pytest.raises(CatalogReadOnlyError):
            catalog.put([Record(Key(TENANT, "new"), "t")])
        with pytest.raises(CatalogReadOnlyError):
            catalog.forget([Key(TENANT, "m0")])
        assert image(catalog) == before
        assert catalog.locate(StoreQuery("", [TENANT]), ["new", "m0"]) == [None, Key(TENANT, "m0")]


# Other processes


HOLDER = """
import sys
from rankblend.relevance.scope import Scope
from rankblend.stores.catalog import Catalog
from rankblend.stores.protocol import Key, Record

catalog = Catalog.open(sys.argv[1])
with catalog._database.write() as connection:
    connection.execute("UPDATE state SET generation = generation")
    print("holding", flush=True)
    sys.stdin.readline()
catalog.put([Record(Key(Scope.parse("tenant:acme"), "of the other"), "t", salience=1.0)])
print("released", flush=True)
sys.stdin.readline()
catalog.close()
"""


@contextmanager
def holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the file for writing until it is sent a line."""
    process = child(HOLDER, path)
    assert process.stdout is not None
    assert process.stdout.readline() == "holding\n"
    try:
        yield process
    finally:
        process.communicate("\n\n", timeout=60)


def test_write_when_another_process_writes_too_long_then_busy_and_reads_go_on(
    written: Path,
) -> None:
    with Catalog.open(written, busy_timeout=0.05) as catalog, holder(written):
        before = image(catalog)
        with pytest.raises(CatalogBusyError):
            catalog.put([Record(Key(TENANT, "new"), "t")])
        assert image(catalog) == before
        with Catalog.open(written) as another:
            assert image(another) == before


def test_write_when_another_process_writes_then_it_waits_and_keeps_no_reader_waiting(
    written: Path,
) -> None:
    with Catalog.open(written, busy_timeout=60.0) as catalog, holder(written) as process:
        started = threading.Event()
        writer = catalog._database._writer
        assert writer is not None
        writer.set_trace_callback(lambda _: started.set())
        failed: list[BaseException] = []

        def write() -> None:
            try:
                catalog.put([Record(Key(TENANT, "mine"), "t", salience=0.9)])
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=write)
        thread.start()
        assert started.wait(60)
        # The write is under way and cannot end, and yet this thread reads.
        assert catalog.get(Key(TENANT, "m0")) is not None
        assert catalog.locate(StoreQuery("", [TENANT]), ["m0"]) == [Key(TENANT, "m0")]
        assert thread.is_alive()
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        thread.join(60)
        assert failed == []
        assert process.stdout is not None
        assert process.stdout.readline() == "released\n"
        assert [each.id for each in catalog.refresh().changed][-1] == "of the other"
        query = StoreQuery("", [TENANT])
        assert catalog.leading(query, 2, ("salience",)) == ["of the other", "mine"]


MANY = """
import sys
from rankblend.relevance.scope import Scope
from rankblend.stores.catalog import Catalog
from rankblend.stores.protocol import Key, Record

name = sys.argv[2]
with Catalog.open(sys.argv[1], busy_timeout=60.0) as catalog:
    for n in range(40):
        catalog.put([Record(Key(Scope.parse("tenant:acme"), f"{name}{n}"), "t")])
        catalog.put([Record(Key(Scope.parse("tenant:acme"), "shared"), name, at=float(n))])
        catalog.refresh()
"""


def test_two_processes_when_both_create_and_write_then_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    processes = [child(MANY, path, name) for name in "ab"]
    for process in processes:
        finished(process)
    with Catalog.open(path) as catalog:
        catalog.check()
        assert len(catalog) == 81
        assert len(catalog.revisions(Key(TENANT, "shared"))) == 80
        assert catalog.generation == 160
    assert [each.name for each in tmp_path.iterdir()] == ["c.db"]
