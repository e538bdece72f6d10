"""Scores in single precision decide only what they can; what they cannot is told."""

from __future__ import annotations

import numpy as np
import pytest

from rankblend.experiment.plans import Arm
from rankblend.experiment.recording._pools import Demand
from rankblend.experiment.replay import _blocks as ranks
from rankblend.experiment.replay._arms import Run
from rankblend.experiment.replay._batches import WeightBatch, batches
from rankblend.experiment.replay._blocks import Workspace, error_bound, exact_scores, quotients
from rankblend.experiment.replay._tables import BlockTable, stacked
from rankblend.profiles import Floors, RankingProfile, SignalRecipe
from rankblend.relevance import MissingPolicy, Neutral, Node, Renormalize, Require, Shrink, Zero

NAMES = ("salience", "confidence", "review")


def batch_of(
    rows: list[list[float]],
    missing: MissingPolicy,
    *,
    floor: float | None = None,
    compose: str = "weighted_mean",
) -> WeightBatch:
    runs = [
        Run(
            number,
            Arm(
                f"w{number}",
                RankingProfile(
                    "any", Node(compose, zip(NAMES, row, strict=True), missing=missing),
                    signals={name: SignalRecipe(name) for name in NAMES}, floors=Floors(floor),
                ),
            ),
            Demand(9, 9, False, ("catalog",), (), ("catalog",), NAMES, 0),
        )
        for number, row in enumerate(rows)
    ]  # fmt: skip
    (made,), others = batches(runs)
    assert not others
    return made


def table_of(rng: np.random.Generator, sizes: list[int], fill: float) -> BlockTable:
    m = sum(sizes)
    present = rng.random((3, m)) < 0.6
    values = np.where(present, rng.random((3, m)), fill)
    return BlockTable(
        np.cumsum([0, *sizes]), values, present, np.zeros(m, np.int64), np.full(m, np.nan),
        np.zeros((3, len(sizes))),
    )  # fmt: skip


@pytest.mark.parametrize(
    "missing", [Renormalize(), Zero(), Neutral(0.3), Shrink(0.4, 2.0)], ids=lambda one: str(one)
)
def test_quotients_when_beside_exact_scores_then_within_half_the_bound(
    missing: MissingPolicy,
) -> None:
    rng = np.random.default_rng(1)
    batch = batch_of([*(10.0 ** rng.uniform(-9, 9, (40, 3))).tolist(), [0.0, 1.0, 0.0]], missing)
    fill = missing.value if isinstance(missing, Neutral) else 0.0
    table = table_of(rng, [0, 3, 70, 64, 700], fill)
    assert batch.terms is not None
    k, bound = len(batch), error_bound(batch.terms.shape[1])
    seen = 0
    for stack in stacked(table, batch):
        near = quotients(stack, batch.terms, Workspace()).copy()
        arms, queries = np.divmod(np.arange(k * len(stack)), len(stack))
        with np.errstate(all="ignore"):
            exact, dropped = exact_scores(stack, batch, queries, arms, Workspace())
        assert (near[dropped] == -1.0).all()
        assert (np.abs(near - exact)[~dropped] <= bound / 2).all()
        seen += int((~dropped).sum())
    assert seen == k * table.values.shape[1]


@pytest.mark.parametrize(
    ("rows", "missing", "floor"),
    [
        ([[1.0, 1.0, 1e-30]], Renormalize(), None),
        ([[1.0, 1.0, 1.0]], Shrink(0.5, 0.0), None),
        ([[1.0, 1.0, 1.0]], Require(0.5), None),
        ([[1.0, 1.0, 1.0]], Renormalize(), 0.2),
    ],
    ids=["uneven weights", "prior without a pull", "coverage", "floor"],
)
def test_batch_when_quotients_could_not_tell_then_has_no_terms(
    rows: list[list[float]], missing: MissingPolicy, floor: float | None
) -> None:
    assert batch_of(rows, missing, floor=floor).terms is None


def test_batch_when_a_sum_shrinks_then_has_no_terms() -> None:
    """Where nothing is present the prior stands; the quotient would pull it toward nothing."""
    shrink = Shrink(0.9, 1.0)
    assert batch_of([[1.0, 1.0, 0.0]], shrink, compose="weighted_sum").terms is None
    assert batch_of([[1.0, 1.0, 0.0]], shrink).terms is not None


@pytest.mark.parametrize("width", [8, 152, 2_040, 2_048, 5_000])
def test_count_when_rows_are_long_then_as_count_nonzero(width: int) -> None:
    marks = np.random.default_rng(2).random((5, width)) < 0.99
    marks[0] = True
    assert ranks._count(marks).tolist() == np.count_nonzero(marks, axis=1).tolist()


@pytest.mark.parametrize("width", [8, 16, 152, 504])
@pytest.mark.parametrize("depth", [1, 10, 100])
def test_bound_when_beside_the_score_at_the_cutoff_then_never_above_it(
    width: int, depth: int
) -> None:
    scores = np.random.default_rng(3).random((50, width)).astype(np.float32)
    bound = ranks._bound(scores, depth, Workspace())
    if depth >= width:
        assert (bound == -1.0).all()
    else:
        assert (bound <= np.sort(scores, axis=1)[:, width - depth]).all()
        assert (bound > -1.0).all()
