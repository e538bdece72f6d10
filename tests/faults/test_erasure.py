"""What was forgotten is in no byte of the file, its log and its caches, whatever SQLite does by default."""

from __future__ import annotations

import random
import re
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scenario import START, USER, hashed, opened

import rankblend as rb
from rankblend.relevance import Scope
from rankblend.stores import Edge, Key
from rankblend.stores.catalog import Catalog

# One word for each field, so that a failure says where it was left.
MARKED = ("text", "id", "key", "layer", "link", "kind", "name", "value", "old", "entity", "scope")
VECTOR = np.array([0.111, 0.222, -0.333, 0.444, 0.555, -0.666, 0.777, 0.888], np.float32)
VECTOR /= np.linalg.norm(VECTOR)
# A numpy float32 may be rounded once more on its way in; no other vector has these first bytes.
_PART = struct.pack("<2f", *VECTOR[:2])


@pytest.fixture(autouse=True)
def leaking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build of SQLite that leaves deleted bytes where they were unless it is told otherwise."""
    connect = sqlite3.connect

    def connect_leaking(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.execute("PRAGMA secure_delete = OFF")
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_leaking)


def marked(n: int) -> dict[str, Any]:
    """A memory with a marker in every field that can hold text, and a vector that can be found."""
    return {
        "text": f"zz{n}text " + f"zz{n}text filler " * (400 if n % 7 == 0 else 1),
        "scope": f"{USER}/part:zz{n}scope",
        "id": f"zz{n}id",
        "key": f"zz{n}key",
        "layer": f"zz{n}layer",
        "links": [rb.Link(f"zz{n}link", f"zz{n}kind")],
        "metadata": {f"zz{n}name": [f"zz{n}value"]},
        "vector": VECTOR,
    }


def left_in(folder: Path) -> dict[str, set[bytes]]:
    """File → markers in its bytes."""
    pattern = re.compile(rb"zz\d+(?:" + "|".join(MARKED).encode() + rb")|" + re.escape(_PART))
    found = {each.name: set(pattern.findall(each.read_bytes())) for each in folder.iterdir()}
    return {name: markers for name, markers in found.items() if markers}


def fill(memory: rb.Memory, count: int) -> None:
    """Marked memories among others, with revisions, uses and edges."""
    for n in range(count):
        item = marked(n)
        memory.remember_many([{**item, "text": f"zz{n}old", "at": START}, item])
        memory.remember(f"stays {n} " * 20, scope=USER, id=f"stays-{n}")
        memory.link(f"zz{n}id", f"zz{n}entity", scope=item["scope"], kind=f"zz{n}kind")
        memory.reinforce(item["id"], scope=item["scope"])


def forget(memory: rb.Memory, numbers: Iterator[int] | range) -> None:
    for n in numbers:
        memory.forget(f"zz{n}id", scope=f"{USER}/part:zz{n}scope")


def test_leaking_when_nothing_tells_sqlite_to_overwrite_then_the_markers_are_found(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.db"
    with opened(path) as memory:
        fill(memory, 3)
    plain = sqlite3.connect(path)  # the markers can be found, so the tests below can fail
    plain.execute("DELETE FROM memories")
    plain.commit()
    plain.close()
    assert {b"zz0text", b"zz1id", b"zz2layer"} <= left_in(tmp_path)["m.db"]


def test_forget_when_closed_then_no_byte_is_left(tmp_path: Path) -> None:
    with opened(tmp_path / "m.db") as memory:
        fill(memory, 30)
        forget(memory, range(30))
    assert left_in(tmp_path) == {}
    with opened(tmp_path / "m.db") as memory:
        assert len(memory) == 30


@pytest.mark.parametrize("seed", range(3))
def test_forget_when_written_and_forgotten_in_any_order_then_no_byte_is_left(
    tmp_path: Path, seed: int
) -> None:
    draws = random.Random(seed)
    there: list[int] = []
    with opened(tmp_path / "m.db") as memory:
        for n in range(150):
            memory.remember(**marked(n))
            there.append(n)
            if draws.random() < 0.5:
                memory.remember(f"stays {n} " * draws.randrange(1, 60), scope=USER, id=f"s{n}")
            if draws.random() < 0.6:
                forget(memory, iter([there.pop(draws.randrange(len(there)))]))
            if draws.random() < 0.2 and there:
                memory.remember(**{**marked(draws.choice(there)), "text": "revised"})
        forget(memory, iter(there))
    assert left_in(tmp_path) == {}


def test_forget_when_the_caches_are_large_then_no_byte_is_left_in_them(tmp_path: Path) -> None:
    with opened(tmp_path / "m.db") as memory:
        memory.remember_many({"text": f"common {n}", "scope": USER} for n in range(1200))
        fill(memory, 10)
    assert left_in(tmp_path)
    with opened(tmp_path / "m.db") as memory:
        forget(memory, range(10))
    for _ in range(2):
        assert left_in(tmp_path) == {}
        opened(tmp_path / "m.db").close()


def test_forget_when_another_has_the_file_open_then_tombstones_name_nobody_and_go_with_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.db"
    other = opened(path)
    with opened(path) as memory:
        fill(memory, 20)
        assert "zz3id" in other.recall("zz3text", scope=f"{USER}/part:zz3scope").ids
        forget(memory, range(20))
    assert left_in(tmp_path) == {}  # the log was emptied, because nobody was reading
    assert tombstones(path) == (20, 20)
    assert other.recall("zz3text", scope=f"{USER}/part:zz3scope", reach="ancestors").ids
    assert "zz3id" not in other.recall("zz3text", scope=f"{USER}/part:zz3scope").ids
    other.close()
    assert tombstones(path) == (0, 0)
    assert left_in(tmp_path) == {}


def test_unlink_when_another_does_it_then_the_edge_is_gone_here_too(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with opened(path) as memory, Catalog.open(path) as catalog:
        memory.remember("refund policy", scope=USER, id="policy")
        memory.remember("nothing in common", scope=USER, id="far")
        memory.link("policy", "far", scope=USER)
        asked = {"query": "x", "scope": USER, "seeds": ["policy"]}
        assert "far" in memory.recall(**asked, profile="default").ids
        graph = memory._engine.stores["graph"]
        assert len(graph.edges()) == 1  # type: ignore[attr-defined]
        catalog.remove_edges([Edge(USER, "policy", "far")])
        memory.recall(**asked)
        assert graph.edges() == []  # type: ignore[attr-defined]


def test_old_file_when_opened_then_its_free_pages_are_clean(tmp_path: Path) -> None:
    import gzip

    packed = Path(__file__).parents[1] / "fixtures" / "0.1.0" / "memory.db.gz"
    path = tmp_path / "memory.db"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    assert path.read_bytes().count(b"zanzibar") > 100
    Catalog.open(path).close()
    assert b"zanzibar" not in path.read_bytes()
    assert [each.name for each in tmp_path.iterdir()] == ["memory.db"]


def test_old_file_when_it_could_not_be_rewritten_then_it_is_at_the_next_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gzip

    from rankblend.stores.catalog import _file

    packed = Path(__file__).parents[1] / "fixtures" / "0.1.0" / "memory.db.gz"
    path = tmp_path / "memory.db"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    with monkeypatch.context() as killed:
        killed.setattr(_file, "rewrite", lambda _: False)
        Catalog.open(path).close()
    assert b"zanzibar" in path.read_bytes()
    Catalog.open(path).close()
    assert b"zanzibar" not in path.read_bytes()


def test_old_file_when_it_cannot_be_written_then_it_is_read_as_it_stands(tmp_path: Path) -> None:
    import gzip
    import os

    packed = Path(__file__).parents[1] / "fixtures" / "0.1.0" / "memory.db.gz"
    path = tmp_path / "memory.db"
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    from rankblend.stores.catalog import _file

    with _file.closed_on_error(connection):
        copy = _file.brought_up(connection, 1.0)
    assert _file.version_of(copy) == _file.SCHEMA_VERSION
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        copy.execute("DELETE FROM memories")
    copy.close()
    assert os.listdir(tmp_path) == ["memory.db"]  # noqa: PTH208


def test_compact_when_much_was_forgotten_then_the_space_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with opened(path, embedder=None) as memory:
        memory.remember_many(
            {"text": f"number {n} " * 50, "scope": USER, "id": f"zz{n}id"} for n in range(2000)
        )
        memory.remember("stays", scope=USER, id="stays")
    before = path.stat().st_size
    with opened(path, embedder=None) as memory:
        memory.forget([f"zz{n}id" for n in range(2000)], scope=USER)
        done = memory.compact()
        assert not done.waiting
        assert done.freed > 0.8 * before
        assert tombstones(path) == (0, 0)
        assert left_in(tmp_path) == {}
        assert memory.recall("stays", scope=USER).ids == ("stays",)
        memory.remember("after", scope=USER, id="after")
    assert path.stat().st_size < 0.5 * before


def test_compact_when_somebody_reads_an_older_state_then_it_says_that_the_log_waits(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.db"
    with opened(path) as memory:
        fill(memory, 5)
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM memories").fetchone()
        forget(memory, range(5))
        memory._engine.catalog.stop_waiting()
        assert memory.compact().waiting
        assert len(memory) == 5  # what was erased stays erased, and is said apart
        reader.execute("COMMIT")
        assert not memory.compact().waiting
        reader.close()
        assert left_in(tmp_path) == {}


def test_changes_when_erased_elsewhere_then_keys_are_told_by_who_held_them(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    key = Key(Scope.parse(USER), "a")
    with Catalog.open(path) as here, Catalog.open(path) as there:
        from rankblend.stores import Record

        here.put([Record(key, "text", at=1.0)])
        here.add_edges([Edge(USER, "a", "b")])
        there.refresh()
        known = there.generation
        here.forget([key])
        here.put([Record(key, "again", at=2.0)])
        told = there.refresh(known)
        assert told.removed == (key,)
        assert [record.text for record in told.changed] == ["again"]
        assert told.edges_gone == {Edge(USER, "a", "b").digest}
        own = here.refresh(known)
        assert (own.removed, own.edges_gone) == ((key,), frozenset())
        assert [edge.identity for edge in own.edges_removed] == [Edge(USER, "a", "b").identity]


def tombstones(path: Path) -> tuple[int, int]:
    connection = sqlite3.connect(path)
    try:
        return tuple(  # type: ignore[return-value]
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("tombstones", "edge_tombstones")
        )
    finally:
        connection.close()


def test_embedder_of_the_scenario_when_asked_then_it_does_not_make_the_marked_vector() -> None:
    assert _PART not in np.asarray(hashed(8)(["refund"]), np.float32).tobytes()
