"""From text to words: what BM25 counts, and what it leaves out."""

from __future__ import annotations

import pytest
import stop_words as package

from rankblend.errors import UnknownNameError
from rankblend.kernels.text import tokens
from rankblend.stores.keywords import Analysis
from rankblend.stores.keywords._analysis import ENGLISH, stop_words
from rankblend.stores.keywords._index import Vocabulary


def test_stems_of_one_verb_are_one() -> None:
    assert set(Analysis().stems(["connect", "connected", "connecting", "connections"])) == {
        "connect"
    }


def test_stop_words_and_single_letters_count_as_nothing() -> None:
    assert Analysis().stems(["what", "did", "x", "7", "tea"]) == [None, None, None, None, "tea"]


def test_single_character_of_a_script_without_spaces_counts() -> None:
    assert Analysis().stems(["中", "ก", "か", "é", "я"]) == ["中", "ก", "か", None, None]


def test_pieces_of_contractions_are_stop_words() -> None:
    words = tokens("didn't they'll we've isn't")
    assert Analysis().stems(words) == [None] * len(words)


def test_words_that_only_look_like_contractions_are_kept() -> None:
    assert None not in Analysis().stems(["won", "shan", "ill", "well", "shed"])


def test_content_words_of_long_stop_lists_are_kept() -> None:
    assert None not in Analysis().stems(["back", "bill", "computer", "help", "system", "name"])


def test_english_list_has_only_tokens_as_they_come_from_text() -> None:
    assert all(tokens(word) == [word] for word in ENGLISH)


def test_other_language_takes_the_package_and_its_stemmer() -> None:
    assert Analysis("german").stems(["und", "nicht", "häuser"]) == [None, None, "haus"]


def test_entry_of_a_list_that_is_several_tokens_is_left_out() -> None:
    entries = package.get_stop_words("vietnamese")
    several = next(entry for entry in entries if len(tokens(entry)) == 2)
    listed = stop_words("vietnamese", tokens)
    assert several not in listed
    assert listed == {tokens(entry)[0] for entry in entries if len(tokens(entry)) == 1}


def test_language_with_a_list_but_no_stemmer_is_read_unstemmed() -> None:
    assert Analysis("ukrainian").stems(["книгами"]) == ["книгами"]


def test_language_with_a_stemmer_but_no_list_has_no_stop_words() -> None:
    assert stop_words("basque", tokens) == frozenset()
    assert Analysis("basque").stems(["eta"]) == ["eta"]


def test_no_language_neither_stems_nor_stops() -> None:
    assert Analysis(None).stems(["the", "running", "x"]) == ["the", "running", None]


def test_unknown_language_is_refused_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="english") as caught:
        Analysis("englisch")
    assert caught.value.kind == "language"


def test_stop_words_are_cut_as_the_tokenizer_cuts() -> None:
    shouting = Analysis(tokenizer=lambda text: text.upper().split())
    assert shouting.stems(["THE", "the"]) == [None, "the"]


@pytest.mark.parametrize("word", ["\ud800", "a\ud800ing", "x\x00ing", "", "s" * 1_000_000])
def test_hostile_word_from_a_foreign_tokenizer_does_not_spoil_its_neighbours(word: str) -> None:
    stems = Analysis(tokenizer=str.split).stems(["running", word, "runs"])
    assert [stems[0], stems[2]] == ["run", "run"]


def test_word_too_long_to_be_one_is_not_stemmed() -> None:
    # German Snowball needs 37 s for a million "ü"; its stem of "ü" is "u"
    long, longest = "ü" * 257, "ü" * 256
    assert Analysis("german").stems([long, longest, "häuser"]) == [long, "u" * 256, "haus"]


def test_identity_is_the_same_for_equal_settings() -> None:
    assert Analysis().identity == Analysis("english", tokens).identity


@pytest.mark.parametrize(
    "other",
    [
        Analysis("german"),
        Analysis("porter"),
        Analysis(None),
        Analysis(tokenizer=str.split),
        Analysis(tokenizer=lambda text: tokens(text)[:5]),
    ],
    ids=["language", "stemmer", "none", "tokenizer", "lambda"],
)
def test_identity_differs_when_texts_are_read_differently(other: Analysis) -> None:
    assert other.identity != Analysis().identity


def test_identity_differs_when_the_tokenizer_changed_under_the_same_name() -> None:
    def before(text: str) -> list[str]:
        return text.split()

    def after(text: str) -> list[str]:
        return text.casefold().split()

    after.__qualname__ = before.__qualname__
    assert Analysis(tokenizer=before).identity != Analysis(tokenizer=after).identity


def test_vocabulary_when_a_stem_later_comes_as_a_word_stems_it_too() -> None:
    vocabulary = Vocabulary(Analysis())
    for word, stem in (("coffee", "coffe"), ("coffe", "coff"), ("coff", "coff")):
        (number,) = vocabulary.encode([word])
        assert vocabulary.words[vocabulary.stems[number]] == stem
    assert sorted(vocabulary.words) == ["coff", "coffe", "coffee"]


def test_vocabulary_keep_forgets_what_is_not_named_and_keeps_stems() -> None:
    vocabulary = Vocabulary(Analysis())
    numbers = vocabulary.encode(["secret", "running", "the"])
    renamed = vocabulary.keep(numbers[1:])
    assert sorted(vocabulary.words) == ["run", "running", "the"]
    assert renamed[numbers[0]] == -1
    running, the = (int(renamed[number]) for number in numbers[1:])
    assert vocabulary.words[int(vocabulary.stems[running])] == "run"
    assert vocabulary.stems[the] < 0
    assert vocabulary.find(["secret", "running"]).tolist() == [-1, running]
