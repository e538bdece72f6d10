"""A signal of your own: a function from ids to values is a store.

    python examples/own_store.py

Somebody liked one of two memories that fit the question equally well. The function knows only the
ids it was told; a memory it says nothing about has no such signal, which is not the same as 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import rankblend as rb

VOTES = {"n1": 9, "n2": 1}


def liked(ids: Sequence[str]) -> dict[str, rb.RelevanceSignals]:
    """Votes of up to ten, as a share."""
    return {i: rb.RelevanceSignals(liked=VOTES[i] / 10) for i in ids if i in VOTES}


PROFILE = """
extends = ["default"]
[evidence.liked]
unit = "signal"
[signals.liked]
evidence = "liked"
[score.weights]
liked = 0.3
"""


def main() -> None:
    votes = rb.SignalStore("votes", liked, emits=["liked"])
    Path("mine.toml").write_text(PROFILE, encoding="utf-8")
    with rb.Memory.open(":memory:", stores=[*rb.default_stores(), votes]) as memory:
        for identifier in ("n1", "n2", "n3"):
            memory.remember(f"Refunds take {identifier} days", scope="tenant:acme", id=identifier)
        recall = memory.recall("refunds", scope="tenant:acme", profile="mine.toml")
        for match in recall:
            print(match.rank, match.memory.id, match.signals.liked)
        print(recall.explain("n1"))
        print(recall.explain("n3"))


if __name__ == "__main__":
    main()
