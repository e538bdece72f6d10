"""Three procedures, one question: why the closest match is not the best one.

    python examples/worked_example.py

The track record is made of ordinary runs: 20 successes of 20, 5 of 10, and one run of an improved
version, which starts from the record of what it improves on.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

from rankblend.reasonlets import (
    Capture,
    Edge,
    Graph,
    Node,
    Outcome,
    Provenance,
    ReasonletMemory,
    SyncReasonletMemory,
)

SCOPE = "tenant:shop"
ASKED = "How do I refund an order?"
AGENT = Provenance("support agent")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
# A stand-in for an embedding model: the cosine of each question with the one that is asked.
SIMILARITY = {ASKED: 1.0, "refund an order": 0.816, "refund a partial order": 0.904}
PLAIN = Graph([Node("refund", "tool", tool="payments.refund")])
IMPROVED = Graph([Node("look", "tool", tool="orders.get"), *PLAIN.nodes], [Edge("look", "refund")])


def embed(texts: list[str]) -> list[list[float]]:
    return [[SIMILARITY[text], math.sqrt(1 - SIMILARITY[text] ** 2)] for text in texts]


def main() -> None:
    names = {}
    with SyncReasonletMemory(ReasonletMemory(embed, clock=lambda: NOW)) as memory:

        def learn(name: str, question: str, graph: Graph, runs: list[bool], parent: str | None):
            first, *others = runs
            capture = Capture(SCOPE, question, graph, Outcome(first), AGENT, parent_id=parent)
            receipt = memory.remember(capture)
            for worked in others:
                memory.record_execution(
                    SCOPE, receipt.id, outcome=Outcome(worked), provenance=AGENT
                )
            names[receipt.id] = f"{name}, {receipt.version}"
            return receipt.id

        proven = learn("Proven original", "refund an order", PLAIN, [True] * 20, None)
        learn("New version", "refund an order", IMPROVED, [True], proven)
        halves = [True, False] * 5
        learn("Close match", "refund a partial order", PLAIN, halves, None)

        print(f"{'':22}similarity  success rate  freshness  total")
        for match in memory.recall(ASKED, scope=SCOPE):
            score = match.score
            print(
                f"{names[match.reasonlet.id]:22}{score.similarity:10.3f}{score.success_rate:14.3f}"
                f"{score.freshness:11.3f}{score.total:7.3f}"
            )


if __name__ == "__main__":
    main()
