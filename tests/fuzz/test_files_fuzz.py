"""Files a memory is opened at, exported to and imported from: anything, refused or read aright."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankblend as rb

sys.path.insert(0, str(Path(__file__).parent))
from asked_memory import NOW, PRESETS, SCOPES, USER, check_write, few, filled, fuzzed, many, stored
from strategies import anything, mappings, numbers, refused, scope_likes, some, texts

JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts(largest=6)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(texts(largest=3), inner, max_size=2)
    ),
    max_leaves=3,
)
LINE = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(("memory", "memory", "link", "rankblend", "other", None, [])),
            **dict.fromkeys(("scope", "id", "layer", "salience", "at", "used", "created", "metadata", "embedder", "format", "weight", "kind"), JSON),
            **{name: st.just(value) for name, value in (
                ("text", "tea"), ("scope", USER), ("source", "a"), ("target", "b"), ("format", 1),
                ("dimension", 8))},
            "vector": st.one_of(
                JSON,
                st.fixed_dictionaries({"f32": texts()}),
                st.just({"f32": "AACAPwAAgD8AAIA/AACAPwAAgD8AAIA/AACAPwAAgD8="}),
            ),
            "uses": numbers().filter(lambda n: type(n) in (int, float, bool)).filter(lambda n: abs(n) < 1e300 or n != n),
        },
    ),
    JSON,
)  # fmt: skip


def check_import(lines: list[Any], mangle: bytes, at: int, scope: Any, folder: Path) -> None:
    text = "\n".join(json.dumps(line) for line in lines).encode()
    text = text[:at] + mangle + text[at:]
    path = folder / "lines.jsonl"
    path.write_bytes(text)
    check_write(lambda memory: memory.import_(path, scope=scope))


def check_export(path: Any, folder: Path) -> None:
    with filled() as memory:
        before = stored(memory)
        if not refused(lambda: memory.export(path)):
            with rb.Memory.open(":memory:", clock=lambda: NOW) as other:
                other.import_(path)
                assert stored(other) == before
        refused(lambda: memory.import_(path))


def check_open(path: Any, options: dict[str, Any]) -> None:
    def call() -> None:
        with rb.Memory.open(path, **options) as memory:
            memory.remember("tea", scope=USER, id="a")
            assert memory.get("a", scope=USER).text == "tea"
            assert set(memory.recall("tea", scope=USER).ids) <= {"a"}

    refused(call)


IMPORTS = given(
    st.lists(LINE, max_size=4), st.one_of(st.just(b""), st.binary(max_size=3)), st.integers(0, 200),
    st.one_of(st.none(), SCOPES, scope_likes()),
)  # fmt: skip


@few
@IMPORTS
def test_import_when_the_lines_are_anything_then_refused_and_nothing_stored_or_read(
    tmp_path_factory: pytest.TempPathFactory, lines: list[Any], mangle: bytes, at: int, scope: Any
) -> None:
    check_import(lines, mangle, at, scope, tmp_path_factory.getbasetemp())


@pytest.mark.slow
@many
@IMPORTS
def test_import_when_the_lines_are_anything_very_often_then_refused_and_nothing_stored_or_read(
    tmp_path_factory: pytest.TempPathFactory, lines: list[Any], mangle: bytes, at: int, scope: Any
) -> None:
    check_import(lines, mangle, at, scope, tmp_path_factory.getbasetemp())


PATHS = st.one_of(texts(), anything())
OPTIONS = some(
    profile=st.sampled_from(PRESETS), store_timeout=numbers(), busy_timeout=numbers(),
    statistics=texts(), layers=mappings(), stores=st.lists(anything(), max_size=2),
    allow_subtree=st.booleans(),
)  # fmt: skip


@few
@given(PATHS)
def test_export_when_the_path_is_anything_then_refused_or_read_back(
    tmp_path_factory: pytest.TempPathFactory, path: Any
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("export"))
        check_export(path, Path())


@few
@given(st.one_of(st.just(":memory:"), PATHS), OPTIONS)
def test_open_when_given_anything_then_refused_or_a_memory(
    tmp_path_factory: pytest.TempPathFactory, path: Any, options: dict[str, Any]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("open"))
        check_open(path, options)


@pytest.mark.slow
@settings(fuzzed, max_examples=500)
@given(PATHS, OPTIONS)
def test_open_and_export_when_given_anything_very_often_then_refused_or_right(
    tmp_path_factory: pytest.TempPathFactory, path: Any, options: dict[str, Any]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("paths"))
        check_export(path, Path())
        check_open(":memory:", options)
        check_open(path, options)
