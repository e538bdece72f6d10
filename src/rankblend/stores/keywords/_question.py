"""A query as an index understands it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from rankblend.kernels.bm25 import (
    inverse_document_frequency,
    length_norms,
    sum_in_order,
    term_scores,
)
from rankblend.stores.keywords._corpus import Corpus
from rankblend.stores.keywords._index import Occurrences, TokenIndex


@frozen(eq=False)
class Question:
    """The words of a query with what finding them is worth.

    Args:
        word_count: Distinct raw tokens.
        tokens: int64: those the index knows.
        has_terms: Something is left for BM25 once stop words are gone.
        stems: int64, shape (t,), distinct, in the order of the query: those that occur in memories
            the statistics are taken over.
        weights: float64, shape (t,): their inverse document frequencies.
        mean_length: Of those memories.
        k1: See `length_norms`.
        b: See `length_norms`.
    """

    word_count: int
    tokens: NDArray[np.int64]
    has_terms: bool
    stems: NDArray[np.int64]
    weights: NDArray[np.float64]
    mean_length: float
    k1: float
    b: float

    def scores(
        self,
        found: Occurrences,
        lengths: NDArray[np.integer],
        slots: NDArray[np.integer],
        slot_count: int,
    ) -> NDArray[np.float64]:
        """BM25 per slot, each summed in the order of the query's terms; 0.0 without a term.

        Args:
            found: Occurrences of ``stems``.
            lengths: Length of the memory of each occurrence.
            slots: Slot of each occurrence.
            slot_count: Length of the result.
        """
        norms = length_norms(lengths, self.mean_length, k1=self.k1, b=self.b)
        return sum_in_order(
            slots, term_scores(found.counts, norms, self.weights[found.terms]), slot_count
        )


def read_question(
    text: str, index: TokenIndex, corpora: Sequence[Corpus], *, k1: float, b: float
) -> Question:
    """Cut a query into words and weigh them by disjoint parts of a corpus."""
    words = list(dict.fromkeys(index.analysis.tokens(text)))
    tokens = index.vocabulary.find(words)
    terms = list(dict.fromkeys(stem for stem in index.analysis.stems(words) if stem is not None))
    stems = index.vocabulary.find(terms)
    stems = stems[stems >= 0]
    frequencies = np.zeros(len(stems), dtype=np.int64)
    for corpus in corpora:
        frequencies += index.frequencies(corpus.selection, stems)
    # A stem nobody in the corpus holds occurs in nothing that is visible either.
    stems, frequencies = stems[frequencies > 0], frequencies[frequencies > 0]
    memories = sum(corpus.memories for corpus in corpora)
    length = sum(corpus.length for corpus in corpora)
    return Question(
        len(words),
        tokens[tokens >= 0],
        bool(terms),
        stems,
        inverse_document_frequency(memories, frequencies),
        length / memories if memories else 0.0,
        k1,
        b,
    )
