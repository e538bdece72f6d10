"""Writing profiles as TOML."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from attrs import evolve

from rankblend.profiles import dump_profile, load_profile, profile_names, read_profile
from rankblend.relevance import Evidence


@pytest.mark.parametrize("name", profile_names())
def test_dump_when_loaded_again_then_is_equal_with_the_same_hash(name: str) -> None:
    profile = load_profile(name)
    again = read_profile(dump_profile(profile), name="other")
    assert again == profile
    assert again.hash == profile.hash
    assert dump_profile(again) == dump_profile(profile)


def test_dump_when_read_by_a_person_then_is_complete_and_flat() -> None:
    tables = tomllib.loads(dump_profile(load_profile("crewai-sprint")))
    assert "extends" not in tables
    assert tables["score"]["weights"] == {"similarity": 0.3, "recency": 0.5, "importance": 0.2}
    assert tables["signals"]["recency"]["curve"] == {"half_life": {"days": 7}}
    assert tables["scope"] == {"mode": "off", "half_life_levels": 1.0, "floor": 0.0}
    assert "top" not in tables["select"]
    assert "floors" not in tables


def test_dump_when_written_to_a_file_then_the_file_is_the_same_profile(tmp_path: Path) -> None:
    path = tmp_path / "fitted.toml"
    profile = load_profile("default").with_weights({"similarity": 0.25})
    path.write_text(dump_profile(profile), encoding="utf-8")
    assert load_profile(path) == profile
    assert load_profile(path).hash == profile.hash
    assert load_profile(path).origins["score.weights.similarity"] == "fitted.toml"


@pytest.mark.parametrize(
    "source", ["", "a\nb\n", "\n", "a\r\nb\rc", '"""', "\\", "tab\t\x7f\x00", " x "]
)
def test_dump_when_source_is_odd_text_then_it_comes_back_the_same(source: str) -> None:
    profile = evolve(load_profile("rrf"), source=source)
    assert read_profile(dump_profile(profile)) == profile


def test_dump_when_evidence_is_declared_then_unbounded_ranges_survive() -> None:
    stars = Evidence("stars", "score", -2.0, float("inf"), True, True, "given by readers")
    profile = read_profile(
        "[evidence.stars]\nunit = 'score'\nrange = [-2, inf]\nnatural_zero = true\n"
        "relevance = true\nmeaning = 'given by readers'\n"
        "[signals.s]\nevidence = 'stars'\ncurve = 'logistic'\n[score]\nof = ['s']"
    )
    again = read_profile(dump_profile(profile))
    assert again.evidence == {"stars": stars}
    assert again.evidence["stars"].meaning == "given by readers"
    assert again.hash == profile.hash
