"""The first ten lines: remember two things, ask one question, see why the answer is what it is.

python examples/first_ten_lines.py
"""

from __future__ import annotations

import rankblend as rb

with rb.Memory.open("notes.db", embedder=rb.embedders.wordllama()) as memory:
    ana = rb.Scope.parse("tenant:acme/user:7")
    memory.remember("Ana prefers refunds by bank transfer", scope=ana, salience=0.8)
    memory.remember("Refunds over 500 need approval", scope="tenant:acme")

    recall = memory.recall("how do we refund Ana?", scope=ana)
    for match in recall:
        print(match.rank, f"{match.score:.3f}", match.memory.text)
    print(recall.explain(0))
    print(memory.recall("how do we refund Ana?", scope=ana, profile="mw-memory").explain(0))
