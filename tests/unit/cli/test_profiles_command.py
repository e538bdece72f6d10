"""``rankblend profiles``: the list, and every value of one profile with its origin."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from rankblend.profiles import load_profile, profile_names


def test_profiles_when_listed_then_all_are_there_with_their_hash(rankblend: Any) -> None:
    done = rankblend("profiles")
    assert done.code == 0
    for name in profile_names():
        assert name in done.out
        assert load_profile(name).hash[:12] in done.out


def test_profiles_when_listed_as_json_then_names_and_hashes_are_plain(program: Any) -> None:
    done = program("profiles", "--json")
    assert (done.code, done.err) == (0, "")
    assert {one["name"]: one["hash"] for one in json.loads(done.out)} == {
        name: load_profile(name).hash for name in profile_names()
    }


def test_profiles_when_one_is_shown_then_every_value_has_its_origin(
    rankblend: Any, write_lines: Any
) -> None:
    mine = write_lines(
        "mine.toml", 'extends = ["crewai"]', "[score.weights]", "recency = 0.1", "importance = 0.4"
    )
    done = rankblend("profiles", mine)
    assert done.code == 0
    assert load_profile(mine).hash in done.out.splitlines()[0]
    origins = {line.split()[0]: line.split()[-1] for line in done.out.splitlines()[2:]}
    assert origins["score.weights.recency"] == "mine.toml"
    assert origins["score.weights.importance"] == "mine.toml"
    assert origins["score.weights.similarity"] == "crewai"
    assert origins["signals.recency.curve"] == "crewai"


def test_profiles_when_one_is_shown_then_its_values_are_written_as_in_a_file(
    rankblend: Any,
) -> None:
    done = rankblend("profiles", "mw-memory", "--json")
    values = {row["path"]: row["value"] for row in json.loads(done.out)["values"]}
    done = rankblend("profiles", "mw-memory")
    shown = 0
    for line in done.out.splitlines():
        path, _, rest = line.partition("  ")
        written = rest.strip().rpartition("  ")[0].strip()
        if path.strip() in values and written and written != "–":
            assert tomllib.loads(f"value = {written}") == {"value": values[path.strip()]}
            shown += 1
    assert shown > 30


def test_profiles_when_evidence_has_no_upper_end_then_json_still_is_json(
    rankblend: Any, write_lines: Any
) -> None:
    mine = write_lines(
        "open.toml",
        "[evidence.stars]", 'unit = "count"', "range = [0, inf]",
        "[signals.liked]", 'evidence = "stars"', "curve = { saturation = { c = 3 } }",
        "[score]", 'compose = "weighted_mean"', "weights = { liked = 1.0 }",
    )  # fmt: skip
    done = rankblend("profiles", mine, "--json")
    assert done.code == 0
    values = {row["path"]: row["value"] for row in json.loads(done.out)["values"]}
    assert values["evidence.stars.range"] == [0.0, "inf"]
    assert "[0.0, inf]" in rankblend("profiles", mine).out


def test_profiles_when_the_name_is_unknown_then_the_nearest_is_named(program: Any) -> None:
    done = program("profiles", "crewia")
    assert (done.code, done.out) == (2, "")
    assert done.err == 'error: unknown profile "crewia": did you mean "crewai"?\n'


def test_profiles_when_the_file_is_no_toml_then_line_and_column_are_said(
    rankblend: Any, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("[score\n", encoding="utf-8")
    done = rankblend("profiles", broken)
    assert done.code == 2
    assert "line 1" in done.errors[0]
