"""``rankblend fit``: weights learned from judgments, judged on queries they have not seen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray
from rich.text import Text

from rankblend.cli.console import errors, output, print_json, say
from rankblend.cli.options import OUTPUT, AsJson, Measure, Profile, RecordingFile, number
from rankblend.cli.replaying import contrast_table
from rankblend.experiment.fit import fit_weights
from rankblend.experiment.recording import Recording
from rankblend.experiment.replay import replay
from rankblend.files import write_whole
from rankblend.profiles import RankingProfile, dump_profile, load_profile

__all__ = ["fit"]


def fit(
    recording: RecordingFile,
    out: Annotated[Path, typer.Option("--out", help="The fitted profile, a .toml."), OUTPUT],
    profile: Profile = "default",
    measure: Measure = "nDCG@10",
    folds: Annotated[int, number("folds", "--folds", "Of clusters, for the comparison")] = 5,
    seed: Annotated[int, number("seed", "--seed", "Of folds and starting points")] = 0,
    as_json: AsJson = False,
) -> None:
    """Fit the weights of a profile to a recording's judgments.

    The comparison with the profile as it was, and with equal weights, is on queries whose cluster
    the weights were not fitted on; the profile that is written is fitted on all of them.
    """
    opened = Recording.open(recording)

    def evaluate(profiles: Sequence[RankingProfile]) -> NDArray[np.float64]:
        arms = {f"{n}": one for n, one in enumerate(profiles)}
        return replay(opened, arms, [measure]).measure(measure)

    with errors.status("fitting"):
        found = fit_weights(
            load_profile(profile), evaluate, queries=opened.ids, clusters=opened.clusters,
            measure=measure, dataset=opened.manifest.dataset, folds=folds, seed=seed,
        )  # fmt: skip
    write_whole(out, dump_profile(found.profile))
    if as_json:
        print_json(
            {
                "weights": dict(found.weights), "seen": found.seen, "tried": found.tried,
                "hash": found.profile.hash, **found.comparison.plain(),
            }
        )  # fmt: skip
        return
    shown = "  ".join(f"{name} {weight:.3f}" for name, weight in found.weights.items())
    output.print(Text(shown, "bold"))
    output.print(contrast_table(found.comparison))
    say(
        f"on the queries they were fitted on: {found.seen:.4f}; {found.tried:,} weightings "
        f"tried; written to {out}",
        "dim",
    )
