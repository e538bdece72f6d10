"""The token index: vocabulary, forward index and postings of the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.stores._arrays import Growing
from rankblend.stores._scopes import RowBlocks
from rankblend.stores.keywords._analysis import Analysis

# Slicing the postings of unsorted rows reads all of them; below a share of them it is quicker to
# look into the rows wanted.
_SLICING_PAYS = 8


@frozen(eq=False)
class Selection:
    """A set of rows.

    Args:
        ranges: Disjoint ``(start, stop)``, ascending: rows whose postings are read.
        excluded: int64: rows inside the ranges that do not belong.
        scanned: int64, ascending: rows outside the ranges, whose tokens are read one by one.
    """

    ranges: tuple[tuple[int, int], ...]
    excluded: NDArray[np.int64]
    scanned: NDArray[np.int64]

    def left_out(self, rows: int) -> NDArray[np.bool_] | None:
        """bool, shape (rows,): True for excluded rows; None when there are none."""
        if not len(self.excluded):
            return None
        mask = np.zeros(rows, dtype=np.bool_)
        mask[self.excluded] = True
        return mask


def select(blocks: RowBlocks, *, sorted_rows: int, covered: int) -> Selection:
    """Say with postings what `ScopedRows` says with ranges and a tail.

    ::

        row   0 ........ sorted_rows ........ covered ........ size
              in the postings,       in the postings,  not yet in
              sorted by scope        in any order      the postings

    Args:
        blocks: The rows, as `ScopedRows` has them.
        sorted_rows: Rows sorted by scope, ≤ ``covered``.
        covered: Rows the postings cover.
    """
    tail = blocks.tail
    middle = tail[: np.searchsorted(tail, covered)]
    width = covered - sorted_rows
    if len(middle) * _SLICING_PAYS <= width:
        return Selection(blocks.ranges, blocks.excluded, tail)
    others = np.ones(width, dtype=np.bool_)
    others[middle - sorted_rows] = False
    return Selection(
        (*blocks.ranges, (sorted_rows, covered)),
        np.concatenate([blocks.excluded, np.flatnonzero(others) + sorted_rows]),
        tail[len(middle) :],
    )


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
        self._stems = Growing(np.empty(0, dtype=np.int32))

    def __len__(self) -> int:
        return len(self.words)

    @property
    def stems(self) -> NDArray[np.int32]:
        """int32, shape (words,): the number of each word's stem; negative where it has none."""
        return self._stems.values

    def encode(self, tokens: Sequence[str]) -> NDArray[np.int32]:
        """int32, shape (n,): the number of each raw token; unknown ones are added and stemmed."""
        numbers = np.fromiter(
            map(self._numbers.__getitem__, tokens), dtype=np.int32, count=len(tokens)
        )
        self._grow()
        unread = np.unique(numbers[self.stems[numbers] == _UNREAD])
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
        self._stems = Growing(stems.astype(np.int32, copy=False))

    def _read(self, unread: NDArray[np.int32]) -> None:
        stems = self._analysis.stems([self.words[number] for number in unread.tolist()])
        numbers = [NO_STEM if stem is None else self._numbers[stem] for stem in stems]
        self._grow()
        self.stems[unread] = numbers

    def _grow(self) -> None:
        new = len(self._numbers) - len(self.words)
        if not new:
            return
        newest = list(islice(reversed(self._numbers), new))
        self.words.extend(reversed(newest))
        self._stems.room(new)[...] = _UNREAD


_FORWARD_STEP = 8192  # rows moved at once


