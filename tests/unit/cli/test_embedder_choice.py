"""Which embedder ``--embedder`` means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rankblend.cli.options import embedder_for
from rankblend.embedders import identity, wordllama
from rankblend.errors import InvalidArgumentError
from rankblend.recall import Memory

pytest.importorskip("wordllama")


@pytest.mark.parametrize("dimension", [64, 128, 256])
def test_auto_when_the_file_is_of_wordllama_then_its_dimension_is_taken(
    rankblend: Any, tmp_path: Path, dimension: int
) -> None:
    db = tmp_path / "m.db"
    with Memory.open(db, embedder=wordllama(dimension)) as memory:
        memory.remember("tea at four", scope="tenant:acme")
    chosen = embedder_for("auto", f"wordllama/{dimension}")
    assert chosen is not None
    assert identity(chosen) == f"wordllama/{dimension}"
    done = rankblend("recall", "tea", "--db", db, "--scope", "tenant:acme")
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize(
    "stored",
    ["wordllama/512", "wordllama/x", "wordllama/²", "wordllama", "wordllama-large/256", "other/2"],
)
def test_auto_when_it_cannot_be_made_then_the_error_says_what_to_pass(stored: str) -> None:
    with pytest.raises(InvalidArgumentError, match="--embedder") as refused:
        embedder_for("auto", stored)
    assert stored in str(refused.value)
    assert "--embedder none" in str(refused.value)


def test_wordllama_when_a_dimension_is_named_then_it_is_taken() -> None:
    chosen = embedder_for("wordllama:64", None)
    assert chosen is not None
    assert identity(chosen) == "wordllama/64"
    for wrong in ("wordllama:65", "wordllama:x"):
        with pytest.raises(InvalidArgumentError):
            embedder_for(wrong, None)
