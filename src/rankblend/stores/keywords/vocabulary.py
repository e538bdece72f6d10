"""Words and their numbers: one numbering for raw tokens and stems."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from rankblend.stores.keywords.analysis import Analysis

__all__ = ["NO_STEM", "Vocabulary"]

NO_STEM = -1  # a raw token that BM25 ignores
_UNREAD = -2  # has a number (as the stem of another), but was never seen as a raw token


class _Numbers(dict[str, int]):
    """Word → number; an unknown word gets the next one."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


class Vocabulary:
    """Numbers for words, and which stem each raw token counts as.

    Raw tokens and stems share one numbering, so that a word that is its own stem is kept once.

    Args:
        analysis: Stems each raw token once, when it is first seen.

    Attributes:
        words: Every word, by number.
    """

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis
        self._numbers = _Numbers()
        self.words: list[str] = []  # by number
        self._stems = np.empty(0, dtype=np.int32)

    def __len__(self) -> int:
        return len(self.words)

    @property
    def stems(self) -> NDArray[np.int32]:
        """int32, shape (words,): the number of each word's stem; negative where it has none."""
        return self._stems[: len(self)]

    def encode(self, tokens: Sequence[str]) -> NDArray[np.int32]:
        """int32, shape (n,): the number of each raw token; unknown ones are added and stemmed."""
        numbers = np.fromiter(
            map(self._numbers.__getitem__, tokens), dtype=np.int32, count=len(tokens)
        )
        self._grow()
        unread = np.unique(numbers[self._stems[numbers] == _UNREAD])
        if len(unread):
            self._read(unread)
        return numbers

    def find(self, words: Sequence[str]) -> NDArray[np.int64]:
        """int64, shape (n,): the number of each word, −1 where unknown; adds nothing."""
        return np.array([self._numbers.get(word, -1) for word in words], dtype=np.int64)

    def keep(self, tokens: NDArray[np.integer]) -> NDArray[np.int32]:
        """Forget every word but these raw tokens and their stems.

        Args:
            tokens: Numbers of raw tokens still in use, in any order, with repeats.

        Returns:
            int32, shape (words before,): old number → new number, −1 for what was forgotten.
        """
        raw = np.zeros(len(self), dtype=np.bool_)
        raw[tokens] = True
        used = raw.copy()
        stems = self.stems[raw]
        used[stems[stems >= 0]] = True
        renumbered = np.full(len(self), -1, dtype=np.int32)
        renumbered[used] = np.arange(np.count_nonzero(used), dtype=np.int32)
        old = np.where(raw, self.stems, _UNREAD)[used]
        self.load(
            [self.words[number] for number in np.flatnonzero(used).tolist()],
            np.where(old >= 0, renumbered[old], old).astype(np.int32),
        )
        return renumbered

    def load(self, words: Sequence[str], stems: NDArray[np.integer]) -> None:
        """Replace everything; inverse of ``words`` and ``stems``.

        Raises:
            ValueError: They do not belong together.
        """
        numbers = _Numbers(zip(words, range(len(words)), strict=True))
        if len(numbers) != len(words) or len(stems) != len(words):
            raise ValueError("a word occurs twice, or words and stems differ in number")
        if len(stems) and not (stems.min() >= _UNREAD and stems.max() < len(words)):
            raise ValueError("a stem is not a word")
        self._numbers = numbers
        self.words = list(words)
        self._stems = stems.astype(np.int32, copy=False)

    def _read(self, unread: NDArray[np.int32]) -> None:
        stems = self._analysis.stems([self.words[number] for number in unread.tolist()])
        numbers = [NO_STEM if stem is None else self._numbers[stem] for stem in stems]
        self._grow()
        self._stems[unread] = numbers

    def _grow(self) -> None:
        new = len(self._numbers) - len(self.words)
        if not new:
            return
        newest = list(islice(reversed(self._numbers), new))
        self.words.extend(reversed(newest))
        if len(self._numbers) > len(self._stems):
            size = max(len(self._numbers), len(self._stems) * 5 // 4)
            grown = np.full(size, _UNREAD, dtype=np.int32)
            grown[: len(self._stems)] = self._stems
            self._stems = grown
