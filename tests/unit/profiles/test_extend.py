"""Inheritance between profile files."""

from __future__ import annotations

from pathlib import Path

import pytest

from rankblend.errors import ProfileError
from rankblend.profiles import RankingProfile, load_profile, read_profile
from rankblend.profiles._extend import MAX_ANCESTRY

SIGNALS = """
[signals.a]
evidence = "salience"
[signals.b]
evidence = "confidence"
"""
FLAT = SIGNALS + "[score]\nweights = { a = 1, b = 2 }\n"


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return folder / f"{next(reversed(files))}.toml"


def problems(text: str) -> list[str]:
    with pytest.raises(ProfileError) as caught:
        read_profile(text)
    return list(caught.value.problems)


def test_extend_when_one_weight_is_written_then_the_rest_is_inherited_with_its_origin() -> None:
    child = read_profile('extends = ["crewai"]\n[score.weights]\nrecency = 0', name="mine.toml")
    parent = load_profile("crewai")
    assert child.score.weights == (("similarity", 0.5), ("recency", 0.0), ("importance", 0.2))
    assert child.signals == parent.signals
    assert child.name == "mine"
    assert child.source == ""
    assert child.origins["score.weights.recency"] == "mine.toml"
    assert child.origins["score.weights.similarity"] == "crewai"
    assert child.origins["signals.recency.curve"] == "crewai"
    assert child.origins["scope.mode"] == "built-in"


def test_extend_when_parent_is_a_relative_path_then_it_starts_at_the_file(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    write(tmp_path / "base", root=FLAT, mid='extends = "root.toml"\n[select]\ntop = 4\n')
    path = write(tmp_path, leaf='extends = ["base/mid.toml"]\n[select]\nmax_tokens = 9\n')
    profile = load_profile(path)
    assert (profile.select.top, profile.select.max_tokens) == (4, 9)
    assert profile.origins["select.top"] == "mid.toml"
    assert profile.origins["score.weights.b"] == "root.toml"
    assert profile.origins["select.max_tokens"] == "leaf.toml"


def test_extend_when_inherited_or_written_flat_then_hash_is_the_same(tmp_path: Path) -> None:
    path = write(tmp_path, base=FLAT, child='extends = ["base.toml"]\n[score.weights]\nb = 3.0\n')
    flat = read_profile(SIGNALS + "[score]\nweights = { a = 1, b = 3 }\n")
    assert load_profile(path).hash == flat.hash


def test_extend_when_two_parents_agree_then_is_fine_and_when_not_then_refused(
    tmp_path: Path,
) -> None:
    mixin = "[select]\ntop = 5\n"
    path = write(tmp_path, base=FLAT, one=mixin, two=mixin.replace("5", "5"),
                 child='extends = ["base.toml", "one.toml", "two.toml"]\n')  # fmt: skip
    assert load_profile(path).origins["select.top"] == "one.toml"
    write(tmp_path, two="[select]\ntop = 6\n")
    with pytest.raises(ProfileError) as caught:
        load_profile(path)
    assert caught.value.problems == (
        'select.top: defined differently by "one.toml" and "two.toml"; write it here to choose',
    )


def test_extend_when_parents_differ_but_the_child_chooses_then_is_fine(tmp_path: Path) -> None:
    files = {"base": FLAT, "one": "[select]\ntop = 5\n", "two": "[select]\ntop = 6\n"}
    head = 'extends = ["base.toml", "one.toml", "two.toml"]\n'
    chosen = load_profile(write(tmp_path, **files, child=head + "[select]\ntop = 7\n"))
    assert chosen.select.top == 7
    dropped = load_profile(write(tmp_path, **files, child=head + 'without = ["select.top"]\n'))
    assert dropped.select.top is None


def test_extend_when_parents_differ_by_bool_and_number_then_they_differ(tmp_path: Path) -> None:
    path = write(tmp_path, base=FLAT, one="[select]\ndiversity = 1\n",
                 two="[select]\ndiversity = true\n",
                 child='extends = ["base.toml", "one.toml", "two.toml"]\n')  # fmt: skip
    with pytest.raises(ProfileError, match="defined differently"):
        load_profile(path)


def test_extend_when_a_grandparent_is_shared_then_it_is_no_contradiction(tmp_path: Path) -> None:
    path = write(tmp_path, base=FLAT, left='extends = ["base.toml"]\n[select]\ntop = 2\n',
                 right='extends = ["base.toml"]\n[pool]\nsize = 7\n',
                 child='extends = ["left.toml", "right.toml"]\n')  # fmt: skip
    profile = load_profile(path)
    assert (profile.select.top, profile.pool.size) == (2, 7)


def test_extend_when_profiles_extend_each_other_then_names_the_circle(tmp_path: Path) -> None:
    path = write(tmp_path, a='extends = ["b.toml"]\n', b='extends = ["a.toml"]\n')
    with pytest.raises(ProfileError) as caught:
        load_profile(path)
    assert caught.value.problems == ("extends: b.toml → a.toml → b.toml is a circle (in a.toml)",)


def test_extend_when_ancestry_is_very_long_then_refused(tmp_path: Path) -> None:
    files = {"p0": FLAT}
    for n in range(1, MAX_ANCESTRY + 2):
        files[f"p{n}"] = f'extends = ["p{n - 1}.toml"]\n'
    with pytest.raises(ProfileError, match="more than 32 generations"):
        load_profile(write(tmp_path, **files))


def test_extend_when_parent_is_unknown_then_only_that_and_the_own_mistakes_show() -> None:
    found = problems(
        'extends = ["crewia"]\n[pool]\nsize = 0\n[score.weights]\nrecency = "x"\n'
        '[floors.similarity]\nabsent = "drop"\n'
    )
    assert found == [
        'extends: unknown profile "crewia": did you mean "crewai"?',
        'score.weights.recency: expected a number ≥ 0, got "x"',
        "pool.size: expected a whole number in [1, 1,000,000], got 0",
    ]


def test_extend_when_a_parent_is_broken_then_says_which_and_where(tmp_path: Path) -> None:
    path = write(tmp_path, base="[pool]\nsize = = 3\n", child='extends = ["base.toml"]\n')
    with pytest.raises(ProfileError) as caught:
        load_profile(path)
    assert len(caught.value.problems) == 1
    assert 'extends: "base.toml": base.toml: is not TOML' in caught.value.problems[0]
    assert "line 2" in caught.value.problems[0]


def test_extend_when_an_inherited_value_is_wrong_then_its_file_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, base=FLAT + "[select]\ntop = -1\n", child='extends = ["base.toml"]\n')
    with pytest.raises(ProfileError) as caught:
        load_profile(path)
    assert caught.value.problems == (
        "select.top: expected a whole number in [0, 1,000,000], got -1 (from base.toml)",
    )


