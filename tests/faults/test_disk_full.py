"""No space left: a clear error, the old data intact, and writing goes on once there is room."""

from __future__ import annotations

from pathlib import Path

import pytest
from processes import Forks, child, finished, namespace
from scenario import TENANT, USER, agree, image, opened, steps

from rankblend.errors import CatalogFullError

REMEDY = "Make room"


def test_remember_when_the_file_may_not_grow_then_full_and_the_old_data_is_intact(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.db"
    with opened(path) as memory:
        for _ in steps(memory):
            pass
        before = image(memory)
        generation = memory._engine.catalog.generation
        writer = memory._engine.catalog._database._writer
        assert writer is not None
        (pages,) = writer.execute("PRAGMA page_count").fetchone()
        writer.execute(f"PRAGMA max_page_count = {pages + 2}")
        big = [{"text": f"{n} " + "x" * 4000, "scope": TENANT, "id": f"big{n}"} for n in range(99)]
        with pytest.raises(CatalogFullError, match=REMEDY) as full:
            memory.remember_many(big)
        assert "xxx" not in str(full.value)
        assert image(memory) == before
        assert memory._engine.catalog.generation == generation
        agree(memory, tmp_path)
        writer.execute("PRAGMA max_page_count = 1000000")
        memory.remember_many(big)
        assert memory.get("big98", scope=TENANT).text.startswith("98 x")
    with opened(path) as memory:
        assert memory.get("big98", scope=USER).text.startswith("98 x")
        agree(memory, tmp_path)


@pytest.mark.parametrize("pages", range(0, 40, 8))
def test_every_step_when_there_are_few_pages_left_then_whole_or_not_at_all(
    tmp_path: Path, pages: int
) -> None:
    with opened(":memory:") as whole:
        images = [image(whole), *(image(whole) for _ in steps(whole))]
    with opened(tmp_path / "m.db") as memory:
        writer = memory._engine.catalog._database._writer
        assert writer is not None
        (held,) = writer.execute("PRAGMA page_count").fetchone()
        writer.execute(f"PRAGMA max_page_count = {held + pages}")
        done = 0
        try:
            for _ in steps(memory):
                done += 1
        except CatalogFullError:
            pass
        assert image(memory) == images[done]
        agree(memory, tmp_path)


@pytest.mark.parametrize("limit", [300_000, 2_000_000])
def test_remember_when_files_may_not_grow_beyond_a_limit_then_full_and_all_is_kept(
    tmp_path: Path, forks: Forks, limit: int
) -> None:
    # The limit of a process stands in for a quota: the system says "file too large", not "full".
    (told, kept), killed = forks.run("fill_disk", tmp_path, limit)
    assert not killed
    acknowledged, _, error = told.partition(" ")
    assert int(acknowledged) >= 3
    assert REMEDY in error
    assert "xxx" not in error
    assert kept == "kept"


def test_remember_when_the_disk_is_full_then_full_and_all_acknowledged_is_kept(
    tmp_path: Path,
) -> None:
    prefix = namespace(f"mount -t tmpfs -o size=3m tmpfs '{tmp_path}'")
    told, kept = finished(child("fill_disk", tmp_path, prefix=prefix))
    assert int(told.split()[0]) > 10
    assert REMEDY in told
    assert kept == "kept"


def test_open_when_the_disk_is_full_then_full_and_no_half_file_is_left(tmp_path: Path) -> None:
    prefix = namespace(f"mount -t tmpfs -o size=256k tmpfs '{tmp_path}'")
    assert finished(child("make_where_full", tmp_path, prefix=prefix)) == ["['rest']"]
