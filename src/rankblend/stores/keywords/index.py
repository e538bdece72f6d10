"""The token index: vocabulary, forward index and postings of the same rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.stores.keywords.analysis import Analysis
from rankblend.stores.keywords.forward import ForwardIndex, narrowed
from rankblend.stores.keywords.postings import Occurrences, Postings, positions
from rankblend.stores.keywords.selection import Selection
from rankblend.stores.keywords.vocabulary import Vocabulary

__all__ = ["Encoded", "Entries", "TokenIndex"]

_CHUNK = 1024  # texts read at once; their tokens are short-lived objects
_STEP = 1 << 17  # tokens entered into the postings at once, at least


@frozen(eq=False)
class Encoded:
    """Texts as numbers, ready to become rows; the fields are those of `ForwardIndex`."""

    sizes: NDArray[np.integer]
    tokens: NDArray[np.integer]
    counts: NDArray[np.integer]
    lengths: NDArray[np.integer]


@frozen(eq=False)
class Entries:
    """The distinct tokens of some rows, row after row.

    Args:
        slots: int64, shape (m,): position of the row among the rows asked for.
        tokens: int32, shape (m,).
        counts: Unsigned, shape (m,), ≥ 1.
    """

    slots: NDArray[np.int64]
    tokens: NDArray[np.integer]
    counts: NDArray[np.integer]


class TokenIndex:
    """Rows of text, and where words occur in them; knows nothing of scopes.

    A new row enters the forward index at once and the postings with `merge`, many rows at a time;
    until then it is found by reading it.
    """

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.vocabulary = Vocabulary(analysis)
        self.forward = ForwardIndex()
        self.postings = Postings()

    def __len__(self) -> int:
        """Rows, dead ones included."""
        return len(self.forward)

    @property
    def pending(self) -> int:
        """How many tokens of rows are not in the postings yet."""
        return len(self.forward.tokens) - self.forward.start(self.postings.rows)

    # -- writing ----------------------------------------------------------------------------------

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        """Read texts; adds their words to the vocabulary and no row, so a failure changes nothing."""
        return [
            self._encoded(texts[start : start + _CHUNK]) for start in range(0, len(texts), _CHUNK)
        ]

    def append(self, parts: Sequence[Encoded]) -> None:
        """Add rows at the end."""
        if parts:
            self.forward.append(
                np.concatenate([part.sizes for part in parts]),
                np.concatenate([part.tokens for part in parts]),
                np.concatenate([part.counts for part in parts]),
                np.concatenate([part.lengths for part in parts]),
            )

    def merge(self) -> None:
        """Enter all rows into the postings."""
        first = self.postings.rows
        while first < len(self):
            # In growing steps: what sorting needs stays small beside the index itself, and the
            # postings are still copied only a few times.
            step = max(_STEP, len(self.postings) // 4)
            stop = max(self.forward.row_at(self.forward.start(first) + step), first + 1)
            rows, places = self.forward.span(first, stop)
            stems = self.vocabulary.stems[self.forward.tokens[places]]
            kept = stems >= 0
            self.postings.merge(
                stop,
                stems[kept],
                rows[kept],
                self.forward.counts[places][kept],
                words=len(self.vocabulary),
            )
            first = stop

    def reorder(self, order: NDArray[np.int64]) -> None:
        """Row i becomes what was row ``order[i]``; words that no row holds any more are forgotten."""
        stay = np.zeros(len(self), dtype=np.bool_)
        stay[order] = True
        renamed = self.vocabulary.keep(self.forward.tokens[np.repeat(stay, self.forward.sizes)])
        self.forward = self.forward.reordered(order, renamed)
        self.postings = Postings()
        self.merge()

    # -- reading ----------------------------------------------------------------------------------

    def frequencies(self, selection: Selection, stems: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, shape (t,): how many of the selected rows hold each stem."""
        slices = self.postings.slices(stems, selection.ranges)
        found = np.asarray((slices[:, :, 1] - slices[:, :, 0]).sum(axis=1), dtype=np.int64)
        left_out = selection.left_out(self.postings.rows)
        if left_out is not None:
            occurrences = self.postings.read(slices)
            found -= np.bincount(
                occurrences.terms[left_out[occurrences.rows]], minlength=len(stems)
            )
        if len(selection.scanned):
            found += np.bincount(
                self.scan(self.read(selection.scanned), stems).terms, minlength=len(stems)
            )
        return found

    def occurrences(self, selection: Selection, stems: NDArray[np.int64]) -> Occurrences:
        """Where the selected rows hold the stems; `Occurrences.rows` are rows."""
        found = self.postings.read(self.postings.slices(stems, selection.ranges))
        left_out = selection.left_out(self.postings.rows)
        if left_out is not None:
            found = found.where(~left_out[found.rows])
        if not len(selection.scanned):
            return found
        late = self.scan(self.read(selection.scanned), stems)
        return Occurrences(
            np.concatenate([found.rows, selection.scanned[late.rows]]),
            np.concatenate([found.terms, late.terms]),
            np.concatenate([found.counts, late.counts]),
        )

    def read(self, rows: NDArray[np.int64]) -> Entries:
        """What given rows hold."""
        slots, places = self.forward.entries(rows)
        return Entries(slots, self.forward.tokens[places], self.forward.counts[places])

    def scan(self, entries: Entries, stems: NDArray[np.int64]) -> Occurrences:
        """Where stems occur among entries; `Occurrences.rows` are their slots."""
        terms = positions(self.vocabulary.stems[entries.tokens], stems, below=len(self.vocabulary))
        hit = np.flatnonzero(terms >= 0)
        each = max(len(stems), 1)
        # "run" and "running" are two tokens and one stem: their counts are summed.
        keys, counts = np.unique(
            np.repeat(entries.slots[hit] * each + terms[hit], entries.counts[hit]),
            return_counts=True,
        )
        return Occurrences(keys // each, keys % each, counts)

    def held(self, entries: Entries, tokens: NDArray[np.int64], slots: int) -> NDArray[np.int64]:
        """int64, shape (slots,): how many of some distinct raw tokens each slot holds."""
        found = positions(entries.tokens, tokens, below=len(self.vocabulary))
        return np.bincount(entries.slots[found >= 0], minlength=slots)

    def _encoded(self, texts: Sequence[str]) -> Encoded:
        words: list[str] = []
        ends = []
        for text in texts:
            words += self.analysis.tokens(text)
            ends.append(len(words))
        tokens = self.vocabulary.encode(words)
        rows = np.repeat(np.arange(len(texts), dtype=np.int64), np.diff(ends, prepend=0))
        keys, counts = np.unique((rows << 32) | tokens, return_counts=True)
        rows, tokens = keys >> 32, (keys & 0xFFFFFFFF).astype(np.int32)
        counted = self.vocabulary.stems[tokens] >= 0
        lengths = np.bincount(rows[counted], weights=counts[counted], minlength=len(texts))
        return Encoded(
            np.bincount(rows, minlength=len(texts)),
            tokens,
            narrowed(counts),
            lengths.astype(np.int32),
        )
