"""Weights: what the operator believes each signal is worth."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from attrs import frozen
from numpy.typing import ArrayLike, NDArray

from rankblend.errors import InvalidArgumentError, InvalidWeightError
from rankblend.kernels.compose import scaled_weights, total_weight, weighted_scores
from rankblend.relevance._signals import (
    STANDARD_SIGNALS,
    RelevanceSignals,
    SignalTable,
    checked_names,
    real_matrix,
    refuse_outside,
)
from rankblend.values import is_identifier, real_number, shown


def checked_weights(weights: Iterable[tuple[str, object]]) -> tuple[tuple[str, float], ...]:
    """Names with finite weights ≥ 0, in the order given.

    Raises:
        InvalidArgumentError: A name is no identifier or occurs twice.
        InvalidWeightError: A weight is not a finite real number ≥ 0 (NaN, bools and strings are
            refused too; names the first), or the sum is infinite (name None).
    """
    found: dict[str, float] = {}
    for name, value in weights:
        if not is_identifier(name) or name in found:
            raise InvalidArgumentError(
                f"weights: expected distinct names of ASCII letters, digits and _, got {shown(name)}"
            )
        number = real_number(value)
        if number is None or not 0.0 <= number < math.inf:
            raise InvalidWeightError(name, value if number is None else number)
        found[name] = number
    total = total_weight(tuple(found.values()))
    if total == math.inf:
        raise InvalidWeightError(None, total)
    return tuple(found.items())


@frozen(init=False, repr=False)
class RelevanceWeights(Mapping[str, float]):
    """Finite weights ≥ 0 by signal name; a read-only mapping.

    The constructor keeps the five defaults and adds what is given; `only` takes just what is given.
    Sums run in the order of the weights: the five, then the others as given. Hence weights are
    equal when names and values are, order included: another order may differ in the last bit.

    Args:
        cue: Weight of ``cue``.
        salience: Weight of ``salience``.
        recency: Weight of ``recency``.
        frequency: Weight of ``frequency``.
        proximity: Weight of ``proximity``.
        others: Weights of any further signals.

    Raises:
        InvalidWeightError: A weight is not a finite real number ≥ 0, or the sum is not finite.
        InvalidArgumentError: A name is no identifier.

    Source: the five names and defaults are symfonic's.

    Example:
        >>> weights = RelevanceWeights(success_rate=0.3)
        >>> weights.compose(RelevanceSignals(cue=0.9, success_rate=0.5))  # (.9 + .15) / 1.3
        0.8076923076923077
    """

    _items: tuple[tuple[str, float], ...]

    def __init__(
        self,
        /,
        *,
        cue: float = 1.0,
        salience: float = 0.5,
        recency: float = 0.3,
        frequency: float = 0.2,
        proximity: float = 0.2,
        **others: float,
    ) -> None:
        standard = zip(
            STANDARD_SIGNALS, (cue, salience, recency, frequency, proximity), strict=True
        )
        self.__attrs_init__(checked_weights((*standard, *others.items())))

    @classmethod
    def only(cls, weights: Mapping[str, float] | Iterable[tuple[str, float]]) -> RelevanceWeights:
        """Weights without the five defaults: a signal not named has none."""
        made = cls()
        pairs = weights.items() if isinstance(weights, Mapping) else weights
        made.__attrs_init__(checked_weights(pairs))
        return made

    def compose(self, signals: RelevanceSignals) -> float:
        """Σ wᵢvᵢ / Σ wᵢ over the present signals.

        Args:
            signals: Of one memory. Signals without a weight are not read.

        Returns:
            In [0, 1]; 0.0 when nothing is present or the present weights sum to 0. The same bits as
            `compose_table` gives for that memory among any others.
        """
        if not isinstance(signals, RelevanceSignals):
            raise InvalidArgumentError(
                f"signals: expected RelevanceSignals, got {type(signals).__name__}"
            )
        present = signals.present()
        row = np.array([present.get(name, math.nan) for name in self], dtype=np.float64)
        return float(self._scores([row[at : at + 1] for at in range(len(row))], 1)[0])

    def compose_table(
        self, table: SignalTable | tuple[Iterable[str], ArrayLike]
    ) -> NDArray[np.float64]:
        """`compose` of every memory of a table.

        Args:
            table: A `SignalTable`, or column names (s) and a matrix (n, s), NaN for absent.

        Returns:
            Shape (n,), float64, in [0, 1].

        Raises:
            InvalidArrayError: The matrix does not fit the names.
            InvalidSignalError: A value of the matrix is infinite or outside [0, 1].
        """
        inspect: Callable[[slice], None] | None = None
        if isinstance(table, SignalTable):
            names, values = table.names, table.values
        else:
            names = checked_names(table[0])
            values = real_matrix(names, table[1])
            inspect = partial(refuse_outside, names, values)
        absent = np.broadcast_to(np.nan, len(values))
        place = {name: at for at, name in enumerate(names)}
        columns = [values[:, place[name]] if name in place else absent for name in self]
        return self._scores(columns, len(values), inspect=inspect)

    def _scores(
        self,
        columns: Sequence[NDArray[np.float64]],
        rows: int,
        *,
        inspect: Callable[[slice], None] | None = None,
    ) -> NDArray[np.float64]:
        weights = np.array([weight for _, weight in self._items], dtype=np.float64)
        with np.errstate(all="ignore"):  # a caller's settings must not make an underflow an error
            if columns:
                return weighted_scores(columns, scaled_weights(weights), inspect=inspect)[0]
            if inspect is not None:
                inspect(slice(None))
            return np.zeros(rows)

    def __getitem__(self, name: str) -> float:
        return dict(self._items)[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return (
            f"RelevanceWeights({', '.join(f'{name}={weight!r}' for name, weight in self._items)})"
        )
