"""What stores keep in the catalog so that they open faster: bytes nobody depends on."""

from __future__ import annotations

import sqlite3
import warnings
from hashlib import blake2b
from sqlite3 import Connection

from rankblend.errors import CacheWarning

# One value may hold 1 GB at most, and the keyword index of a million memories needs about that.
_PART = 1 << 24
_ERASED_SINCE = """
SELECT 1 FROM state WHERE forgotten > ?1 OR EXISTS (SELECT 1 FROM tombstones WHERE generation > ?1)
"""


def save_cache(connection: Connection, store: str, data: bytes, generation: int) -> None:
    """Keep bytes under the name of a store, replacing what it kept before.

    Nothing is kept when memories were erased after ``generation``: the bytes may hold their words.
    """
    if connection.execute(_ERASED_SINCE, (generation,)).fetchone() is not None:
        return
    connection.execute("DELETE FROM index_cache WHERE store = ?", (store,))
    digest = blake2b(data, digest_size=32).digest()
    connection.execute("INSERT INTO index_cache VALUES (?, ?, ?)", (store, generation, digest))
    view = memoryview(data)
    connection.executemany(
        "INSERT INTO index_cache_parts VALUES (?, ?, ?)",
        (
            (store, part, view[start : start + _PART])
            for part, start in enumerate(range(0, len(view), _PART))
        ),
    )


def load_cache(connection: Connection, store: str) -> tuple[int, bytes] | None:
    """The generation and bytes a store kept, or None.

    Bytes that are damaged, or so old that it is no longer known what was forgotten since, are not
    given out: a `CacheWarning` says so, and the store builds its index from the records.
    """
    try:
        found = connection.execute(
            "SELECT generation, digest FROM index_cache WHERE store = ?", (store,)
        ).fetchone()
        if found is None:
            return None
        parts = connection.execute(
            "SELECT data FROM index_cache_parts WHERE store = ? ORDER BY part", (store,)
        )
        data = b"".join([part for (part,) in parts])
    except (sqlite3.DatabaseError, TypeError) as error:  # TypeError: something else than bytes
        if isinstance(error, sqlite3.OperationalError):
            raise
        _unusable(store, "is damaged")
        return None
    generation, digest = found
    if type(generation) is not int or blake2b(data, digest_size=32).digest() != digest:
        _unusable(store, "is damaged")
        return None
    latest, forgotten = connection.execute("SELECT generation, forgotten FROM state").fetchone()
    if not forgotten <= generation <= latest:
        _unusable(store, "does not belong to the memories beside it")
        return None
    return generation, data


def cached_generation(connection: Connection, store: str) -> int | None:
    """The generation of what a store keeps, None when it keeps nothing."""
    found = connection.execute(
        "SELECT generation FROM index_cache WHERE store = ?", (store,)
    ).fetchone()
    return found[0] if found is not None and type(found[0]) is int else None


def _unusable(store: str, why: str) -> None:
    warnings.warn(
        f"the cached index of store {store!r} {why}; it is built anew from the catalog",
        CacheWarning,
        stacklevel=4,
    )
