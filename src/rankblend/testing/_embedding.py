"""The kit for embedders, and an embedder for tests that needs no model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from rankblend.embedders import (
    FunctionEmbedder,
    checked,
    embedder_dimension,
    from_callable,
    identity,
)
from rankblend.testing._guard import Guarded

_TEXTS = (
    "Ana prefers refunds by bank transfer",
    "refunds over 500 need approval",
    "返金は銀行振込でお願いします",
    "החזר כספי",
    "😀 👩‍👩‍👧 cafe\u0301",
    "nul\x00inside",
    "a",
    "refund " * 400,
)


def hashed_embedder(dimension: int = 64) -> FunctionEmbedder:
    """An embedder for tests: each word adds ±1 to one of d places chosen by its hash.

    The same on every machine and in every process. Texts that share words are near one another; it
    knows nothing of meaning.

    Args:
        dimension: d ≥ 1; small ones make unrelated words collide.
    """

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.casefold().split():
                digest = blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
                place = int.from_bytes(digest[:7], "big") % dimension
                row[place] += 1.0 if digest[7] & 1 else -1.0
            if not row.any():  # no words, or words that cancel out
                row[0] = 1.0
        return rows

    return from_callable(embed, name="hashed", dimension=dimension)


class EmbedderConformance(Guarded):
    """Everything an embedder must do to be stored beside.

    Subclass it and fill in ``make_embedder``.

    Attributes:
        tolerance: How far a component of a unit vector may move when the other texts of the call
            change; 0 for an embedder that looks at each text alone.
    """

    hooks = Guarded.hooks | {"make_embedder", "tolerance"}
    tolerance: ClassVar[float] = 1e-5

    def make_embedder(self) -> Callable[[Sequence[str]], Any]:
        """The embedder; called once a test."""
        raise NotImplementedError("fill in make_embedder(): return an embedder")

    def test_embedder_gives_one_usable_row_per_text(self) -> None:
        """A real array (n, d); every row has a direction."""
        rows, has_vector = checked(self.make_embedder(), list(_TEXTS))
        assert rows.shape[0] == len(_TEXTS)
        assert has_vector.all()
        assert np.allclose(np.linalg.norm(rows.astype(np.float64), axis=1), 1.0, atol=1e-5)

    def test_embedder_states_its_dimension_truly(self) -> None:
        """Where it states a dimension, that is the length of its vectors."""
        embedder = self.make_embedder()
        stated = embedder_dimension(embedder)
        if stated is None:
            pytest.skip("the embedder states no dimension")
        assert checked(embedder, [_TEXTS[0]], stated).rows.shape == (1, stated)

    def test_embedder_has_an_identity(self) -> None:
        """``name/dimension``, the same every time it is asked."""
        embedder = self.make_embedder()
        name, _, dimension = identity(embedder).rpartition("/")
        assert name.strip(), "the name is blank"
        assert int(dimension) > 0
        assert identity(embedder) == f"{name}/{dimension}"

    def test_embedder_when_asked_again_then_it_says_the_same(self) -> None:
        """Bit for bit: vectors are compared with vectors made at another time."""
        embedder = self.make_embedder()
        first = checked(embedder, list(_TEXTS)).rows
        assert np.array_equal(first, checked(embedder, list(_TEXTS)).rows)

    def test_embedder_when_other_texts_come_along_then_a_vector_stays(self) -> None:
        """Alone, in another order, in another batch."""
        embedder = self.make_embedder()
        together = checked(embedder, list(_TEXTS)).rows
        backwards = checked(embedder, list(_TEXTS[::-1])).rows[::-1]
        alone = checked(embedder, list(_TEXTS), batch_size=1).rows
        for other in (backwards, alone):
            gap = float(np.abs(together - other).max())
            assert gap <= self.tolerance, f"components move by up to {gap}"

    def test_embedder_tells_texts_apart(self) -> None:
        """Different texts, different vectors; the same text, the same vector."""
        rows = checked(self.make_embedder(), [_TEXTS[0], _TEXTS[1], _TEXTS[0]]).rows
        assert not np.array_equal(rows[0], rows[1])
        assert np.allclose(rows[0], rows[2], atol=max(self.tolerance, 1e-6))

    def test_embedder_leaves_its_texts_alone(self) -> None:
        """The list it is given is the same afterwards."""
        texts = list(_TEXTS)
        self.make_embedder()(texts)
        assert texts == list(_TEXTS)

    def test_embedder_when_texts_are_blank_then_it_is_not_asked(self) -> None:
        """Through the gate, whatever it would say to them."""
        rows, has_vector = checked(self.make_embedder(), ["", _TEXTS[0], " \n"])
        assert has_vector.tolist() == [False, True, False]
        assert np.isnan(rows[[0, 2]]).all()
