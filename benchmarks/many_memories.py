"""100,000 memories of 384 dimensions in 50 scopes, and the bytes they are kept in."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

import rankblend as rb

D, N, SCOPES = 384, 100_000, 50
_WORDS, _LENGTH = 30_000, 15


def memories(count: int = N) -> list[Mapping[str, Any]]:
    """Items of `Memory.remember_many`: unit vectors are given, words occur as often as in English."""
    rng = np.random.default_rng(0)
    often = 1.0 / np.arange(1, _WORDS + 1)
    words = rng.choice(_WORDS, size=(count, _LENGTH), p=often / often.sum())
    vectors = rng.normal(size=(count, D)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return [
        {
            "id": f"m{number:06d}",
            "scope": f"tenant:t{number % SCOPES}/user:u{number % 7}",
            "text": " ".join(f"word{word}" for word in words[number].tolist()),
            "vector": vectors[number],
            "salience": number % 10 / 10,
        }
        for number in rng.permutation(count).tolist()
    ]


def kept(path: Path) -> int:
    """How many bytes of a closed memory are needed to answer: its vectors and its postings."""
    with closing(sqlite3.connect(path)) as connection:
        vectors = "SELECT total(length(vector)) FROM vectors"
        postings = "SELECT total(length(data)) FROM index_cache_parts WHERE store = 'keywords'"
        sizes = [connection.execute(sql).fetchone()[0] for sql in (vectors, postings)]
    return int(sum(sizes))


def write(path: Path) -> None:
    """A closed memory that holds them all."""
    with rb.Memory.open(path) as memory:
        memory.remember_many(memories())
