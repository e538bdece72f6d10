"""Finding the names of nodes in the text of a query.

A name occurs when its words occur in the text in a row, whole and in order, in any case. Where
writing has no spaces between words (Han, Kana, Thai, …) every character counts as a word. Of
overlapping names one that lies inside a longer one is dropped: "New York City" hides "New York".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

# Shorter names ("it", "a", "7") occur by accident. The minimum made no difference on MuSiQue between
# 1 and 5 characters (nDCG@10 .669 each), because such names are linked to much and weigh little.
_MIN_CHARACTERS = 3
_MIN_UNSPACED = 2
_MAX_WORDS = 16

_ASCII_WORDS = re.compile(r"[a-z0-9_]+")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)


def name_words(text: str) -> list[str]:
    """The words a name or query is compared by: NFKC, case folded; letters, marks, digits and _.

    Example:
        >>> name_words("Ｍarie CURIE's 東京")
        ['marie', 'curie', 's', '東', '京']
    """
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    if text.isascii():
        return _ASCII_WORDS.findall(text)
    words: list[str] = []
    joined = False  # whether the next character continues the last word
    for char in text:
        kind = unicodedata.category(char)[0]
        if kind == "M" and words and joined:
            words[-1] += char
        elif _UNSPACED.match(char) and kind in "LN":
            words.append(char)
            joined = True
        elif kind in "LNM" or char == "_":
            if joined and not _UNSPACED.match(words[-1]):
                words[-1] += char
            else:
                words.append(char)
            joined = True
        else:
            joined = False
    return words


class NameIndex:
    """Words in a row → the nodes so called, brought up to date when asked."""

    def __init__(self) -> None:
        self._nodes: dict[str, list[int]] = {}
        self._lengths: dict[str, set[int]] = {}  # first word → lengths of the names it begins
        self._done = 0

    def matches(
        self,
        text: str,
        names: Sequence[str],
        usable: Callable[[NDArray[np.int64]], NDArray[np.bool_]],
    ) -> NDArray[np.int64]:
        """Nodes whose name occurs in the text, distinct, ascending.

        Args:
            text: The query; may be blank.
            names: The name of every node, by number.
            usable: Tells which nodes count. It is asked *before* shorter names are dropped, so that
                a longer name the query cannot see never hides a shorter one.
        """
        self._refresh(names)
        words = name_words(text)
        found: list[tuple[int, int, int]] = []  # first word, behind the last, node
        for start, word in enumerate(words):
            for length in self._lengths.get(word, ()):
                key = " ".join(words[start : start + length])
                if start + length <= len(words):
                    found += [(start, start + length, node) for node in self._nodes.get(key, ())]
        if not found:
            return np.empty(0, dtype=np.int64)
        nodes = np.array([node for _, _, node in found], dtype=np.int64)
        spans = [found[place] for place in np.flatnonzero(usable(nodes)).tolist()]
        distinct = sorted({(start, -stop) for start, stop, _ in spans})
        outer, reach = set(), 0
        for start, minus_stop in distinct:  # widest first at each start
            if -minus_stop > reach:
                outer.add((start, -minus_stop))
                reach = -minus_stop
        kept = {node for start, stop, node in spans if (start, stop) in outer}
        return np.array(sorted(kept), dtype=np.int64)

    def _refresh(self, names: Sequence[str]) -> None:
        for node in range(self._done, len(names)):
            words = name_words(names[node])
            characters = sum(map(len, words))
            least = _MIN_UNSPACED if any(map(_UNSPACED.match, words)) else _MIN_CHARACTERS
            if least <= characters and len(words) <= _MAX_WORDS:
                self._nodes.setdefault(" ".join(words), []).append(node)
                self._lengths.setdefault(words[0], set()).add(len(words))
        self._done = len(names)
