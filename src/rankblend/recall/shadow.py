"""Two orders of one pool side by side: what was served and what a reranker would have served."""

from __future__ import annotations

from attrs import frozen

__all__ = ["Shadow"]


@frozen
class Shadow:
    """What reranking would have changed.

    Attributes:
        served: Ids of the result, best first.
        reranked: Ids of the result that reranking would have given, best first.
    """

    served: tuple[str, ...]
    reranked: tuple[str, ...]

    @property
    def moves(self) -> tuple[tuple[str, int | None, int | None], ...]:
        """(id, rank served, rank reranked) of all that moved, ranks from 1, None for not shown.

        By the better of its two ranks, then by id.
        """
        here = {identifier: rank for rank, identifier in enumerate(self.served, 1)}
        there = {identifier: rank for rank, identifier in enumerate(self.reranked, 1)}
        moved = [
            (identifier, here.get(identifier), there.get(identifier))
            for identifier in here.keys() | there.keys()
            if here.get(identifier) != there.get(identifier)
        ]
        return tuple(sorted(moved, key=lambda m: (min(r for r in m[1:] if r is not None), m[0])))

    def plain(self) -> dict[str, object]:
        """JSON-ready values."""
        return {
            "served": list(self.served),
            "reranked": list(self.reranked),
            "moves": [
                {"id": identifier, "served": here, "reranked": there}
                for identifier, here, there in self.moves
            ],
        }
