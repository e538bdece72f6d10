"""Stores that raise, hang, lie or do not follow, and how to wait for what may never end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scenario import SECRET

import rankblend as rb
from rankblend.stores import Key, Observation, Record, StoreQuery

__all__ = ["Forgetful", "Hanging", "Own", "finished", "raising", "why"]


class Own:
    """A store of one's own: it proposes and answers what it is made with."""

    name = "own"
    emits: tuple[str, ...] = ("cosine",)

    def __init__(
        self, proposes: Any = (), says: Callable[[Sequence[str]], Any] | None = None
    ) -> None:
        self.proposes = proposes
        self.says = says or (lambda ids: Observation({"cosine": np.full(len(ids), 0.5)}))

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Any:
        return self.proposes() if callable(self.proposes) else self.proposes

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Any:
        return self.says(ids)

    def close(self) -> None: ...


def raising(*_: Any) -> Any:
    raise ConnectionError(f"no answer to: {SECRET}")


def why(result: rb.Recall, identifier: str, signal: str) -> str:
    return next(row.why for row in result.explain(identifier).rows if row.name == signal)


def finished(call: Callable[[], Any]) -> Any:
    """What a call returns, in a thread of its own: one that never ends fails and hangs nothing."""
    outcome: list[Any] = []
    thread = threading.Thread(target=lambda: outcome.append(call()), daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive(), "still waiting after 30 s"
    return outcome[0]


class Hanging(Own):
    def __init__(self, release: threading.Event, during: str) -> None:
        super().__init__()
        self.release, self.during = release, during

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Any:
        if self.during == "propose":
            self.release.wait()
        return []

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Any:
        if self.during == "observe":
            self.release.wait()
        return super().observe(query, ids)


class Forgetful(Own):
    """Keeps memories, until it is told to fail."""

    def __init__(self, error: type[Exception]) -> None:
        super().__init__()
        self.error = error
        self.failing = False
        self.keys: set[Key] = set()

    def __len__(self) -> int:
        return len(self.keys)

    def add(self, records: Sequence[Record]) -> None:
        if self.failing:
            raise self.error(SECRET)
        self.keys |= {record.key for record in records}

    def remove(self, keys: Sequence[Key]) -> None:
        if self.failing:
            raise self.error(SECRET)
        self.keys -= set(keys)
