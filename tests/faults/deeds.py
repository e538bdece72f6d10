"""What the child processes of the fault tests do; what they print has been acknowledged to them."""

from __future__ import annotations

import asyncio
import faulthandler
import os
import resource
import signal
import sqlite3
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from tempfile import gettempdir

import numpy as np
from scenario import START, USER, agree, hashed, image, opened, steps

from rankblend import Memory, Observation, default_stores
from rankblend.errors import CatalogFullError, CatalogReadOnlyError, StoreError
from rankblend.stores.catalog import _file as database

__all__ = [
    "fill_disk", "fork_inside_a_write", "fork_memory", "fork_procedures", "fork_waiting", "hold", "make_where_full", "read_many", "read_where_read_only", "write_all",
    "write_in_bulk", "write_many", "write_pairs",
]  # fmt: skip


def write_all(path: str, kill_at: int, by: str = "statement") -> None:
    """Open a memory, write all steps and close it; killed in the act.

    Prints the number of each step once it was acknowledged, ``closed``, and how many statements (or
    steps of SQLite's machine) there were.

    Args:
        path: The file.
        kill_at: SIGKILL right before this statement, from 1; 0 never.
        by: ``statement``, or ``instruction``: every 20th of SQLite's machine, so also in the middle
            of a statement.
    """
    passed = _watch(_killing(kill_at), by=by)
    memory = opened(path)
    for acknowledged, _ in enumerate(steps(memory), start=1):
        print(acknowledged, flush=True)
    memory.close()
    print("closed", next(passed) - 1, flush=True)


def write_pairs(path: str, start: int | str = 0) -> None:
    """Write two memories at a time, which are nothing without each other, until killed.

    Prints how many pairs there are after each.
    """
    memory = opened(path)
    for n in count(int(start)):
        memory.remember_many(
            {"text": f"{word} {n} " + "x" * 3000, "scope": "tenant:acme", "id": f"{word}{n}"}
            for word in ("left", "right")
        )
        print(n + 1, flush=True)


def write_in_bulk(path: str) -> None:
    """Write batch after batch and recall in between, until interrupted; then go on and close.

    Prints ``begun``, the number of batches after each, and ``interrupted``.
    """
    memory = opened(path)
    try:
        print("begun", flush=True)
        for batch in count():
            memory.remember_many(
                {
                    "text": f"refund number {n} of batch {batch}",
                    "scope": USER,
                    "id": f"bulk{batch}-{n}",
                }
                for n in range(100)
            )
            print(batch + 1, flush=True)
            memory.recall("refund number", scope=USER)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    memory.remember("refund goes on", scope=USER, id="on")
    memory.close()


def fill_disk(folder: str, limit: int = 0) -> None:
    """Write until nothing fits any more, go on reading, and write again once there is room.

    Prints how many were acknowledged, then the error, then what else went wrong, if anything.

    Args:
        folder: On a small file system, or with ``limit`` on any.
        limit: No file may grow beyond so many bytes; 0: the file system is what is small.
    """
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    path = Path(folder) / "m.db"
    acknowledged = 0
    with opened(path) as memory:
        try:
            while True:
                text = f"refund number {acknowledged} " + "x" * 20_000
                memory.remember(text, scope=USER, id=f"m{acknowledged}")
                acknowledged += 1
        except CatalogFullError as error:
            print(acknowledged, error, flush=True)
        before = image(memory)
        found = memory.recall("refund number", scope=USER, top=10**6, strict=True)
        assert len(found) == acknowledged == len(memory), (len(found), acknowledged)
        for more in (
            lambda: memory.remember_many(
                {"text": f"{n} " + "y" * 20_000, "scope": USER, "id": f"y{n}"} for n in range(99)
            ),
            lambda: memory._engine.catalog.save_cache("big", b"x" * 10_000_000),
        ):
            with suppress(CatalogFullError):
                more()
                print("no error")
        if not limit:
            with suppress(StoreError):
                memory.export(Path(folder) / "export.jsonl")
                print("no error")
            assert not list(Path(folder).glob("*export*"))
        assert image(memory) == before
        if limit:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            memory.remember("refund goes on", scope=USER, id="on")
    with opened(path) as memory:
        agree(memory, Path(gettempdir() if not limit else folder))
        assert len(memory) == acknowledged + bool(limit)
    print("kept", flush=True)


def make_where_full(folder: str) -> None:
    """Fill a small file system and try to make a memory on it; prints the files that appeared."""
    with Path(folder, "rest").open("wb", buffering=0) as rest, suppress(OSError):
        while rest.write(b"x" * 4096):
            pass
    try:
        opened(f"{folder}/another.db")
    except CatalogFullError:
        print(sorted(each.name for each in Path(folder).iterdir()), flush=True)


