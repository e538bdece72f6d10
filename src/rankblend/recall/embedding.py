"""Vectors for what is written and for what is asked, always from the embedder of the file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from rankblend.embedders import Embedder, checked, embedder_dimension, identity
from rankblend.errors import EmbedderMismatchError, InvalidArgumentError
from rankblend.recall.items import Item
from rankblend.stores.catalog import Catalog
from rankblend.stores.protocol import Record

__all__ = ["EMBEDDER", "check_embedder", "embed_items", "embed_query", "stored_dimension"]

EMBEDDER = "embedder"  # name of the fact in the catalog that holds the embedder's identity


def stored_dimension(catalog: Catalog) -> int | None:
    """The dimension of a file's vectors; None while it has none."""
    stored = catalog.get_meta("dimension")
    return None if stored is None else int(stored)


def check_embedder(
    catalog: Catalog, embedder: Embedder | None, *, dimension: int | None = None
) -> None:
    """Refuse another embedder than the one the file was written with.

    Args:
        catalog: The file.
        embedder: None is always accepted.
        dimension: Assumed of an embedder that states none, so that it need not be asked.

    Raises:
        EmbedderMismatchError: Their vectors cannot be compared.
    """
    if embedder is None:
        return
    stored, size = catalog.get_meta(EMBEDDER), stored_dimension(catalog)
    stated = embedder_dimension(embedder)
    if stored is not None:
        given = identity(embedder, dimension=stated or dimension)
        if given != stored:
            raise EmbedderMismatchError(stored, given)
    elif size is not None and stated is not None and stated != size:
        raise EmbedderMismatchError(
            f"vectors that were given, of dimension {size}", identity(embedder)
        )


def embed_items(catalog: Catalog, items: Sequence[Item], embedder: Embedder | None) -> list[Record]:
    """The records with their vectors: those they bring, else the embedder's, else none.

    Raises:
        InvalidArgumentError: Vectors of another dimension than the file's.
        EmbeddingError: The embedder failed.
    """
    vectors = [item.vector for item in items]
    dimension = stored_dimension(catalog)
    if dimension is None and embedder is not None:
        dimension = embedder_dimension(embedder)
    missing = [i for i, vector in enumerate(vectors) if vector is None]
    if embedder is not None and missing:
        rows, has_vector = checked(embedder, [items[i].record.text for i in missing], dimension)
        for i, row, has in zip(missing, rows, has_vector, strict=True):
            vectors[i] = row if has else None
        check_embedder(
            catalog, embedder, dimension=dimension
        )  # another process may have reembedded
    embedded = any(vectors[i] is not None for i in missing)
    sizes = {vector.size for vector in vectors if vector is not None}
    expected = dimension if dimension is not None else min(sizes, default=None)
    if sizes - {expected}:
        raise InvalidArgumentError(
            f"vector: expected {expected} dimensions, as in this memory, "
            f"got {sorted(sizes - {expected})}"
        )
    if embedder is not None and embedded and catalog.get_meta(EMBEDDER) is None:
        catalog.set_meta(EMBEDDER, identity(embedder))
    return [
        item.record if vector is None else evolve(item.record, vector=vector)
        for item, vector in zip(items, vectors, strict=True)
    ]


def embed_query(catalog: Catalog, embedder: Embedder, text: str) -> NDArray[np.float32] | None:
    """The vector of a query; None for a text with nothing to read.

    Raises:
        EmbedderMismatchError: Another process has embedded the file anew since it was opened.
        EmbeddingError: The embedder failed.
    """
    dimension = stored_dimension(catalog)
    check_embedder(catalog, embedder, dimension=dimension)
    rows, has_vector = checked(embedder, [text], dimension)
    return rows[0] if has_vector[0] else None
