"""The raw engine calls one recall makes, by hand, on the data of the recall's own stores.

What a program would call that knew everything in advance: which rows are visible, the words of the
question and what each is worth, the seeds, the pool, what is shown at the end. Nothing is checked,
merged, scored or explained.
"""

from __future__ import annotations

import json
from functools import partial

import faiss
import numpy as np
from attrs import evolve

from rankblend.kernels.select import kth_greatest

__all__ = ["RawCalls"]

_GATHERED = 2048  # rows up to which an exact scan by numpy is faster than FAISS
_TEXTS = "SELECT id, text, links, metadata FROM memories WHERE serial IN (SELECT value FROM json_each(?))"


class RawCalls:
    """One question at one scope.

    Args:
        memory: Its stores are read.
        question: Text.
        vector: float32, shape (d,), unit length.
        scope: Whose memories.
        top: How many are shown.
        size: How many each store proposes.
    """

    def __init__(self, memory, question, vector, scope, *, top, size):
        engine = memory._engine
        self._graph = engine.stores["graph"]
        self._asked = {}
        for name in ("keywords", "graph"):
            self._listen(engine.stores[name], name)
        recall = memory.recall(question, scope=scope, top=top)
        for name in ("keywords", "graph"):
            del engine.stores[name].propose
        self._size, self._vector = size, vector
        self._prepare_vectors(engine.stores["vectors"], recall)
        self._prepare_keywords(engine.stores["keywords"], recall)
        self._prepare_columns(memory, recall)

    def __call__(self):
        """All of them, one after the other."""
        return [call() for call in self.parts.values()]

    @property
    def parts(self):
        """What is called, by name."""
        return {
            "vectors: search": self.search,
            "vectors: cosines of the pool": self.cosines,
            "keywords: BM25": self.bm25,
            "graph: walk": self.walk,
            "catalog: salience": self.salience,
            "activity: ages": self.ages,
            "SQLite: texts": self.texts,
        }

    def _listen(self, store, name):
        """Keep the query a store is asked with: what it sees, and its seeds."""
        propose = store.propose

        def listening(query, limit, *, level=None):
            self._asked[name] = query
            return propose(query, limit, level=level)

        store.propose = listening

    # -- vectors ----------------------------------------------------------------------------------

    def _prepare_vectors(self, store, recall):
        ((self._start, self._stop),) = store._rows.blocks(self._asked["keywords"]).ranges
        self._matrix = store._arena.matrix
        self._pool = store._rows.locate(self._asked["keywords"], recall.ranking.candidates.ids)

    def search(self):
        """Exact search among the visible rows."""
        if self._stop - self._start <= _GATHERED:
            scores = self._matrix[self._start : self._stop] @ self._vector
            return np.argsort(-scores)[: self._size]
        faiss.omp_set_num_threads(1)
        visible = self._matrix[self._start : self._stop]
        return faiss.knn(self._vector[None], visible, self._size, faiss.METRIC_INNER_PRODUCT)

    def cosines(self):
        """Inner products with the rows of the pool."""
        return self._matrix[self._pool] @ self._vector

    # -- keywords ---------------------------------------------------------------------------------

    def _prepare_keywords(self, store, recall):
        asked = store._question(self._asked["keywords"])
        ends, self._rows, self._counts = store._index.postings.arrays
        ends = np.cumsum(ends)
        self._terms = [
            (int(ends[stem - 1]) if stem else 0, int(ends[stem]), weight)
            for stem, weight in zip(asked.stems.tolist(), asked.weights.tolist(), strict=True)
        ]
        lengths = np.asarray(store._index.forward.lengths, dtype=np.float64)
        ratio = 1.0 - asked.b + asked.b * lengths / asked.mean_length
        self._norms = asked.k1 * ratio
        self._words = store._rows.locate(self._asked["keywords"], recall.ranking.candidates.ids)
        self._words -= self._start

    def bm25(self):
        """Slices of the postings, scored, summed, the best of them, and those of the pool."""
        rows, amounts = [], []
        for first, last, weight in self._terms:
            held = self._rows[first:last]
            low, high = held.searchsorted(np.array([self._start, self._stop], np.int32))
            held, counts = held[low:high], self._counts[first + low : first + high]
            rows.append(held)
            amounts.append(weight * counts / (counts + self._norms[held]))
        visible = self._stop - self._start
        rows, amounts = np.concatenate(rows) - self._start, np.concatenate(amounts)
        scores = np.bincount(rows, weights=amounts, minlength=visible)
        found = np.flatnonzero(scores)
        if len(found) > self._size:
            best = np.argpartition(scores[found], -self._size)[-self._size :]
            found = found[best]
        return found[np.argsort(-scores[found])], scores[self._words]

    # -- graph, catalog, activity -----------------------------------------------------------------

    def walk(self):
        """Seeds by name, the capped walk from all of them, where most of it arrives, and the pool."""
        asked = evolve(self._asked["graph"])
        return self._graph.propose(asked, self._size), self._graph.observe(asked, self._pooled)

    def _prepare_columns(self, memory, recall):
        columns = memory._engine.catalog._columns
        self._salience, self._at = columns.array("salience"), columns.array("at")
        self._now = recall.trace.now
        rows = columns.rows
        shown = rows.locate(self._asked["keywords"], recall.ids)
        self._shown = rows.serials[shown].tolist()
        self._facts = rows.locate(self._asked["keywords"], recall.ranking.candidates.ids)
        self._pooled = rows.named(self._facts)
        connection = memory._engine.catalog._database.read
        with connection() as opened:
            self._execute = partial(opened.execute, _TEXTS)

    def salience(self):
        """The most salient of the visible, and the salience of the pool."""
        values = np.nan_to_num(self._salience[self._start : self._stop], nan=-1.0)
        least = kth_greatest(values, min(self._size, len(values)))
        best = np.flatnonzero(values >= least)
        return best[np.argsort(-values[best])], self._salience[self._facts]

    def ages(self):
        """Since when the memories of the pool hold."""
        return self._now - self._at[self._facts]

    def texts(self):
        """What is shown, from the file."""
        return self._execute((json.dumps(self._shown),)).fetchall()