def read_where_read_only(path: str, copy_to: str, user: int = 0) -> None:
    """Read, try every write, and close; prints what was read and the errors met.

    Args:
        path: The file.
        copy_to: A folder that can be written.
        user: Whom root becomes first, as modes do not bind root.
    """
    if user and os.geteuid() == 0:
        with opened(":memory:") as memory:  # all that is imported lazily, while it can be read
            for _ in steps(memory):
                pass
            agree(memory, Path(copy_to))
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    try:
        memory = opened(path)
    except StoreError as error:
        print(type(error).__name__, error, flush=True)
        return
    found = memory.recall("refund number", scope=USER, strict=True, reinforce=True)
    print(len(memory), sorted(found.ids), len(found.trace.notes), flush=True)
    assert "uses were not counted" in found.trace.notes[-1]
    before = image(memory)
    writes: list[Callable[[], object]] = [
        lambda: memory.remember("refund", scope=USER, id="new"),
        lambda: memory.forget("n0", scope=USER),
        lambda: memory.reinforce("n0", scope=USER),
        lambda: memory.link("n0", "n3", scope=USER),
        lambda: memory.unlink("n4", "n5", scope=USER, kind="equivalent"),
        lambda: memory.reembed(hashed(4)),
    ]
    for write in writes:
        try:
            write()
            print("written", flush=True)
        except CatalogReadOnlyError as error:
            print(error, flush=True)
    assert image(memory) == before
    memory.export(f"{copy_to}/export.jsonl")
    agree(memory, Path(copy_to))
    memory.close()
    print("closed", flush=True)


def hold(path: str) -> None:
    """Hold a file for writing until sent a line, then write, and close when sent another."""
    memory = opened(path)
    with memory._engine.catalog._database.write() as connection:
        connection.execute("UPDATE state SET generation = generation")
        print("holding", flush=True)
        sys.stdin.readline()
    memory.remember("refund of the other", scope=USER, id="other", salience=1.0)
    print("released", flush=True)
    sys.stdin.readline()
    memory.close()


def write_many(path: str, name: str, times: str) -> None:
    """Write memories of one's own, and revisions of a shared one; recall in between."""
    with opened(path, busy_timeout=60.0) as memory:
        for n in range(int(times)):
            memory.remember(f"refund {name} {n}", scope=USER, id=f"{name}{n}", links=["shared"])
            memory.remember(f"refund shared by {name}", scope=USER, id="shared", at=START)
            if n % 4 == 3:
                memory.forget(f"{name}{n - 1}", scope=USER)
            found = memory.recall(f"refund {name}", scope=USER, top=10**6, strict=True)
            assert f"{name}{n}" in found.ids


def read_many(path: str) -> None:
    """Recall until sent a line: what was seen once stays, each pair is whole; prints how often."""
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
    seen = rounds = 0
    with opened(path) as memory:
        print("reading", flush=True)
        while not stop.is_set():
            count_now = len(memory)
            found = memory.recall("left right", scope="tenant:acme", strict=True)
            assert count_now >= seen, (count_now, seen)
            assert count_now % 2 == 0, count_now
            assert all(match.memory.text for match in found)
            seen, rounds = count_now, rounds + 1
    print(seen, rounds, flush=True)


