"""The one gate between any embedder and everything that uses vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankblend import limits
from rankblend.embedders._protocol import embedder_dimension, embedder_name
from rankblend.errors import EmbeddingError, InvalidArgumentError, RankblendError
from rankblend.kernels.text import is_blank

# Below this a float64 norm has lost bits, because the squares it is made of are subnormal.
_LEAST_NORM = math.sqrt(float(np.finfo(np.float64).tiny))
_LARGEST = math.sqrt(float(np.finfo(np.float64).max))


class Embedded(NamedTuple):
    """Vectors of n texts.

    Attributes:
        rows: float32, shape (n, d), read-only. Unit length, or all NaN where there is no vector.
        has_vector: bool, shape (n,), read-only. False where the text was blank.
    """

    rows: NDArray[np.float32]
    has_vector: NDArray[np.bool_]


def checked(
    embedder: Callable[[Sequence[str]], object],
    texts: Sequence[str],
    dimension: int | None = None,
    *,
    batch_size: int = 256,
) -> Embedded:
    """Embed texts and accept only vectors that can be used.

    Blank texts never reach the model: many answer them with NaN or an arbitrary direction. The
    embedder gets lists of its own, so it cannot change the caller's.

    Args:
        embedder: See `rankblend.embedders.Embedder`.
        texts: n texts; n may be 0.
        dimension: The d every row must have; None: what the embedder states, else what its first
            batch has.
        batch_size: Texts handed over at once, > 0.

    Returns:
        Rows of unit length (to float32 rounding) and the mask of texts that have one. When no text
        has a vector and d is not known, d is 0.

    Raises:
        InvalidArgumentError: ``texts`` is one text or holds something that is not text.
        EmbeddingError: The embedder raised (``raised``), gave something that is no real (n, d)
            array (``shape``), another number of rows (``rows``) or another d (``length``), a NaN or
            infinity (``non-finite``), or a row that has no direction because its norm is 0,
            underflows or overflows (``norm``). Never contains a text: what the embedder raised is
            named by its type only, and suppressed in tracebacks.

    Example:
        >>> import numpy as np
        >>> rows, has_vector = checked(lambda texts: np.array([[3.0, 4.0]]), ["ana", "  "])
        >>> rows.tolist()
        [[0.6000000238418579, 0.800000011920929], [nan, nan]]
        >>> has_vector.tolist()
        [True, False]
    """
    _check_texts(texts, batch_size)
    name = embedder_name(embedder)
    expected = dimension if dimension is not None else embedder_dimension(embedder)
    has_vector = np.fromiter((not is_blank(text) for text in texts), np.bool_, len(texts))
    positions = np.flatnonzero(has_vector)
    batches = []
    for start in range(0, len(positions), batch_size):
        chosen = positions[start : start + batch_size]
        vectors = _call(embedder, name, [texts[position] for position in chosen])
        batch = _unit_rows(vectors, name, chosen, expected)
        expected = batch.shape[1]
        batches.append(batch)
    rows = np.full((len(texts), expected or 0), np.nan, dtype=np.float32)
    if batches:
        rows[positions] = np.concatenate(batches)
    rows.flags.writeable = False
    has_vector.flags.writeable = False
    return Embedded(rows, has_vector)


def identity(embedder: Callable[[Sequence[str]], object], *, dimension: int | None = None) -> str:
    """What is stored beside vectors: ``"name/dimension"``, e.g. ``"wordllama/256"``.

    One that has no name of its own is called by its kind, as in ``"lambda/2"``; that tells it from
    no other of its kind, so a file refuses it.

    Args:
        embedder: See `rankblend.embedders.Embedder`.
        dimension: d where the caller knows it. Otherwise the embedder's own word is taken, and one
            that states none is asked to embed a single word.

    Raises:
        EmbeddingError: It had to be asked, and failed.
    """
    known = dimension if dimension is not None else embedder_dimension(embedder)
    if known is None:
        known = checked(embedder, ["dimension"]).rows.shape[1]
    return f"{embedder_name(embedder)}/{known}"


def _check_texts(texts: Sequence[object], batch_size: int) -> None:
    problems = limits.beyond(batch_size=batch_size)
    if isinstance(texts, str):
        problems.append("texts: expected a sequence of texts, got one text; put it in a list")
    else:
        problems += [
            f"texts[{position}]: expected text, got {type(text).__name__}"
            for position, text in enumerate(texts)
            if not isinstance(text, str)
        ][:5]
    if problems:
        raise InvalidArgumentError(problems)


def _call(
    embedder: Callable[[Sequence[str]], object], name: str, texts: list[str]
) -> NDArray[np.float64]:
    count = len(texts)
    try:
        answer = embedder(texts)
    except RankblendError:
        raise
    except Exception as error:
        # from None: what a model client says in its message may well repeat the text.
        raise EmbeddingError(
            name, "raised", f"raised {type(error).__name__} for {count} texts"
        ) from None
    try:
        vectors = np.asarray(answer)
    except Exception:  # ragged lists raise ValueError; foreign arrays raise what they like
        raise EmbeddingError(
            name, "shape", f"expected an array of shape ({count}, d), got {type(answer).__name__}"
        ) from None
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
        raise EmbeddingError(
            name,
            "shape",
            f"expected a real array of shape ({count}, d), got shape {vectors.shape} of "
            f"{vectors.dtype.name}",
        )
    if len(vectors) != count:
        raise EmbeddingError(name, "rows", f"expected {count} rows, got {len(vectors)}")
    return vectors.astype(np.float64)  # always a copy: the embedder may keep its own


def _unit_rows(
    vectors: NDArray[np.float64],
    name: str,
    positions: NDArray[np.intp],
    dimension: int | None,
) -> NDArray[np.float32]:
    length = vectors.shape[1]
    if length == 0 or (dimension is not None and length != dimension):
        wanted = dimension if dimension is not None else "at least 1"
        raise EmbeddingError(
            name, "length", f"expected vectors of length {wanted}, got length {length}"
        )
    with np.errstate(over="ignore", invalid="ignore"):  # looked at below
        norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    usable = (norms >= _LEAST_NORM) & (norms <= _LARGEST)  # NaN is neither
    if not usable.all():
        _refuse(vectors, norms, usable, name, positions)
    unit: NDArray[np.float32] = (vectors / norms[:, None]).astype(np.float32)
    return unit


def _refuse(
    vectors: NDArray[np.float64],
    norms: NDArray[np.float64],
    usable: NDArray[np.bool_],
    name: str,
    positions: NDArray[np.intp],
) -> None:
    """Say what is wrong with the first row that is not finite, else with the first unusable norm."""
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        where = int(positions[int(np.argmin(finite))])
        raise EmbeddingError(
            name, "non-finite", f"the vector of text {where} holds a NaN or an infinity"
        )
    first = int(np.argmin(usable))
    problem = "is zero or too small" if norms[first] < _LEAST_NORM else "overflows"
    raise EmbeddingError(
        name,
        "norm",
        f"the norm of the vector of text {int(positions[first])} {problem}: it has no direction",
    )
