"""Names: presets, plug-ins and paths."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import pytest

from rankblend.errors import (
    InvalidArgumentError,
    PluginError,
    PluginWarning,
    ProfileError,
    UnknownNameError,
)
from rankblend.profiles import _registry as registry
from rankblend.profiles import load_profile, profile_names, read_profile

TEXT = '[signals.a]\nevidence = "salience"\n[score]\nof = ["a"]\n'
READY = read_profile(TEXT, name="ready")
NOT_TOML = "x = = 1"
NUMBER = 5


class FakeEntry(EntryPoint):
    """An entry point whose loading is counted."""

    loads: ClassVar[list[str]] = []

    def load(self) -> Any:
        self.loads.append(self.name)
        if self.value == "broken":
            raise RuntimeError("secret detail")
        return {"text": TEXT, "ready": READY, "bad": NOT_TOML, "number": NUMBER,
                "invalid": "[score]\nof = ['q']\n"}.get(self.value, Path(self.value))  # fmt: skip


@pytest.fixture
def plug_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Register entry points by (name, value) for one test."""
    caches = (registry._plugins, registry._named, registry._load_named)

    def clear() -> None:
        for cache in caches:
            cache.cache_clear()

    def register(*pairs: tuple[str, str]) -> None:
        entries = [FakeEntry(name, value, registry.PLUGIN_GROUP) for name, value in pairs]
        monkeypatch.setattr(registry.metadata, "entry_points", lambda *, group: entries)
        clear()

    FakeEntry.loads = []
    yield register
    monkeypatch.undo()
    clear()


def test_profile_names_when_asked_then_are_the_presets_sorted() -> None:
    assert profile_names() == (
        "convex", "crewai", "crewai-architecture", "crewai-sprint", "default", "default-sparse",
        "generative-agents", "hindsight", "mnemosyne", "mw-memory", "relevance-baseline",
        "relevance-rerank", "rrf", "symfonic", "zeph",
    )  # fmt: skip


def test_load_when_named_twice_then_is_read_once() -> None:
    assert load_profile("crewai") is load_profile("crewai")


def test_load_when_given_a_profile_then_returns_it() -> None:
    assert load_profile(READY) is READY


def test_load_when_name_is_unknown_then_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as caught:
        load_profile("crewia")
    assert str(caught.value) == 'unknown profile "crewia": did you mean "crewai"?'


def test_load_when_given_text_or_path_of_a_file_then_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.toml").write_text(TEXT, encoding="utf-8")
    (tmp_path / "odd").write_text(TEXT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    profiles = [load_profile(it) for it in ("mine.toml", tmp_path / "mine.toml", "./mine.toml")]
    assert profiles[0] == profiles[1] == profiles[2]
    assert profiles[0].name == "mine"
    assert load_profile(Path("odd")).name == "odd"
    with pytest.raises(UnknownNameError):
        load_profile("odd")


def test_load_when_a_file_changes_then_it_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(TEXT, encoding="utf-8")
    before = load_profile(path)
    path.write_text(TEXT + "[select]\ntop = 3\n", encoding="utf-8")
    assert load_profile(path).hash != before.hash


@pytest.mark.parametrize("value", [None, 5, b"crewai", ["crewai"]])
def test_load_when_type_is_wrong_then_refused(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="expected a name, a path or a RankingProfile"):
        load_profile(value)


@pytest.mark.parametrize("name", ["", " ", "x" * 500, "a\0b", "\ud800", "é"])
def test_load_when_name_is_odd_then_is_unknown(name: str) -> None:
    with pytest.raises(UnknownNameError):
        load_profile(name)


def test_plug_in_when_listed_then_is_not_loaded_and_when_named_then_it_is(
    plug_in: Callable[..., None], tmp_path: Path
) -> None:
    (tmp_path / "base.toml").write_text(TEXT, encoding="utf-8")
    child = tmp_path / "child.toml"
    child.write_text('extends = ["base.toml"]\n[select]\ntop = 2\n', encoding="utf-8")
    plug_in(("acme", "text"), ("acme-ready", "ready"), ("acme-file", str(child)))
    assert {"acme", "acme-ready", "acme-file"} < set(profile_names())
    assert FakeEntry.loads == []
    assert load_profile("acme").hash == load_profile("acme-ready").hash == READY.hash
    assert load_profile("acme-file").select.top == 2
    assert load_profile("acme").name == "acme"
    assert sorted(FakeEntry.loads) == ["acme", "acme-file", "acme-ready"]


def test_plug_in_when_extended_then_is_a_parent_like_any(plug_in: Callable[..., None]) -> None:
    plug_in(("acme", "text"))
    child = read_profile('extends = ["acme"]\n[select]\ntop = 1')
    assert child.origins["score.of"] == "acme"


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        ([("default", "text")], "it has the name of a preset"),
        ([("acme", "ready"), ("acme", "text")], "'ready' has the same name"),
        ([("a/b", "text")], "its name is not made of"),
        ([("x.toml", "text")], "its name is not made of"),
    ],
)
def test_plug_in_when_its_name_is_taken_or_odd_then_skipped_with_a_warning(
    plug_in: Callable[..., None], pairs: list[tuple[str, str]], reason: str
) -> None:
    default = load_profile("default").hash
    plug_in(*pairs)
    with pytest.warns(PluginWarning, match=reason):
        names = profile_names()
    assert len(names) == len(set(names))
    assert load_profile("default").hash == default
    assert FakeEntry.loads == []


@pytest.mark.parametrize("value", ["broken", "bad", "number", "/no/such/file.toml"])
def test_plug_in_when_it_cannot_be_loaded_then_only_naming_it_fails(
    plug_in: Callable[..., None], value: str
) -> None:
    plug_in(("acme", value))
    assert "acme" in profile_names()
    assert load_profile("crewai").name == "crewai"
    with pytest.raises(PluginError, match="acme") as caught:
        load_profile("acme")
    assert "secret" not in str(caught.value)


def test_plug_in_when_its_profile_is_invalid_then_its_problems_show(
    plug_in: Callable[..., None],
) -> None:
    plug_in(("acme", "invalid"))
    with pytest.raises(ProfileError) as caught:
        load_profile("acme")
    assert caught.value.profile == "acme"
    assert caught.value.problems == ('score.of: unknown signal or node "q"',)
