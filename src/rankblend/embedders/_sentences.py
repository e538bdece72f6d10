"""Models of the sentence-transformers package."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from rankblend.errors import MissingDependencyError


@frozen(eq=False)
class SentenceTransformersEmbedder:
    """A loaded SentenceTransformer; made by `sentence_transformers`."""

    name: str
    dimension: int | None
    model: str
    _encoder: Any = field(repr=False)

    def __call__(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Embed the texts; float32, shape (n, d), unit length."""
        vectors = self._encoder.encode(
            list(texts),
            convert_to_numpy=True,
            normalize_embeddings=True,
            show_progress_bar=False,
        )
        return np.asarray(vectors, dtype=np.float32)


def sentence_transformers(model: Any, *, name: str | None = None) -> SentenceTransformersEmbedder:
    """A SentenceTransformer as an embedder.

    How to get one: ``pip install 'rankblend[sentence-transformers]'`` (brings PyTorch). A name that
    is not a folder is looked up and downloaded by that package; give a folder, or a model you have
    loaded yourself, to stay offline.

    Args:
        model: Name or folder of a model, or an object that already has ``encode``.
        name: What the embedder is called; part of a memory's identity. Default: the model's name.

    Raises:
        MissingDependencyError: A name or folder was given and the package is not installed.
    """
    if hasattr(model, "encode") and not isinstance(model, str):
        encoder, label = model, type(model).__name__
    else:
        try:
            package = importlib.import_module("sentence_transformers")
        except ImportError:
            raise MissingDependencyError(
                "sentence_transformers", "sentence-transformers", "a SentenceTransformer model"
            ) from None
        encoder, label = package.SentenceTransformer(str(model)), str(model)
    dimension = getattr(encoder, "get_sentence_embedding_dimension", lambda: None)()
    return SentenceTransformersEmbedder(
        name if name is not None else f"sentence-transformers:{label}", dimension, label, encoder
    )
