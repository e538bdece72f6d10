"""What the study is about: data sets, embedders, the profile taken apart, and their recordings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from attrs import evolve, frozen

import rankblend as rb
from rankblend.errors import RecordingError
from rankblend.experiment.datasets import Dataset, load_dataset
from rankblend.experiment.evaluate import remember_dataset
from rankblend.experiment.plans import subsets, without_signals
from rankblend.experiment.recording import Recording, record
from rankblend.experiment.recording._manifest import dataset_hash
from rankblend.profiles import RankingProfile
from studies.embedders import embedder_named

__all__ = [
    "PATHS",
    "Subject",
    "few_queries",
    "load_subject",
    "presets_compared",
    "recorded",
    "studied_profile",
]

PATHS = {
    "locomo": "locomo/locomo10.json",
    "bfcl": "bfcl_memory",
    "musique": "musique",
    "tau2-banking": "tau2_banking",
}
TITLES = {
    "locomo": "LoCoMo",
    "bfcl": "BFCL memory",
    "musique": "MuSiQue",
    "tau2-banking": "τ² banking",
}
DEPTH = 100
_UNDATED = datetime(2000, 1, 1, tzinfo=UTC)


@frozen(eq=False)
class Subject:
    """A data set as one embedder sees it.

    Attributes:
        name: Of the data set's loader.
        embedder: Name of the embedder.
        dataset: Its memories and judged queries.
        recording: Everything known about its queries.
    """

    name: str
    embedder: str
    dataset: Dataset
    recording: Recording

    @property
    def title(self) -> str:
        """The data set's name as people write it."""
        return TITLES[self.name]

    @property
    def clusters(self) -> int:
        """How many independent units its queries form."""
        return len(set(self.recording.clusters))


def studied_profile() -> RankingProfile:
    """``default`` without salience, which no public data set gives.

    An absent signal is left out of the mean of the present ones, so this ranks exactly as
    ``default`` does, while other policies do not have to fill a signal that nobody could have.
    """
    return without_signals(rb.load_profile("default"), ["salience"], name="default")


def presets_compared() -> dict[str, RankingProfile]:
    """The arms of the earlier findings that are no variant of the studied profile."""
    symfonic = rb.load_profile("symfonic")
    return {
        "keyword only": without_signals(
            studied_profile(), ["coverage", "similarity", "proximity"], name="keyword only"
        ),
        "rrf": rb.load_profile("rrf"),
        "convex": rb.load_profile("convex"),
        "symfonic": symfonic,
        "symfonic, overlap cue": without_signals(symfonic, ["similarity"], name="symfonic-overlap"),
    }


def few_queries(dataset: Dataset, limit: int | None) -> Dataset:
    """The data set with at most so many of its queries, evenly spread; all for None."""
    if limit is None or len(dataset.queries) <= limit:
        return dataset
    step = len(dataset.queries) // limit
    return evolve(dataset, queries=dataset.queries[::step][:limit])


def load_subject(
    name: str, embedder: str, *, data: Path, work: Path, limit: int | None = None
) -> Subject:
    """A data set with the recording that every subset of the studied profile's signals needs."""
    dataset = few_queries(load_dataset(name, data / PATHS[name]), limit)
    wanted = [arm.profile for arm in subsets(studied_profile()).plan.all_arms]
    if name == "locomo":
        wanted += presets_compared().values()
    return Subject(name, embedder, dataset, recorded(dataset, name, embedder, wanted, work=work))


def recorded(
    dataset: Dataset,
    name: str,
    embedder: str,
    profiles: Iterable[RankingProfile],
    *,
    work: Path,
) -> Recording:
    """The recording in the work folder; made when it is not there or is of something else."""
    path = work / f"{name}-{embedder}.rec"
    known = _opened(path, dataset)
    if known is not None:
        return known
    work.mkdir(parents=True, exist_ok=True)
    latest = _latest(dataset)
    with rb.Memory.open(
        ":memory:", embedder=embedder_named(embedder, work=work), clock=lambda: latest,
        allow_subtree=True,
    ) as memory:  # fmt: skip
        remember_dataset(memory, dataset)
        wanted = _distinct(profiles)
        try:
            return record(memory, dataset, out=path, profiles=wanted, depth=DEPTH, now=latest)
        except RecordingError:  # begun with other arguments or by another version
            unfinished = path.with_name(f"{path.name}.partial")
            for file in unfinished.glob("*"):
                file.unlink()
            return record(memory, dataset, out=path, profiles=wanted, depth=DEPTH, now=latest)


def _opened(path: Path, dataset: Dataset) -> Recording | None:
    if not path.is_file():
        return None
    try:
        recording = Recording.open(path)
    except RecordingError:
        path.unlink()
        return None
    if recording.manifest.dataset_hash != dataset_hash(dataset):
        path.unlink()
        return None
    return recording


def _distinct(profiles: Iterable[RankingProfile]) -> Sequence[RankingProfile]:
    return list({profile.hash: profile for profile in profiles}.values())


def _latest(dataset: Dataset) -> datetime:
    dates = [memory["at"] for memory in dataset.memories if memory.get("at")]
    dates += [query.now for query in dataset.queries if query.now]
    return max(dates, default=_UNDATED)
