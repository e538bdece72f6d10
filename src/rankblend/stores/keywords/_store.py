"""The keyword store: BM25 and word coverage over scoped memories."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError, StoreClosedError
from rankblend.forks import guard
from rankblend.kernels.select import leading
from rankblend.stores._protocol import Observation, StoreQuery
from rankblend.stores._record import Key, Record
from rankblend.stores._rows import ScopedRows, latest
from rankblend.stores._scopes import RowBlocks
from rankblend.stores.keywords._analysis import Analysis, Tokenizer
from rankblend.stores.keywords._cache import pack, unpack
from rankblend.stores.keywords._corpus import Corpora
from rankblend.stores.keywords._index import Entries, TokenIndex, select
from rankblend.stores.keywords._question import Question, read_question

# Tokens that may wait outside the postings: reading them costs each query some .2 ms at most.
_PENDING = 32_768
# From this share of matching rows on, a sum for each row between them is quicker than sorting them.
_DENSE = 16
_GREATEST_K1 = 1e6


class KeywordStore:
    """Says how well the words of a query match each memory.

    Evidence: ``bm25`` (`rankblend.kernels.bm25`; stems, without stop words; 0.0 for a memory that
    shares no term) and ``coverage`` (the share of the query's distinct raw tokens that the memory
    holds: equal to `rankblend.relevance.cue_overlap`; 1.0 for a query without tokens).

    Document frequencies and the mean length are taken over ``query.statistics``: by default every
    memory below the query's first scope levels, so that nothing another tenant writes moves a
    score; a query with several roots takes their union.

    One instance may be used by several threads.

    Args:
        language: Names a Snowball stemmer and stop words (`rankblend.stores.keywords._analysis`);
            None: neither, for mixed languages.
        tokenizer: text → raw tokens; None: `rankblend.kernels.text.tokens`.
        k1: In [0, 1e6]: how slowly repeats of a term saturate.
        b: In [0, 1]: how much long memories are held back.
        name: See `rankblend.stores.Store`.

    Raises:
        InvalidArgumentError: k1 or b out of range.
        UnknownNameError: Neither a stemmer nor a list of stop words for that language.

    Example:
        >>> from rankblend.relevance import Scope
        >>> scope = Scope.parse("user:7")
        >>> store = KeywordStore()
        >>> store.add([Record(Key(scope, "m1"), "Ada prefers green tea")])
        >>> store.observe(StoreQuery("what tea?", [scope]), ["m1"]).columns["coverage"].tolist()
        [0.5]
    """

    emits: tuple[str, ...] = ("bm25", "coverage")
    immediate: ClassVar[bool] = True

    def __init__(
        self,
        *,
        language: str | None = "english",
        tokenizer: Tokenizer | None = None,
        k1: float = 1.2,
        b: float = 0.75,
        name: str = "keywords",
    ) -> None:
        problems = []
        if not (math.isfinite(k1) and 0 <= k1 <= _GREATEST_K1):
            problems.append(f"k1: expected a number in [0, {_GREATEST_K1:g}], got {k1!r}")
        if not (math.isfinite(b) and 0 <= b <= 1):
            problems.append(f"b: expected a number in [0, 1], got {b!r}")
        if problems:
            raise InvalidArgumentError(problems)
        self.name = name
        self._settings: dict[str, Any] = {
            "language": language, "tokenizer": tokenizer, "k1": k1, "b": b, "name": name,
        }  # fmt: skip
        self._k1 = float(k1)
        self._b = float(b)
        self._analysis = Analysis(language, tokenizer)
        self._lock = threading.RLock()
        guard(self, "_lock")
        self._closed = False
        # What the last query was proposed from: every row that scores above 0, ascending, and its
        # score. What is proposed is observed next.
        self._scored: tuple[StoreQuery, NDArray[np.int64], NDArray[np.float64]] | None = None
        self._start(ScopedRows(), TokenIndex(self._analysis))

    def fresh(self) -> KeywordStore:
        """An empty store with the same settings."""
        return KeywordStore(**self._settings)

    def __len__(self) -> int:
        """How many memories it holds."""
        with self._open():
            return len(self._rows)

    # -- writing ----------------------------------------------------------------------------------

    def add(self, records: Sequence[Record]) -> None:
        """Add memories, replacing those with the same key; of one key twice, the last counts.

        All or nothing: a tokenizer that raises leaves the store as it was.
        """
        with self._open():
            chosen = [records[at] for at in latest(records, ordered=not self._rows.size)]
            keys = [record.key for record in chosen]
            encoded = self._index.encode([record.text for record in chosen])
            if self._rows.size:
                self._rows.remove(keys)
            self._rows.add(keys, [record.serial for record in chosen])
            self._index.append(encoded)
            self._changed()
            # Many at once are entered now, few when the next question comes, so that neither a
            # long load nor a question after it does the same work over and over.
            if self._index.pending > max(_PENDING, len(self._index.postings) // 2):
                self._settle()

    def remove(self, keys: Sequence[Key]) -> None:
        """Drop memories from every answer at once; unknown keys are ignored.

        Their words leave the index when it is next compacted, and are never in a `snapshot`.
        """
        with self._open():
            self._rows.remove(keys)
            self._changed()

    def close(self) -> None:
        """Let go of everything; closing twice is harmless."""
        with self._lock:
            self._closed = True
            self._start(ScopedRows(), TokenIndex(self._analysis))

    # -- asking -----------------------------------------------------------------------------------

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> list[str]:
        """The memories with the highest ``bm25`` above 0, ties by id; see `Store.propose`.

        Raises:
            InvalidArgumentError: ``limit`` < 0.
            StoreClosedError: Used after `close`.
        """
        if limit < 0:
            raise InvalidArgumentError(f"limit: expected ≥ 0, got {limit!r}")
        with self._open():
            self._settle()
            question = self._question(query)
            if not limit or not len(question.stems):
                return []
            blocks = self._rows.blocks(query, level)
            rows, scores = self._matches(question, blocks)
            # Not where a row in sight was left out: serials may name one behind a nearer one.
            if level is None and not len(blocks.excluded) and not len(blocks.tail):
                self._scored = query, rows, scores
            return self._rows.named(leading(rows, [scores], limit, self._rows.ids))

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        """``bm25`` and ``coverage`` of each id; see `Store.observe`.

        Edge cases: a query that is blank or all stop words has no ``bm25`` (reason NOT_APPLICABLE);
        a memory that shares no term has 0.0.

        Raises:
            StoreClosedError: Used after `close`.
        """
        with self._open():
            self._settle()
            question = self._question(query)
            located = self._rows.locate(query, ids)
            known = located >= 0
            rows = located if known.all() else located[known]
            entries = self._index.read(rows)
            columns = {
                "bm25": self._bm25(query, question, rows, entries),
                "coverage": self._coverage(question, len(rows), entries),
            }
        return Observation.of_known(columns, known)

    def propose_many(
        self, queries: Sequence[StoreQuery], limit: int, *, level: int | None = None
    ) -> list[Sequence[str]]:
        """`propose` for each query."""
        return [self.propose(query, limit, level=level) for query in queries]

    def observe_many(
        self, queries: Sequence[StoreQuery], ids: Sequence[Sequence[str]]
    ) -> Iterator[Observation]:
        """`observe` for each query.

        Raises:
            ValueError: Not one list of ids for each query.
        """
        for query, asked in zip(queries, ids, strict=True):
            yield self.observe(query, asked)

    # -- keeping ----------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """The whole index as bytes, for a cache that spares reading all texts again.

        Holds scopes, ids, serials and the words of the memories held now, and nothing of others:
        the index is compacted first.
        """
        with self._open():
            self._compact()
            return pack(self._rows, self._index)

    def restore(self, data: bytes, *, rows: ScopedRows | None = None) -> bool:
        """Replace everything by a snapshot.

        Args:
            data: From `snapshot`.
            rows: Exactly the memories that must be in it, sorted, none removed; they belong to the
                store from now on. Give it when the truth lies elsewhere: a snapshot of other
                memories is refused, and the ids are not held once more.

        Returns:
            False, with nothing changed, when the data is malformed or truncated, comes from another
            format, language, stemmer, list of stop words or tokenizer, or holds other memories.
        """
        with self._open():
            restored = unpack(data, self._analysis, rows)
            if restored is None:
                return False
            self._start(*restored)
            return True

    # -- inside -----------------------------------------------------------------------------------

    def _open(self) -> threading.RLock:
        if self._closed:
            raise StoreClosedError(f"store {self.name!r} was closed")
        return self._lock

    def _start(self, rows: ScopedRows, index: TokenIndex) -> None:
        self._rows = rows
        self._index = index
        self._renumbered()

    def _renumbered(self) -> None:
        self._corpora = Corpora(self._rows, self._index)
        self._changed()

    def _changed(self) -> None:
        """What was counted before holds no more."""
        self._corpora.forget()
        self._questions: WeakKeyDictionary[StoreQuery, Question] = WeakKeyDictionary()
        self._scored = None

    def _settle(self) -> None:
        if self._rows.needs_compaction:
            self._compact()
        elif self._index.pending > _PENDING or self._index.postings.rows < self._rows.sorted_rows:
            self._index.merge()
            self._changed()

    def _compact(self) -> None:
        self._index.reorder(self._rows.compact())
        self._renumbered()

    def _question(self, query: StoreQuery) -> Question:
        known = self._questions.get(query)
        if known is None:
            known = self._questions[query] = read_question(
                query.text, self._index, self._corpora.find(query), k1=self._k1, b=self._b
            )
        return known

    def _bm25(
        self, query: StoreQuery, question: Question, rows: NDArray[np.int64], entries: Entries
    ) -> NDArray[np.float64]:
        if not question.has_terms:
            return np.full(len(rows), np.nan)
        if self._scored is None or self._scored[0] is not query:
            found = self._index.scan(entries, question.stems)
            lengths = self._index.forward.lengths[rows[found.rows]]
            return question.scores(found, lengths, found.rows, len(rows))
        # What was proposed was chosen from the scores of everything this query sees.
        _, matched, scores = self._scored
        if not len(matched):
            return np.zeros(len(rows))
        places = matched.searchsorted(rows)
        return np.where(
            matched.take(places, mode="clip") == rows, scores.take(places, mode="clip"), 0.0
        )

    def _coverage(self, question: Question, count: int, entries: Entries) -> NDArray[np.float64]:
        if not question.word_count:
            return np.ones(count)
        return self._index.held(entries, question.tokens, count) / question.word_count

    def _matches(
        self, question: Question, blocks: RowBlocks
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The rows that score above 0, ascending, and their scores."""
        selection = select(
            blocks, sorted_rows=self._rows.sorted_rows, covered=self._index.postings.rows
        )
        found = self._index.occurrences(selection, question.stems)
        lengths = self._index.forward.lengths[found.rows]
        if not len(found):
            return found.rows.astype(np.int64), np.empty(0)
        first, last = int(found.rows.min()), int(found.rows.max())
        if len(found) * _DENSE > last - first:
            scores = question.scores(found, lengths, found.rows - first, last - first + 1)
            places = np.flatnonzero(scores)
            return places + first, scores[places]
        rows, slots = np.unique(found.rows, return_inverse=True)
        scores = question.scores(found, lengths, slots, len(rows))
        return rows[scores > 0], scores[scores > 0]
