"""sentence-transformers: the package is large, so its own tests stand in for the model."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from rankblend.embedders import checked, identity, sentence_transformers
from rankblend.errors import MissingDependencyError


class OwnEncoder:
    """A model of one's own with the interface of a SentenceTransformer."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def encode(
        self,
        sentences: list[str],
        *,
        convert_to_numpy: bool,
        normalize_embeddings: bool,
        show_progress_bar: bool,
    ) -> Any:
        self.asked.append(sentences)
        assert convert_to_numpy
        assert normalize_embeddings
        assert not show_progress_bar
        return np.array([[0.6, 0.8]] * len(sentences), dtype=np.float32)


def test_sentence_transformers_when_given_a_loaded_model_then_its_encode_is_used() -> None:
    encoder = OwnEncoder()
    rows = checked(sentence_transformers(encoder, name="own"), ["a", "", "b"]).rows
    assert encoder.asked == [["a", "b"]]
    assert rows[0].tolist() == rows[2].tolist() == [np.float32(0.6), np.float32(0.8)]


def test_sentence_transformers_identity_when_unnamed_names_the_class() -> None:
    assert identity(sentence_transformers(OwnEncoder())) == "sentence-transformers:OwnEncoder/2"


def test_sentence_transformers_when_it_is_not_installed_then_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingDependencyError, match=r"rankblend\[sentence-transformers\]"):
        sentence_transformers("all-MiniLM-L6-v2")