class ForwardIndex:
    """What each row holds; answers for given rows, and is what the postings are made from.

    Attributes:
        lengths: int32, shape (rows,): what BM25 calls the length: terms, repeats counted.
    """

    def __init__(self) -> None:
        self._ends = Growing(np.empty(0, dtype=np.int64), widens=True)
        self._tokens = Growing(np.empty(0, dtype=np.int32), widens=True)
        self._counts = Growing(np.empty(0, dtype=np.uint8), widens=True)
        self._lengths = Growing(np.empty(0, dtype=np.int32), widens=True)

    def __len__(self) -> int:
        """Rows, dead ones included."""
        return len(self._ends)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """int64, shape (rows,): distinct tokens of each row."""
        return np.diff(self._ends.values, prepend=np.int64(0))

    @property
    def tokens(self) -> NDArray[np.integer]:
        """int32: the tokens of all rows, row after row, ascending within a row."""
        return self._tokens.values

    @property
    def counts(self) -> NDArray[np.integer]:
        """Unsigned, aligned with ``tokens``: how often the row holds the token, ≥ 1."""
        return self._counts.values

    @property
    def lengths(self) -> NDArray[np.integer]:
        """int32, shape (rows,)."""
        return self._lengths.values

    def append(
        self,
        sizes: NDArray[np.integer],
        tokens: NDArray[np.integer],
        counts: NDArray[np.integer],
        lengths: NDArray[np.integer],
    ) -> None:
        """Add rows at the end; the arguments are like the attributes of the same names."""
        self._ends.extend(len(self._tokens) + np.cumsum(sizes, dtype=np.int64))
        self._tokens.extend(tokens)
        self._counts.extend(narrowed(counts))
        self._lengths.extend(lengths)

    def start(self, row: int) -> int:
        """Where the tokens of a row begin; for ``row == len(self)`` where they all end."""
        return int(self._ends.values[row - 1]) if row else 0

    def row_at(self, token: int) -> int:
        """How many rows end at or before a place among the tokens."""
        return int(np.searchsorted(self._ends.values, token, side="right"))

    def span(self, first: int, stop: int) -> tuple[NDArray[np.int64], slice]:
        """The rows from ``first`` up to ``stop``: (row of each entry, where the entries are)."""
        rows = np.arange(first, stop, dtype=np.int64)
        return np.repeat(rows, self.sizes[first:stop]), slice(self.start(first), self.start(stop))

    def entries(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of rows in any order: (position in ``rows`` of each entry, where the entry is)."""
        ends = self._ends.values
        starts = np.where(rows > 0, ends[rows - 1], 0).astype(np.int64, copy=False)
        return ragged(starts, np.asarray(ends[rows] - starts, dtype=np.int64))

    def reordered(self, order: NDArray[np.int64], renamed: NDArray[np.int32]) -> ForwardIndex:
        """Another index whose row i is row ``order[i]``.

        Args:
            order: int64: rows of this index.
            renamed: Old number of a token → new number, in the same order.
        """
        tokens, counts = [self.tokens[:0]], [self.counts[:0]]
        # In steps, so that what is needed only on the way stays small beside the index itself.
        for first in range(0, len(order), _FORWARD_STEP):
            _, places = self.entries(order[first : first + _FORWARD_STEP])
            tokens.append(renamed[self.tokens[places]])
            counts.append(self.counts[places])
        index = ForwardIndex()
        index.append(
            self.sizes[order], np.concatenate(tokens), np.concatenate(counts), self.lengths[order]
        )
        return index


def ragged(
    starts: NDArray[np.int64], sizes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The places ``starts[i] … starts[i] + sizes[i] − 1`` for each i: (i of each place, place)."""
    slots = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    before = np.cumsum(sizes) - sizes
    return slots, np.arange(len(slots), dtype=np.int64) + (starts - before)[slots]


def narrowed(counts: NDArray[np.integer]) -> NDArray[np.integer]:
    """The same counts in the narrowest unsigned dtype; nearly every word occurs < 256 times."""
    most = int(counts.max()) if len(counts) else 0
    return counts.astype(np.min_scalar_type(most), copy=False)


@frozen(eq=False)
class Occurrences:
    """Where terms of a query occur. Within one row they are in the order of the query.

    Args:
        rows: int, shape (m,).
        terms: int64, shape (m,): which of the query's terms.
        counts: int, shape (m,): how often, ≥ 1.
    """

    rows: NDArray[np.integer]
    terms: NDArray[np.int64]
    counts: NDArray[np.integer]

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, kept: NDArray[np.bool_]) -> Occurrences:
        """Only some of them."""
        return Occurrences(self.rows[kept], self.terms[kept], self.counts[kept])


