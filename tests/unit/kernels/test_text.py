from __future__ import annotations

import sys
import unicodedata
from typing import Any

import pytest

from rankblend.errors import InvalidArgumentError
from rankblend.kernels.text import normalized_text, tokens

CASES = {
    "nothing": ("", []),
    "only punctuation": (" \t!?—…", []),
    "english": ("Refund, the ORDER!", ["refund", "the", "order"]),
    "repeats in order": ("to be or to be", ["to", "be", "or", "to", "be"]),
    "underscore and digits": ("snake_case x1 3.14 __", ["snake_case", "x1", "3", "14", "__"]),
    "apostrophe": ("don't", ["don", "t"]),
    "german": ("Straße STRASSE", ["strasse", "strasse"]),
    "final sigma": ("ΟΔΟΣ οδος", ["οδοσ", "οδοσ"]),
    "full width": ("ＡＢＣ１", ["abc1"]),
    "ligature": ("ﬁne", ["fine"]),
    "superscript": ("x²", ["x2"]),
    "composed and decomposed": ("\u00e9 e\u0301", ["é", "é"]),
    "turkish": ("İstanbul", ["i\u0307stanbul"]),
    "hindi": ("हिन्दी में", ["हिन्दी", "में"]),
    "tamil": ("தமிழ் மொழி", ["தமிழ்", "மொழி"]),
    "arabic with marks": ("مَرْحَبًا بك", ["مَرْحَبًا", "بك"]),
    "hebrew with points": ("שָׁלוֹם", ["שָׁלוֹם"]),
    "bengali": ("বাংলা ভাষা", ["বাংলা", "ভাষা"]),
    "chinese": ("中文分词。好", ["中文", "文分", "分词", "好"]),
    "chinese beyond the basic plane": ("\U00020bb7\U00020000", ["\U00020bb7\U00020000"]),
    "japanese": ("東京へ、行く", ["東京", "京へ", "行く"]),
    "katakana with length mark": ("サーバー", ["サー", "ーバ", "バー"]),
    "half-width katakana": ("ｶﾞｲﾄﾞ", ["ガイ", "イド"]),
    "iteration mark": ("人々", ["人々"]),
    "korean": ("한국어 말", ["한국", "국어", "말"]),
    "korean in jamo": (unicodedata.normalize("NFD", "한국"), ["한국"]),
    "thai": ("ภาษา ก", ["ภา", "าษ", "ษา", "ก"]),
    "lao": ("ລາວ", ["ລາ", "າວ"]),
    "khmer": ("ខ្មែរ", ["ខ្", "្ម", "មែ", "ែរ"]),
    "myanmar": ("မြန်", ["မြ", "ြန", "န်"]),
    "mixed scripts": ("iPhone15を買うnow", ["iphone15", "を買", "買う", "now"]),
    "emoji": ("ok 👍🏽 👩‍👧 ❤️", ["ok"]),
    "a variation selector": ("葛\U000e0100城", ["葛城"]),
    "only marks": ("\u0301\u0302 a", ["a"]),
    "lone surrogates": ("\ud800ok\udfff", ["ok"]),
    "control characters": ("a\x00b\x1fc", ["a", "b", "c"]),
    "a joiner": ("می\u200cخواهم", ["می", "خواهم"]),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_tokens_when_in_some_script_then_its_words(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_tokens_when_ascii_then_the_same_as_beside_other_scripts() -> None:
    text = "".join(map(chr, range(128))) + " The_quick Brown-fox 42"
    assert tokens(text + " é") == [*tokens(text), "é"]


def test_tokens_when_given_every_character_then_none_fails() -> None:
    for start in range(0, sys.maxunicode + 1, 0x10000):
        found = tokens(" ".join(map(chr, range(start, min(start + 0x10000, sys.maxunicode + 1)))))
        assert all(token and not token.isspace() for token in found)


def test_tokens_when_marks_are_piled_up_then_in_linear_time_and_one_word() -> None:
    # Without cutting, ordering these marks takes minutes.
    (word,) = tokens("a" + "\u0323\u0301" * 200_000)
    assert word[0] == "ạ"


@pytest.mark.parametrize("function", [tokens, normalized_text])
@pytest.mark.parametrize("text", [None, b"bytes", 7])
def test_text_when_it_is_no_text_then_refused(function: Any, text: Any) -> None:
    with pytest.raises(InvalidArgumentError):
        function(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        (" \n\t ", ""),
        ("  The  ﬁrst\u3000TIME. ", "the first time."),
        ("Straße", "strasse"),
        ("e\u0301", "\u00e9"),
        ("a\x1cb", "a b"),
        ("no, yes", "no, yes"),
        ("\ud800 X", "\ud800 x"),
    ],
)
def test_normalized_text_when_given_then_folded_and_collapsed(text: str, expected: str) -> None:
    assert normalized_text(text) == expected


@pytest.mark.parametrize(("one", "other"), [("no", "no!"), ("a b", "b a"), ("résumé", "resume")])
def test_normalized_text_when_the_texts_differ_in_more_than_form_then_different(
    one: str, other: str
) -> None:
    assert normalized_text(one) != normalized_text(other)


def test_normalized_text_when_marks_are_piled_up_then_equal_texts_stay_equal() -> None:
    pile = "a" + "\u0323\u0301" * 100_000
    assert normalized_text(pile) == normalized_text("  " + pile.upper() + "\n")
