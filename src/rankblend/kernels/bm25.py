"""BM25 in Lucene's form, as pure functions on arrays.

::

    score(memory) = Σ over the query's distinct terms, in the order given:

        idf · tf / (tf + k1·(1 − b + b·length / mean length))

        idf = ln(1 + (N − df + ½) / (df + ½))

Sources: S. Robertson, H. Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009);
Lucene's ``BM25Similarity`` for this idf, which is never negative, and for leaving out the constant
factor (k1 + 1), which changes no order. Differences: lengths are exact (Lucene keeps them in one
byte), and a term counts once however often the query repeats it.

Every function is elementwise or a sum in the order of its input, so what comes out for one memory
never depends on which others are scored in the same call, down to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["inverse_document_frequency", "length_norms", "sum_in_order", "term_scores"]


def inverse_document_frequency(
    memories: int, frequencies: Sequence[int] | NDArray[np.integer]
) -> NDArray[np.float64]:
    """How much finding each term says: ``ln(1 + (N − df + ½) / (df + ½))``.

    Args:
        memories: N ≥ 0, memories the statistics are taken over.
        frequencies: int, shape (t,), each in [0, N]: memories among them that hold the term.

    Returns:
        float64, shape (t,), > 0. Greatest for a term nobody holds, least for one that all hold.

    Example:
        >>> inverse_document_frequency(3, [1, 3]).round(4).tolist()
        [0.9808, 0.1335]
    """
    # math.log1p term by term: a query has few terms, and vectorised logarithms may round otherwise.
    return np.array(
        [math.log1p((memories - int(df) + 0.5) / (int(df) + 0.5)) for df in frequencies],
        dtype=np.float64,
    )


def length_norms(
    lengths: ArrayLike, mean_length: float, *, k1: float, b: float
) -> NDArray[np.float64]:
    """What a term count competes with: ``k1·(1 − b + b·length / mean length)``.

    Args:
        lengths: Shape (n,): terms in each memory, repeats counted, ≥ 0.
        mean_length: Their mean over the memories the statistics are taken over. 0 means that no
            memory has a term, so every length is 0 too and the ratio counts as 0.
        k1: Finite, ≥ 0: how slowly repeats of a term saturate; 0 counts only whether it occurs.
        b: In [0, 1]: how much long memories are held back; 0 not at all.

    Returns:
        float64, shape (n,), ≥ 0.
    """
    ratio = np.asarray(lengths, dtype=np.float64) / (mean_length if mean_length > 0 else 1.0)
    return np.asarray(k1 * (1.0 - b + b * ratio), dtype=np.float64)


def term_scores(counts: ArrayLike, norms: ArrayLike, weights: ArrayLike) -> NDArray[np.float64]:
    """What each occurrence adds: ``weight · tf / (tf + norm)``; the three broadcast together.

    Args:
        counts: tf ≥ 1, how often the memory holds the term.
        norms: From `length_norms`, one per occurrence.
        weights: From `inverse_document_frequency`, one per occurrence.

    Returns:
        float64, in (0, weight].
    """
    tf = np.asarray(counts, dtype=np.float64)
    return np.asarray(np.asarray(weights) * (tf / (tf + np.asarray(norms))), dtype=np.float64)


def sum_in_order(
    slots: NDArray[np.integer], values: NDArray[np.float64], slot_count: int
) -> NDArray[np.float64]:
    """Sums per slot, each added up one by one in the order of the input (never pairwise).

    Args:
        slots: int, shape (m,), each in [0, slot_count): which sum a value belongs to.
        values: float64, shape (m,).
        slot_count: Length of the result.

    Returns:
        float64, shape (slot_count,); 0.0 where nothing was added.
    """
    # bincount walks its input once from the front: per slot the same additions as a scalar loop.
    return np.asarray(np.bincount(slots, weights=values, minlength=slot_count), dtype=np.float64)