class Postings:
    """Rows by stem, for all rows below ``rows``; later ones are found in the forward index.

    Rows are sorted by scope, so what a query sees of a stem's rows are slices found by binary
    search: 8 terms in 0.1 % of 100,000 rows take as long as in a store of 100.

    Attributes:
        rows: How many rows it covers.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._ends = np.empty(0, dtype=np.int64)
        self._rows: NDArray[np.int32] = np.empty(0, dtype=np.int32)
        self._counts: NDArray[np.integer] = np.empty(0, dtype=np.uint8)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.integer]]:
        """How many rows each stem has, the rows stem after stem, and the counts."""
        return np.diff(self._ends, prepend=np.int64(0)), self._rows, self._counts

    def load(
        self,
        rows: int,
        sizes: NDArray[np.integer],
        held: NDArray[np.integer],
        counts: NDArray[np.integer],
    ) -> None:
        """Replace everything; inverse of ``rows`` and ``arrays``.

        Raises:
            ValueError: The arrays do not belong together.
        """
        ends = np.cumsum(sizes, dtype=np.int64)
        total = int(ends[-1]) if len(ends) else 0
        if total != len(held) or len(held) != len(counts) or (sizes < 0).any():
            raise ValueError("postings differ in number")
        if len(held) and not (held.min() >= 0 and held.max() < rows):
            raise ValueError("postings name rows that are not there")
        self.rows = rows
        self._ends = ends
        self._rows = held.astype(np.int32, copy=False)
        self._counts = counts

    def merge(
        self,
        rows: int,
        stems: NDArray[np.integer],
        held: NDArray[np.int64],
        counts: NDArray[np.integer],
        *,
        words: int,
    ) -> None:
        """Cover the rows up to ``rows`` too.

        Args:
            rows: How many rows are covered afterwards.
            stems: A stem of each entry, ≥ 0; one row may name it several times (as "run" and as
                "running"), and the counts are summed.
            held: int64, shape (m,): the row of each entry, in [self.rows, rows).
            counts: Shape (m,), ≥ 1.
            words: Size of the vocabulary.
        """
        # Repeating an entry by its count makes counting and sorting one step, and sorting plain
        # int64 is several times faster than sorting an index of it.
        keys = np.repeat((stems.astype(np.int64) << 32) | held, counts)
        keys, sums = np.unique(keys, return_counts=True)
        terms, held = keys >> 32, keys & 0xFFFFFFFF
        ends = np.zeros(words, dtype=np.int64)
        ends[: len(self._ends)] = self._ends
        ends[len(self._ends) :] = len(self._rows)
        if len(self._rows):
            # Later rows have greater numbers: they belong at the end of each stem's rows.
            self._rows = np.insert(self._rows, ends[terms], held.astype(np.int32))
            dtype = np.promote_types(self._counts.dtype, narrowed(sums).dtype)
            self._counts = np.insert(self._counts.astype(dtype, copy=False), ends[terms], sums)
        else:
            self._rows, self._counts = held.astype(np.int32), narrowed(sums)
        self._ends = ends + np.cumsum(np.bincount(terms, minlength=words))
        self.rows = rows

    def slices(
        self, stems: NDArray[np.int64], ranges: Sequence[tuple[int, int]]
    ) -> NDArray[np.int64]:
        """Where each stem's rows inside some row ranges are.

        Returns:
            int64, shape (stems, ranges, 2): start and stop in the postings.
        """
        cuts = np.zeros((len(stems), 2 * len(ranges)), dtype=np.int64)
        if ranges == ((0, self.rows),):  # all there are: nothing to search
            held = stems < len(self._ends)
            known = stems[held]
            cuts[held, 0] = np.where(known > 0, self._ends[known - 1], 0)
            cuts[held, 1] = self._ends[known]
            return cuts.reshape(len(stems), 1, 2)
        # searchsorted copies the postings when the dtypes differ
        edges = np.array(ranges, dtype=self._rows.dtype).ravel()
        for at, stem in enumerate(stems.tolist()):
            if stem < len(self._ends):
                start = int(self._ends[stem - 1]) if stem else 0
                cuts[at] = self._rows[start : self._ends[stem]].searchsorted(edges)
                cuts[at] += start
        return cuts.reshape(len(stems), len(ranges), 2)

    def read(self, slices: NDArray[np.int64]) -> Occurrences:
        """What `slices` found, stem after stem."""
        spans = [(start, stop) for start, stop in slices.reshape(-1, 2).tolist() if start < stop]
        sizes = (slices[:, :, 1] - slices[:, :, 0]).sum(axis=1)
        nothing = (0, 0)
        return Occurrences(
            np.concatenate([self._rows[start:stop] for start, stop in spans or [nothing]]),
            np.repeat(np.arange(len(slices), dtype=np.int64), sizes),
            np.concatenate([self._counts[start:stop] for start, stop in spans or [nothing]]),
        )


def positions(
    values: NDArray[np.integer], wanted: NDArray[np.int64], *, below: int
) -> NDArray[np.signedinteger]:
    """Where in ``wanted`` each value is; −1 where it is not.

    Args:
        values: int, shape (n,), in [−2, below); negative ones are never found.
        wanted: int64, shape (t,), distinct, in [0, below).
        below: A table this long is used when ``values`` are many.
    """
    if not len(wanted):
        return np.full(len(values), -1, dtype=np.int64)
    if 4 * len(values) > below:
        # narrow, so that it stays in the cache
        table = np.full(below + 2, -1, dtype=np.min_scalar_type(-len(wanted)))
        table[wanted] = np.arange(len(wanted))
        return np.asarray(table[values])  # −1 and −2 read the two last places
    order = np.argsort(wanted)
    ascending = wanted[order]
    found = np.minimum(np.searchsorted(ascending, values), len(wanted) - 1)
    return np.where(ascending[found] == values, order[found], -1)


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
