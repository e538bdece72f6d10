"""A ranking of your own is a file: it extends a preset, changes two weights and has a hash.

python examples/own_profile.py
"""

from __future__ import annotations

from pathlib import Path

import rankblend as rb
from rankblend.demo import QUESTION, SCOPE, open_demo

MINE = """
name = "mine"
source = "crewai, but what matters counts more than what is new"
extends = ["crewai"]

[score.weights]
recency = 0.1
importance = 0.4

[floors]
similarity = { min = 0.05, absent = "pass" }
"""


def main() -> None:
    Path("mine.toml").write_text(MINE, encoding="utf-8")
    mine, theirs = rb.load_profile("mine.toml"), rb.load_profile("crewai")
    print(f"{mine.name} {mine.hash[:12]}, {theirs.name} {theirs.hash[:12]}")
    for path, value, origin in mine.describe():
        if origin != "default":
            print(f"{path:<30} {value!s:<40} {origin}")
    with open_demo(embedder=rb.embedders.wordllama()) as memory:
        before = memory.recall(QUESTION, scope=SCOPE, profile=theirs)
        after = memory.recall(QUESTION, scope=SCOPE, profile=mine)
        for move in before.compare(after).moves:
            print(f"{move.before or '-':>3} → {move.after or '-':<3} {move.id}")

    # A mistake is found when the file is loaded, with its place and the name you may have meant.
    Path("wrong.toml").write_text(MINE.replace("similarity", "similarty"), encoding="utf-8")
    try:
        rb.load_profile("wrong.toml")
    except rb.RankblendError as error:
        print(error)


if __name__ == "__main__":
    main()
