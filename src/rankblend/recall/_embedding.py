"""Vectors for what is written and for what is asked, always from the embedder of the file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from rankblend.embedders import (
    Embedder,
    checked,
    earlier_names,
    embedder_dimension,
    identity,
    name_problem,
)
from rankblend.errors import EmbedderMismatchError, EmbedderWarning, InvalidArgumentError
from rankblend.recall._items import Item
from rankblend.stores import Record
from rankblend.stores.catalog import Catalog, CatalogProtocol

_BATCH = 256  # texts embedded between two words to `progress`
UNSURE = "embedder_unsure"  # that of a file whose embedder was noted by its kind only
EMBEDDER = "embedder"  # name of the fact in the catalog that holds the embedder's identity


def check_embedder(
    catalog: CatalogProtocol,
    embedder: Embedder | None,
    *,
    dimension: int | None = None,
    opening: bool = False,
) -> None:
    """Refuse another embedder than the one the file was written with.

    Args:
        catalog: The file.
        embedder: None is always accepted.
        dimension: Assumed of an embedder that states none, so that it need not be asked.
        opening: Refuse one that could not be recognized, too, and warn of a name that does not tell.

    Raises:
        EmbedderMismatchError: Their vectors cannot be compared.
        InvalidArgumentError: It has no stable name, and the memory is a file.
    """
    if embedder is None:
        return
    if opening:
        check_name(catalog, embedder)
    stored, stated = catalog.get_meta(EMBEDDER), embedder_dimension(embedder)
    if stored is not None:
        given = identity(embedder, dimension=stated or dimension)
        if _noted_as(catalog, embedder, given) != stored:
            raise EmbedderMismatchError(stored, given)
        if opening and given != stored:
            warnings.warn(
                f"the file was written with embedder {stored}, by a version that did not note whose; "
                f"it is taken for {given}. If it is, note it with: rankblend relabel "
                f"{given.rpartition('/')[0]} --db FILE; if not, write all vectors anew",
                EmbedderWarning,
                stacklevel=4,
            )
    elif stated is not None and (size := catalog.dimension) not in (None, stated):
        raise EmbedderMismatchError(
            f"vectors that were given, of dimension {size}", identity(embedder)
        )


def check_name(catalog: CatalogProtocol, embedder: Embedder) -> None:
    """Refuse to keep vectors in a file of whose embedder nobody could say later which it was.

    Raises:
        InvalidArgumentError: It has no stable name, and the memory is a file.
    """
    if catalog.path != ":memory:" and (problem := name_problem(embedder)):
        raise InvalidArgumentError(f"embedder: {problem}")


def _noted_as(catalog: CatalogProtocol, embedder: Embedder, given: str) -> str:
    """The identity to note with vectors: the one in the file while it may mean this embedder.

    Args:
        catalog: The file; one of an earlier version may call the embedder by its kind.
        embedder: What makes the vectors.
        given: Its identity.
    """
    unsure = catalog.get_meta(UNSURE)
    if unsure is None:
        return given
    (name, _, size), length = unsure.rpartition("/"), given.rpartition("/")[2]
    return unsure if size == length and name in earlier_names(embedder) else given


def embed_items(
    catalog: CatalogProtocol,
    items: Sequence[Item],
    embedder: Embedder | None,
    *,
    dimension: int | None = None,
    progress: Callable[[int], object] | None = None,
) -> tuple[list[Record], str | None]:
    """The records with their vectors: those they bring, else the embedder's, else none.

    Args:
        catalog: Where they will be written; nothing is written here.
        items: What will be written.
        embedder: Makes the vectors that are not brought; None: nobody does.
        dimension: Of all vectors, where the catalog has none yet.
        progress: Told after each batch how many texts have been embedded so far.

    Returns:
        The records, and the identity of the embedder to be noted with them: None when it made none.

    Raises:
        InvalidArgumentError: Vectors of another dimension than the file's; all at once.
        EmbedderMismatchError: The file was written with another embedder.
        EmbeddingError: The embedder failed.
    """
    vectors = [item.vector for item in items]
    expected = catalog.dimension or dimension
    if expected is None and embedder is not None:
        expected = embedder_dimension(embedder)
    _check_sizes(items, vectors, expected)
    missing = [i for i, vector in enumerate(vectors) if vector is None]
    made_by = None
    if embedder is not None and missing:
        check_embedder(catalog, embedder, dimension=expected)
        step = len(missing) if progress is None else _BATCH
        for start in range(0, len(missing), step):
            batch = missing[start : start + step]
            rows, has_vector = checked(embedder, [items[i].record.text for i in batch], expected)
            for i, row, has in zip(batch, rows, has_vector, strict=True):
                vectors[i] = row if has else None
            if has_vector.any():
                expected = rows.shape[1] if expected is None else expected
                made_by = _noted_as(catalog, embedder, identity(embedder, dimension=rows.shape[1]))
            if progress is not None:
                progress(start + len(batch))
        _check_sizes(items, vectors, expected)
    records = [
        item.record if vector is item.vector else evolve(item.record, vector=vector)
        for item, vector in zip(items, vectors, strict=True)
    ]
    return records, made_by


def _check_sizes(
    items: Sequence[Item], vectors: Sequence[NDArray[np.float32] | None], expected: int | None
) -> None:
    sizes = [None if vector is None else vector.size for vector in vectors]
    if expected is None:
        expected = next((size for size in sizes if size is not None), None)
    problems = [
        f"{item.where}vector: expected {expected} dimensions, as in this memory, got {size}"
        for item, size in zip(items, sizes, strict=True)
        if size not in (None, expected)
    ]
    if problems:
        raise InvalidArgumentError(problems)


def embed_query(
    catalog: CatalogProtocol, embedder: Embedder, text: str
) -> NDArray[np.float32] | None:
    """The vector of a query; None for a text with nothing to read.

    Raises:
        EmbedderMismatchError: Another process has embedded the file anew since it was opened.
        EmbeddingError: The embedder failed.
    """
    dimension = catalog.dimension
    check_embedder(catalog, embedder, dimension=dimension)
    rows, has_vector = checked(embedder, [text], dimension)
    return rows[0] if has_vector[0] else None


def stored_embedder(path: str | os.PathLike[str]) -> str | None:
    """Identity of the embedder a file was written with, ``name/dimension``; None for a new file."""
    if not Path(path).exists():
        return None
    with Catalog.open(path) as catalog:
        return catalog.get_meta(EMBEDDER)
