"""Keyword search over scoped memories: BM25 and word coverage, with statistics per tenant."""

from rankblend.stores.keywords._analysis import Analysis, Tokenizer
from rankblend.stores.keywords._store import KeywordStore

__all__ = ["Analysis", "KeywordStore", "Tokenizer"]