def test_extend_when_text_has_no_folder_then_paths_are_refused() -> None:
    assert problems('extends = ["x.toml"]') == [
        "extends: 'x.toml': only a profile in a file can extend a path"
    ]


def test_without_when_inputs_are_replaced_then_the_inherited_ones_are_gone() -> None:
    text = (
        'extends = ["crewai"]\nwithout = ["score.weights", "score.absent", "signals.recency"]\n'
        '[score]\ncompose = "strongest"\nof = ["similarity"]\n'
    )
    profile = read_profile(text)
    assert profile.score.weights == (("similarity", 1.0),)
    assert set(profile.signals) == {"similarity", "importance"}
    assert profile.origins["score.of"] == "profile"


def test_without_when_nothing_is_there_then_refused() -> None:
    assert problems('extends = ["crewai"]\nwithout = ["score.weight"]') == [
        'without: nothing is inherited at "score.weight"'
    ]


def test_extend_when_of_joins_inherited_weights_then_says_how_to_drop_them() -> None:
    found = problems('extends = ["crewai"]\n[score]\nof = ["similarity"]')
    assert any('without = ["score.weights"]' in line for line in found)


@pytest.mark.parametrize("value", ["5", "[5]", '["crewai", "crewai"]', '[["crewai"]]', "{}"])
def test_extend_when_it_is_no_list_of_names_then_refused(value: str) -> None:
    assert any(line.startswith("extends") for line in problems(f"extends = {value}"))


def test_extend_when_a_curve_is_written_then_it_replaces_the_whole_curve() -> None:
    child = read_profile(
        'extends = ["crewai"]\n[signals.recency]\ncurve = { linear = { days = 9 } }'
    )
    assert [step.name for step in child.signals["recency"].curve] == ["linear"]
    assert child.signals["recency"].evidence == ("age_created",)


def test_extend_when_presets_were_extended_then_they_are_unchanged() -> None:
    before: RankingProfile = load_profile("crewai")
    read_profile('extends = ["crewai"]\n[score]\nweights = { recency = 9 }')
    assert load_profile("crewai") == before
    assert read_profile('extends = ["crewai"]').hash == before.hash


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_extend_when_one_parent_has_a_value_where_another_has_a_table_then_refused(
    tmp_path: Path, order: tuple[str, str]
) -> None:
    parents = ", ".join(f'"{name}.toml"' for name in order)
    path = write(tmp_path, base=FLAT, one="select = 3\n", two="[select]\ntop = 1\n",
                 child=f'extends = ["base.toml", {parents}]\n')  # fmt: skip
    with pytest.raises(ProfileError, match="select: expected a table, got 3"):
        load_profile(path)


def test_extend_when_a_plain_value_replaces_an_inherited_table_then_refused_where_it_is() -> None:
    assert "score.weights: expected a table, got 3" in problems(
        'extends = ["crewai"]\n[score]\nweights = 3'
    )


def test_extend_when_a_grandparents_extends_is_wrong_then_the_file_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, mid='extends = ["gone.toml"]\nwithout = ["x"]\n',
                 child='extends = ["mid.toml"]\n[pool]\nsize = 0\n')  # fmt: skip
    with pytest.raises(ProfileError) as caught:
        load_profile(path)
    first, second = caught.value.problems
    assert first.startswith('extends: "gone.toml": ')
    assert first.endswith("there is no such file (in mid.toml)")
    assert second == "pool.size: expected a whole number in [1, 1,000,000], got 0"
