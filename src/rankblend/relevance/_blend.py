"""Scope blending as a value: how the score folds with the distance into the rank score."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from attrs import field, frozen
from numpy.typing import ArrayLike, NDArray

from rankblend.checks import Problems
from rankblend.kernels import blend as kernel
from rankblend.values import shown


class ScopeBlendMode(StrEnum):
    """Whether and how distance counts."""

    OFF = "off"  # distance does not matter
    BLEND = "blend"  # a score is discounted with distance
    BACKFILL = "backfill"  # everything of the own scope comes before anything of an ancestor


def _as_mode(value: object) -> object:
    """The mode named, or the value itself, to be reported with all other problems."""
    modes: dict[object, ScopeBlendMode] = {mode.value: mode for mode in ScopeBlendMode}
    return modes.get(value, value) if isinstance(value, str) else value


@frozen
class ScopeBlend:
    """Folds a memory's distance into its score, for ordering only.

    Args:
        mode: A ``ScopeBlendMode`` or its text.
        half_life_levels: How many levels halve the gate, finite and > 0.
        floor: What the gate never falls below, in [0, 1].

    Raises:
        InvalidArgumentError: All invalid arguments at once.

    Example:
        >>> ScopeBlend("backfill").rank_score(1.0, 1), ScopeBlend("backfill").rank_score(0.0, 0)
        (0.25, 0.5)
    """

    mode: ScopeBlendMode = field(default=ScopeBlendMode.OFF, converter=_as_mode)
    half_life_levels: float = 1.0
    floor: float = 0.0

    def __attrs_post_init__(self) -> None:
        problems = Problems(show=shown)
        if not isinstance(self.mode, ScopeBlendMode):
            problems.unknown("mode", "mode", self.mode, list(ScopeBlendMode))
        half_life = problems.number("half_life_levels", self.half_life_levels, above=0.0)
        floor = problems.number("floor", self.floor, least=0.0, most=1.0)
        problems.raise_if_any()
        object.__setattr__(self, "half_life_levels", half_life)
        object.__setattr__(self, "floor", floor)

    def gate(self, distance: int) -> float:
        """What a score counts for at this distance: 1 at the own scope and when off.

        Raises:
            MemoryContractError: The distance is negative: not visible.
        """
        return float(self.gates([distance])[0])

    def gates(self, distances: ArrayLike) -> NDArray[np.float64]:
        """``gate`` of many: whole numbers of shape (n,) to float64 of shape (n,), the same bits."""
        if self.mode is ScopeBlendMode.OFF:
            return kernel.ungated(distances)
        return kernel.gates(distances, half_life_levels=self.half_life_levels, floor=self.floor)

    def rank_score(self, score: float, distance: int) -> float:
        """The score in [0, 1] after blending, in [0, 1].

        Off and blend: score · gate. Backfill: 0.5 + half of that at the own scope, half of it and
        strictly below 0.5 at an ancestor.

        Raises:
            InvalidArrayError: The score is not a finite number in [0, 1].
            MemoryContractError: The distance is negative: not visible.
        """
        return float(self.rank_scores([score], [distance])[0])

    def rank_scores(
        self,
        scores: ArrayLike,
        distances: ArrayLike,
        *,
        gates: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """``rank_score`` of many, float64 of shape (n,), the same bits.

        ``gates`` are those of the distances, where somebody has them already.
        """
        gated = kernel.blended(scores, self.gates(distances) if gates is None else gates)
        return kernel.backfilled(gated, distances) if self.mode == "backfill" else gated
