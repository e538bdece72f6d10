"""The same question under every shipped profile: which memories lead, and how far apart they are.

    python examples/compare_profiles.py

All profiles rank the same memories with the same stores; only the recipe differs.
"""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

import rankblend as rb
from rankblend.demo import QUESTION, SCOPE, open_demo


def main() -> None:
    console = Console()
    table = Table("profile", "first", "second", "third", "in common", box=None, header_style="dim")
    with open_demo(embedder=rb.embedders.wordllama()) as memory:
        reference = memory.recall(QUESTION, scope=SCOPE)
        for name in rb.profile_names():
            recall = memory.recall(QUESTION, scope=SCOPE, profile=name)
            shared = len(set(recall.ids) & set(reference.ids))
            leading = (*recall.ids[:3], "", "", "")[:3]
            table.add_row(name, *leading, f"{shared} of {len(reference)}")
        console.print(table)

        crewai = memory.recall(QUESTION, scope=SCOPE, profile="crewai")
        console.print(reference.compare(crewai))
        first, second = reference.ids[:2]
        swap = reference.swap(first, second)
        console.print(f"{second} would lead {first} with {swap}")


if __name__ == "__main__":
    main()
