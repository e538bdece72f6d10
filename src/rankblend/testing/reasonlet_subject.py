"""What the author of a store of procedures fills in, and what the kit tries it with."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

import numpy as np
import pytest
from attrs import evolve
from numpy.typing import NDArray

from rankblend.reasonlets.capture import Outcome, Provenance
from rankblend.reasonlets.errors import (
    ReasonletConflictError,
    ReasonletError,
    ReasonletNotFoundError,
)
from rankblend.reasonlets.graph import Edge, Graph, Node
from rankblend.reasonlets.reasonlet import Status
from rankblend.reasonlets.store.protocol import Draft, ReasonletStore, Run
from rankblend.relevance.scope import Scope
from rankblend.testing.guard import Guarded

__all__ = [
    "AGENT",
    "GRAPHS",
    "OTHER",
    "SCOPE",
    "ReasonletStoreHooks",
    "draft",
    "refused",
    "run",
    "vector",
]

SCOPE, OTHER = Scope.parse("tenant:acme"), Scope.parse("tenant:acme/user:7")
AGENT = Provenance("kit", "run-1", "ana", {"kind": "test"})
GRAPHS = [Graph([Node("a", "tool"), Node(end, "answer")], [Edge("a", end)]) for end in "xyz"]


def vector(*numbers: float) -> NDArray[np.float32]:
    """A unit vector."""
    row = np.array(numbers, np.float64)
    unit: NDArray[np.float32] = (row / np.linalg.norm(row)).astype(np.float32)
    return unit


def run(*, success: bool = True, at: float = 1_000.0, **changes: Any) -> Run:
    """A run, by default one that worked."""
    return Run(at, Outcome(success), **{"provenance": AGENT, **changes})


def draft(**changes: Any) -> Draft:
    """A capture of a new procedure, with changes."""
    made = Draft(
        SCOPE, "How?", GRAPHS[0], "refund", "how", AGENT, None, vector(1, 0), Status.ACTIVE,
        run(),
    )  # fmt: skip
    return evolve(made, **changes)


class ReasonletStoreHooks(Guarded):
    """The hooks of `ReasonletStoreConformance`.

    Attributes:
        examples: How many sequences of calls the state machine tries.
    """

    hooks = Guarded.hooks | {"examples", "make_store"}
    examples: ClassVar[int] = 15

    def make_store(self) -> ReasonletStore:
        """A new, empty store."""
        raise NotImplementedError("fill in make_store(): return a new, empty ReasonletStore")

    def with_store(self, test: Callable[[Any], Awaitable[object]]) -> None:
        """Run a test on a new store, closed at the end."""

        async def main() -> None:
            store = self.make_store()
            assert isinstance(store, ReasonletStore)
            try:
                await test(store)
            finally:
                await store.aclose()

        asyncio.run(main())


async def refused(call: Awaitable[object]) -> str:
    """The code a call is refused with."""
    try:
        await call
    except (ReasonletNotFoundError, ReasonletConflictError) as error:
        return error.code
    except ReasonletError as error:
        pytest.fail(f"refused with {error.code}")
    pytest.fail("not refused")
