"""The sign-flip test of paired differences, and Holm's correction.

Under the null hypothesis the baseline and the arm could have changed places on any unit, so the
difference of a whole unit is as likely with the other sign. Flipping the signs of units gives the
distribution of every row's statistic at once, and of the greatest among them: the share of flips in
which *any* row does as well as this one is its family-wise p. Picking the best of a thousand
profiles is then paid for, and the correlation between them is used.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen
from numpy.typing import ArrayLike, NDArray

from rankblend import limits
from rankblend.errors import InvalidArrayError
from rankblend.experiment.inference._intervals import TIE
from rankblend.experiment.inference._units import Units, check_differences


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Correct p values for all of them, family-wise, whatever their dependence.

    The i-th smallest of m (from 0) is multiplied by m − i; none falls below a smaller one's, none
    exceeds 1.

    Args:
        p: float64, shape (m,), in [0, 1]; NaN for what was not tested: it stays NaN and does not
            count.

    Returns:
        float64, shape (m,).

    Raises:
        InvalidArrayError: A value outside [0, 1], or another shape.

    Source: Holm, A simple sequentially rejective multiple test procedure, 1979.

    Example:
        >>> holm([0.01, 0.04, 0.03]).tolist()
        [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, np.float64)
    if values.ndim != 1 or bool(((values < 0.0) | (values > 1.0)).any()):
        raise InvalidArrayError("p", "values in [0, 1], shape (m,)", f"shape {values.shape}")
    adjusted = np.full(values.size, np.nan)
    order = np.argsort(values, kind="stable")[: int(np.count_nonzero(~np.isnan(values)))]
    steps = values[order] * np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


_CHUNK = 1_024
_EXACT_UNITS = 24  # 2^23 sign vectors are the most that are ever enumerated


@frozen(eq=False)
class SignFlipTest:
    """The result for r rows.

    Attributes:
        statistics: float64, shape (r,): Σ S / √(Σ S²) over the sums S of units; its sign is that of
            the mean difference, and the one-sample t of the sums is a rising function of it.
        p: float64, shape (r,), in (0, 1]: of each row alone, two-sided.
        p_family: float64, shape (r,), in (0, 1]: corrected for all rows (single-step max-T).
        exact: All sign vectors were enumerated; otherwise they were drawn.
        flips: How many sign vectors, the observed one included.
        smallest: The least p this test can give; with few units no difference, however great, is
            more surprising.
    """

    statistics: NDArray[np.float64]
    p: NDArray[np.float64]
    p_family: NDArray[np.float64]
    exact: bool
    flips: int
    smallest: float


def smallest_p(units: int, *, resamples: int = 10_000) -> float:
    """The least two-sided p that this many units and resamples allow: never 0.

    Example:
        >>> smallest_p(10)  # ten conversations: 2 of 1,024 sign vectors
        0.001953125
    """
    return 2.0 ** (1 - units) if _enumerates(units, resamples) else 1.0 / (resamples + 1)


def sign_flip_test(
    differences: NDArray[np.float64],
    units: Units,
    *,
    others: NDArray[np.float64] | None = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> SignFlipTest:
    """Test rows of paired differences.

    Statistics are studentized, so that rows of different variance compete as equals for the
    maximum. The sum of squares of a row is the same under every flip, so dividing by its root is
    enough: what it gives orders flips and rows as the t statistic does.

    Args:
        differences: float64, shape (r, q) or (q,): paired differences, one row a comparison.
        units: Of the q queries; their signs are flipped as wholes.
        others: float64, shape (m, G): differences tried at other times, summed over the same units;
            they take part in the maximum and get no p of their own.
        resamples: How many sign vectors are drawn, ≥ 1; where that many or fewer exist (up to
            mirror images), all of them are enumerated instead.
        seed: Of the random generator.

    Returns:
        p = (b + 1) / (B + 1) where B flips were drawn and b of them reach the observed statistic;
        the share of all sign vectors, the observed one among them, where they were enumerated.
        Never 0. A row without any difference has p = 1.

    Raises:
        InvalidArrayError: Differences or others that are not finite or of another shape.
        InvalidArgumentError: ``resamples`` or ``seed`` beyond `rankblend.limits`.

    Source: Westfall and Young, Resampling-Based Multiple Testing, 1993 (single-step max-T); Phipson
    and Smyth, Permutation p-values should never be zero, 2010; for retrieval: Boytsov, Belova and
    Westfall, Deciding on an adjustment for multiplicity in IR experiments, SIGIR 2013.
    """
    limits.check(resamples=resamples, seed=seed)
    sums = units.sums(check_differences(differences))
    rows = len(sums)
    if others is not None:
        if others.shape[1:] != (len(units),) or not np.isfinite(others).all():
            raise InvalidArrayError("others", f"finite, (m, {len(units)})", f"{others.shape}")
        sums = np.concatenate([sums, others])
    # What rounding leaves of no difference must not be scaled up to look like one.
    sums = np.where(np.abs(sums) <= TIE * units.sizes, 0.0, sums)
    norms = np.sqrt((sums * sums).sum(axis=1))
    scaled = np.divide(sums, norms[:, None], out=np.zeros_like(sums), where=norms[:, None] > 0.0)
    observed = scaled[:rows].sum(axis=1)
    count = len(units)
    # Flips that only change the order of a sum may differ by rounding; they count as reaching it.
    slack = 4.0 * np.finfo(np.float64).eps * count**1.5
    reach, reach_family = np.zeros(rows), np.zeros(rows)
    exact = _enumerates(count, resamples)
    total = 2 ** (count - 1) if exact else resamples
    generator = np.random.default_rng(seed)
    bar = np.abs(observed) - slack
    for start in range(0, total, _CHUNK):
        size = min(_CHUNK, total - start)
        signs = _vectors(start, size, count) if exact else _drawn(generator, size, count)
        flipped = np.abs(signs @ scaled.T)
        reach += (flipped[:, :rows] >= bar).sum(axis=0)
        reach_family += (flipped.max(axis=1, initial=0.0)[:, None] >= bar).sum(axis=0)
    if not exact:
        reach, reach_family, total = reach + 1, reach_family + 1, total + 1
    return SignFlipTest(
        observed, reach / total, reach_family / total, exact,
        2 * total if exact else total, smallest_p(count, resamples=resamples),
    )  # fmt: skip


def _enumerates(units: int, resamples: int) -> bool:
    return units <= _EXACT_UNITS and 2 ** (units - 1) <= resamples


def _vectors(start: int, size: int, count: int) -> NDArray[np.float64]:
    """Sign vectors by number; the first unit keeps its sign, since |−x| = |x|."""
    numbers = np.arange(start, start + size, dtype=np.int64)
    bits = (numbers[:, None] >> np.arange(count - 1, dtype=np.int64)) & 1
    return np.concatenate([np.ones((size, 1)), 1.0 - 2.0 * bits], axis=1)


def _drawn(generator: np.random.Generator, size: int, count: int) -> NDArray[np.float64]:
    drawn = np.frombuffer(generator.bytes(size * ((count + 7) // 8)), np.uint8)
    bits = np.unpackbits(drawn.reshape(size, -1), axis=1, count=count)
    signs = bits.astype(np.float64)
    signs *= -2.0
    signs += 1.0
    return signs
