"""Finding names of nodes in a query."""

from __future__ import annotations

import numpy as np
import pytest

from rankblend.stores.graph._names import NameIndex, name_words


def found(text: str, names: list[str], unusable: tuple[str, ...] = ()) -> list[str]:
    usable = np.array([name not in unusable for name in names])
    nodes = NameIndex().matches(text, names, lambda nodes: usable[nodes])
    return [names[node] for node in nodes.tolist()]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Marie Curie's X-ray", ["marie", "curie", "s", "x", "ray"]),
        ("STRASSE straße", ["strasse", "strasse"]),
        ("ﬁre ①", ["fire", "1"]),
        ("東京タワー3", ["東", "京", "タ", "ワ", "ー", "3"]),
        ("x\u0301東\u0301", ["x\u0301", "東\u0301"]),
        ("हिन्दी", ["हिन्दी"]),
        ("\u0e01\u0e33\u0e44\u0e23", ["\u0e01\u0e4d", "\u0e32", "\u0e44", "\u0e23"]),
        ("a_b c", ["a_b", "c"]),
        ("né à Évry", ["né", "à", "évry"]),
        ("", []),
        ("?! …", []),
    ],
)
def test_name_words_when_writing_differs_then_compared_alike(text: str, words: list[str]) -> None:
    assert name_words(text) == words


def test_name_words_when_composed_differently_then_equal() -> None:
    assert name_words("Cafe\u0301") == name_words("CAFÉ")


def test_matches_when_case_differs_then_every_spelling_is_found() -> None:
    assert found("where is paris?", ["Paris", "PARIS", "parish"]) == ["Paris", "PARIS"]


def test_matches_when_only_part_of_a_word_matches_then_nothing() -> None:
    assert found("the parisian cat", ["Paris", "cats"]) == []


def test_matches_when_a_name_lies_inside_a_longer_one_then_only_the_longer() -> None:
    names = ["New York", "New York City", "York City Council", "City"]
    assert found("the new york city council met", names) == [
        "New York City", "York City Council",
    ]  # fmt: skip
    assert found("a city near new york", names) == ["New York", "City"]


def test_matches_when_the_longer_name_is_unusable_then_it_hides_nothing() -> None:
    assert found("new york city", ["New York", "New York City"], ("New York City",)) == ["New York"]


@pytest.mark.parametrize("name", ["it", "a", "7", "--", " ? "])
def test_matches_when_a_name_is_too_short_then_it_does_not_count(name: str) -> None:
    assert found("is it a 7 -- ? or not", [name]) == []


def test_matches_when_writing_has_no_spaces_then_found_within_the_run() -> None:
    assert found("私は東京都に住む", ["東京", "京都", "大阪", "東"]) == ["東京", "京都"]


def test_matches_when_names_are_added_later_then_found_too() -> None:
    index, names = NameIndex(), ["alpha"]
    everything = lambda nodes: np.ones(len(nodes), dtype=np.bool_)  # noqa: E731
    assert index.matches("alpha beta", names, everything).tolist() == [0]
    names.append("beta")
    assert index.matches("alpha beta", names, everything).tolist() == [0, 1]


def test_matches_when_the_text_is_blank_then_nothing() -> None:
    assert found("  ", ["alpha"]) == []
