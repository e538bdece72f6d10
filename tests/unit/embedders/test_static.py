"""The offline static model, for real."""

from __future__ import annotations

import importlib.util
import logging
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rankblend.embedders import checked, identity, wordllama
from rankblend.embedders._static import _batches
from rankblend.errors import InvalidArgumentError, MissingDependencyError

needs_model = pytest.mark.skipif(
    importlib.util.find_spec("wordllama") is None, reason="needs the extra wordllama"
)


@needs_model
def test_wordllama_when_texts_say_the_same_then_they_are_nearer_than_others() -> None:
    texts = ["the cat sat on the mat", "a cat is sitting on a mat", "quarterly revenue grew"]
    rows = checked(wordllama(), texts).rows
    same, other = rows[0] @ rows[1], rows[0] @ rows[2]
    assert rows.shape == (3, 256)
    assert same > other + 0.3


@needs_model
def test_wordllama_when_asked_for_fewer_dimensions_then_they_are_the_leading_ones() -> None:
    full, short = wordllama()(["ana"]), wordllama(64)(["ana"])
    assert np.allclose(full[:, :64], short, rtol=1e-6)
    assert identity(wordllama(64)) == "wordllama/64"


@needs_model
def test_wordllama_when_the_batch_changes_then_a_vector_does_not() -> None:
    texts = ["ana prefers bank transfer", "long " * 300, "返金は銀行振込で"]
    together = wordllama()(texts)
    alone = np.concatenate([wordllama()([text]) for text in texts])
    assert np.array_equal(together, alone)


@needs_model
def test_wordllama_when_the_network_is_cut_then_it_loads_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rankblend.embedders import _static as static

    def refuse(*arguments: object) -> None:
        raise AssertionError("went to the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    static._load.cache_clear()
    assert checked(wordllama(), ["ana"]).has_vector.all()


@needs_model
@pytest.mark.slow
def test_wordllama_when_first_loaded_then_the_applications_logging_stays_as_it_was() -> None:
    code = (
        "import logging; from rankblend.embedders import wordllama; wordllama()(['ana']); "
        "assert logging.root.handlers == [], logging.root.handlers; "
        "assert logging.root.level == logging.WARNING"
    )
    source = Path(__file__).resolve().parents[3] / "src"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(source)})
    assert logging.root.level != logging.INFO


def test_wordllama_when_the_dimension_is_unknown_then_it_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="256"):
        wordllama(100)


def test_wordllama_when_it_is_not_installed_then_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "wordllama" else find(name)
    )
    with pytest.raises(MissingDependencyError, match=r"rankblend\[wordllama\]"):
        wordllama()


def test_batches_when_one_text_is_long_then_short_ones_are_not_padded_to_it() -> None:
    # 4 short texts fit in one batch; a fifth of 200,000 characters would pad it to 1,000,000
    assert list(_batches([10, 200_000, 10, 10, 10])) == [[0, 2, 3, 4], [1]]
    assert list(_batches([])) == []