def _forked(deed: Callable[[], object]) -> None:
    """Do a deed in a fork of this process, which is killed when it takes too long."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        faulthandler.dump_traceback_later(30, exit=True)
        try:
            deed()
            print("done", flush=True)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    if status := os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        print("ended", status, flush=True)


class _SlowStore:
    name, emits = "slow", ("cosine",)

    def propose(self, query: object, limit: int, *, level: int | None = None) -> list[str]:
        threading.Event().wait(0.02)
        return []

    def observe(self, query: object, ids: list[str]) -> Observation:
        return Observation({"cosine": np.full(len(ids), 0.5)})

    def close(self) -> None: ...


def fork_memory(path: str, busy: str) -> None:
    """Fork while threads use a memory; each child asks, writes and closes it."""
    stores = [*default_stores(), *([_SlowStore()] if busy == "slow store" else [])]
    memory = Memory.open(path, embedder=hashed(8), stores=stores)
    memory.remember_many(
        {"text": f"refund number {n}", "scope": USER, "id": f"n{n}"} for n in range(300)
    )
    memory.recall("refund number", scope=USER)  # Python's own locks of first imports are not ours
    over = threading.Event()

    def recall() -> None:
        when = {"as_of": "2099-01-01T00:00:00+00:00"} if busy == "as of" else {}
        while not over.is_set():
            memory.recall("refund number", scope=USER, **when)

    def write() -> None:
        for n in count():
            if over.is_set():
                return
            memory.remember(f"refund of parent {n % 5}", scope=USER, id=f"p{n % 5}")

    deeds = {"writing": [write] * 2, "both": [write, recall, recall]}.get(busy, [recall] * 3)
    threads = [threading.Thread(target=deed) for deed in deeds]
    for thread in threads:
        thread.start()
    for n in range(6):

        def deed(n: int = n) -> None:
            assert memory.recall("refund number", scope=USER, top=3).ids
            memory.remember(f"from a child {n}", scope=USER, id=f"c{n}")
            assert f"c{n}" in memory.recall(f"child {n}", scope=USER, top=50).ids
            memory.close()

        _forked(deed)
    over.set()
    for thread in threads:
        thread.join()
    found = memory.recall("from a child", scope=USER, top=99).ids
    print("parent", sum(each.startswith("c") for each in found), flush=True)
    memory.close()


def fork_procedures(path: str) -> None:
    """Fork while threads use the sync façade of a memory of procedures, made before."""
    from rankblend.reasonlets import ReasonletMemory, SqliteReasonletStore, SyncReasonletMemory

    memory = SyncReasonletMemory(ReasonletMemory(hashed(8), SqliteReasonletStore.open(path)))
    memory.recall("how are refunds done", scope=USER)
    over = threading.Event()

    def recall() -> None:
        while not over.is_set():
            memory.recall("how are refunds done", scope=USER)

    def deed() -> None:
        assert memory.recall("how are refunds done", scope=USER) == []
        assert memory.statistics(USER) is not None
        memory.close()

    threads = [threading.Thread(target=recall) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        _forked(deed)
    over.set()
    for thread in threads:
        thread.join()
    assert memory.recall("how are refunds done", scope=USER) == []
    _forked(deed)
    memory.close()


def fork_waiting(folder: str) -> None:
    """Fork while a factory runs in a thread and locks are held; the child waits for none of them."""
    from rankblend.chat import CaptureQueue
    from rankblend.reasonlets import ReasonletMemory
    from rankblend.recall._write import collecting_seldom
    from rankblend.rerank import EvidenceLedger

    begun, release = threading.Event(), threading.Event()
    parent = os.getpid()

    def factory() -> ReasonletMemory:
        if os.getpid() == parent:
            begun.set()
            release.wait(60)
        return ReasonletMemory(hashed(8))

    queue = CaptureQueue(factory)
    ledger = EvidenceLedger(Path(folder) / "ledger.jsonl")
    held = threading.Event()

    def hold() -> None:
        with ledger._lock, collecting_seldom():
            held.set()
            release.wait(60)

    threads = [
        threading.Thread(target=lambda: asyncio.run(_made(queue))),
        threading.Thread(target=hold),
    ]
    for thread in threads:
        thread.start()
    assert begun.wait(60)
    assert held.wait(60)

    def deed() -> None:
        asyncio.run(_made(queue))
        with ledger._lock, collecting_seldom():
            pass

    _forked(deed)
    release.set()
    for thread in threads:
        thread.join()


async def _made(queue: object) -> None:
    made = await queue._memory.ready()  # type: ignore[attr-defined]
    await made.value.aclose()


def fork_inside_a_write(path: str) -> None:
    """Fork from inside a write transaction: there is nothing that the child could go on with."""
    memory = Memory.open(path)
    catalog = memory._engine.catalog

    def deed() -> None:
        try:
            memory.recall("anything", scope=USER)
        except StoreError as error:
            print(type(error).__name__, flush=True)
        with Memory.open(path) as anew:
            assert len(anew) == 0

    with catalog._database.write():
        _forked(deed)
    memory.remember("still there", scope=USER, id="a")
    print("parent", *memory.recall("still there", scope=USER).ids, flush=True)
    memory.close()


def _killing(kill_at: int) -> Callable[[int], None]:
    def reached(number: int) -> None:
        if number == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    return reached


def _watch(reached: Callable[[int], None], *, by: str) -> count[int]:
    """Number what the connections opened from now on do, and tell before each."""
    numbers = count(1)
    connect = database.connect

    def watched(where: str, timeout: float) -> sqlite3.Connection:
        connection = connect(where, timeout)

        def before(*_: object) -> None:
            reached(next(numbers))

        if by == "statement":
            connection.set_trace_callback(before)
        else:
            connection.set_progress_handler(before, 20)
        return connection

    database.connect = watched
    return numbers
