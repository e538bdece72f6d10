"""Raw tokens of a text in any script, and the normalized text by which duplicates are known.

Both fold a text the same way: NFKC, casefold, NFKC. Any Unicode is accepted, lone surrogates too.
"""

from __future__ import annotations

import re
import unicodedata

from rankblend.errors import InvalidArgumentError

__all__ = ["is_blank", "normalized_text", "tokens"]

_ASCII_RUN = re.compile(r"[a-z0-9_]+")
_WORD_CHARACTER = re.compile(r"\w")

# Scripts written without spaces between words, by block, what NFKC leaves of them: Han, Kana
# (with the sound marks and the length mark), Hangul, Thai, Lao, Myanmar, Khmer. Punctuation inside
# the blocks does not matter, it never reaches this pattern.
_UNSPACED = re.compile(
    "(["
    "\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
    "\u3041-\u30ff\u31f0-\u31ff\U0001aff0-\U0001b16f"
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff"
    "\u0e00-\u0eff"
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f\U000116d0-\U000116ff"
    "\u1780-\u17ff"
    "]+)"
)

# 64 characters in a row that are neither words nor spaces, such as combining marks piled up.
_PILE = re.compile(r"[^\w\s]{64}")
_MOST_CACHED = 1 << 16


class _Separated(dict[int, int | str | None]):
    """Translation table, filled on demand: what ends a word becomes a space."""

    def __missing__(self, code: int) -> int | str | None:
        kept: int | str | None = " "
        if 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF:
            kept = None  # a variation selector chooses a glyph, not a word
        elif unicodedata.category(chr(code))[0] in "LMN" or code == ord("_"):
            kept = code
        if len(self) < _MOST_CACHED:
            self[code] = kept
        return kept


_SEPARATED = _Separated()


def tokens(text: str) -> list[str]:
    """The raw tokens of a text in order, repeats included.

    After folding (NFKC, casefold, NFKC) a token is a run of letters, marks, numerals and ``_`` with
    at least one that is no mark; variation selectors are left out first. Inside such a run, what is
    Han, Kana, Hangul, Thai, Lao, Khmer or Myanmar becomes overlapping pairs of characters; one
    character alone stays. Everything else separates: punctuation, symbols, emoji, joiners.

    Args:
        text: Any text; empty gives no tokens.

    Example:
        >>> tokens("Straße_1, naïve: 東京都 हिन्दी")
        ['strasse_1', 'naïve', '東京', '京都', 'हिन्दी']
    """
    _check(text)
    if text.isascii():  # six times as fast, and the same
        return _ASCII_RUN.findall(text.lower())
    words = _folded(text).translate(_SEPARATED).split()
    found: list[str] = []
    for word in words:
        # Splitting by a group alternates between what is outside and what matched.
        for place, piece in enumerate(_UNSPACED.split(word)):
            if _WORD_CHARACTER.search(piece) is None:
                continue
            if place % 2 == 0 or len(piece) == 1:
                found.append(piece)
            else:
                found += [piece[at : at + 2] for at in range(len(piece) - 1)]
    return found


def normalized_text(text: str) -> str:
    r"""The form in which equal texts are duplicates: folded, spaces collapsed and stripped.

    NFKC, casefold, NFKC; then every run of white space (as ``str.split`` knows it) becomes one
    space, and none is left at the ends. Punctuation, marks and order count.

    Example:
        >>> normalized_text("  The  ﬁrst\n TIME. ")
        'the first time.'
    """
    _check(text)
    return " ".join((text.lower() if text.isascii() else _folded(text)).split())


def _folded(text: str) -> str:
    return _nfkc(_nfkc(text).casefold())


def _nfkc(text: str) -> str:
    """NFKC, piecewise where marks are piled up.

    Putting marks in order takes quadratic time: 11 s for 120,000 marks on one letter.
    """
    pieces, start = [], 0
    for pile in _PILE.finditer(text):
        pieces.append(text[start : pile.end()])
        start = pile.end()
    pieces.append(text[start:])
    return "".join(unicodedata.normalize("NFKC", piece) for piece in pieces)


def _check(text: str) -> None:
    if not isinstance(text, str):
        raise InvalidArgumentError(f"text: expected text, got {type(text).__name__}")


def is_blank(text: str) -> bool:
    """Whether there is nothing to read: only space, control, format or private characters.

    A lone zero-width space (U+200B) is blank here although ``str.strip`` keeps it: models answer
    it with noise.
    """
    return not text.strip() or all(unicodedata.category(char)[0] in "CZ" for char in text)
