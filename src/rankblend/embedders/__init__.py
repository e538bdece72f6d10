"""Embedders: what turns texts into vectors.

Any function from n texts to an array of shape (n, d) will do. These are ready-made, each needing
nothing that the base installation lacks unless an extra is named:

=========================  =========================  ==============================================
`from_callable`            —                          your own function, with a name
`wordllama`                ``wordllama``              static model inside the wheel, no network
`onnx`                     ``onnx``                   a sentence model from two files, no network
`sentence_transformers`    ``sentence-transformers``  models of that package
`openai`                   ``http``                   any OpenAI-compatible server
=========================  =========================  ==============================================

Whoever needs vectors calls `checked`: it keeps blank texts from the model and refuses vectors that
cannot be used. `identity` is what a memory stores to notice another embedder.
"""

from __future__ import annotations

from rankblend.embedders._endpoint import EndpointEmbedder, openai
from rankblend.embedders._function import FunctionEmbedder, from_callable
from rankblend.embedders._gate import Embedded, checked, identity
from rankblend.embedders._onnx_model import OnnxEmbedder, onnx
from rankblend.embedders._protocol import (
    Embedder,
    SupportsIdentity,
    earlier_names,
    embedder_dimension,
    embedder_name,
    name_problem,
)
from rankblend.embedders._sentences import SentenceTransformersEmbedder, sentence_transformers
from rankblend.embedders._static import WordLlamaEmbedder, wordllama
from rankblend.kernels.text import is_blank

__all__ = [
    "Embedded",
    "Embedder",
    "EndpointEmbedder",
    "FunctionEmbedder",
    "OnnxEmbedder",
    "SentenceTransformersEmbedder",
    "SupportsIdentity",
    "WordLlamaEmbedder",
    "checked",
    "embedder_dimension",
    "embedder_name",
    "from_callable",
    "identity",
    "is_blank",
    "onnx",
    "openai",
    "sentence_transformers",
    "wordllama",
]
