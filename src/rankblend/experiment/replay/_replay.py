"""Replaying a recording: any number of profiles measured without asking a store anything."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
from attrs import evolve

from rankblend.checks import Problems
from rankblend.errors import MissingDependencyError
from rankblend.experiment.measures import Measure, parse_measures
from rankblend.experiment.plans import Arm
from rankblend.experiment.recording import Recording
from rankblend.experiment.replay._arms import Arms, Run, prepare, read_arms
from rankblend.experiment.replay._batches import batches
from rankblend.experiment.replay._blocks import BlockResult, Work, run_block
from rankblend.experiment.results import Results
from rankblend.limits import LIMITS
from rankblend.recall import Reranker

_TASKS = 4  # per process
_LOOK = 0.2  # seconds between looks whether a worker's parent is there
DEFAULT_MEASURES = ("nDCG@10", "R@10")


def replay(
    recording: Recording,
    profiles: Arms,
    measures: Iterable[str | Measure] = DEFAULT_MEASURES,
    *,
    top: int = 100,
    reranker: Reranker | None = None,
    n_jobs: int = 1,
    progress: Callable[[int], object] | None = None,
) -> Results:
    """Measure profiles on the recorded queries, exactly as live recalls would have come out.

    Arms that differ only in the weights of a weighted mean or sum are run together; the order of
    their results is never made, only the ranks of the judged memories are counted. Everything else
    goes through `rank_candidates`, as a recall does. Both give the same numbers.

    Args:
        recording: The recording.
        profiles: A plan (its baseline becomes the first arm), a mapping from names to profiles, or
            several profiles or arms.
        measures: Names such as ``nDCG@10``; see `rankblend.experiment.measures`.
        top: Depth of every result, from 1, in place of the profiles' own.
        reranker: Decides, as in a recall, whether the rerank score of a profile that wants it
            serves; asked once an arm. None: never.
        n_jobs: Processes, by joblib, whose ``parallel_config`` also carries the work to a cluster.
            Every process opens the recording by its path, and ends with the one that asked. −1 takes
            all processors; no more than there are.
        progress: Told how many queries are done, block by block.

    Returns:
        The measures of every arm on every query. Queries without judgments are NaN. An arm that
        cannot be run, because the recording lacks what it reads or its stores disagree, is in
        ``not_run`` with the reason, and NaN.

    Raises:
        InvalidArgumentError: The arguments.
        RecordingError: No arm can be run on this recording.
        MissingDependencyError: ir-measures, or joblib for more than one process, is not installed.
    """
    parsed = parse_measures(measures)
    _check(top, n_jobs)
    arms, skipped = read_arms(profiles)
    runs, refused, notes = prepare(arms, recording.manifest, reranker)
    grouped, others = batches(runs)
    if not all(measure.fast for measure in parsed):
        grouped, others = [], runs
    work = Work(len(arms), tuple(grouped), tuple(others), parsed, top)
    found = []
    for result in _results(recording, work, n_jobs):
        found.append(result)
        if progress is not None:
            progress(result.empty.shape[1])
    not_run = {**skipped, **refused}
    for result in found:
        for number, why in result.failed.items():
            not_run.setdefault(arms[number].name, why)
    values = {
        measure.name: np.concatenate([part.values[measure.name] for part in found], axis=1)
        for measure in parsed
    }
    empty = np.concatenate([part.empty for part in found], axis=1)
    coverage = np.concatenate([part.coverage for part in found], axis=1)
    stopped = [number for number, arm in enumerate(arms) if arm.name in not_run]
    for table in (*values.values(), coverage):
        table[stopped] = np.nan
    empty[stopped] = False
    return Results(
        arms=tuple(arm.name for arm in arms),
        hashes=_hashes(arms, runs),
        queries=recording.ids,
        clusters=recording.clusters,
        families=recording.families,
        values=values,
        judged=recording.judgments.judged,
        empty=empty,
        not_run=not_run,
        coverage=coverage,
        manifest=_manifest(recording, parsed, top, notes),
    )


def _check(top: object, n_jobs: object) -> None:
    problems = Problems()
    LIMITS["top"].hold(problems, "top", top)
    # As many processes as this machine has processors, or a cluster that joblib was told of.
    jobs, joblib = LIMITS["n_jobs"], sys.modules.get("joblib")
    if joblib is not None:
        jobs = evolve(jobs, most=max(jobs.most, joblib.effective_n_jobs(-1)))
    jobs.hold(problems, "n_jobs", n_jobs)
    problems.raise_if_any()


def _hashes(arms: Sequence[Arm], runs: Iterable[Run]) -> tuple[str, ...]:
    run = {each.number: each.hash for each in runs}
    return tuple(run.get(number, arm.hash) for number, arm in enumerate(arms))


def _results(recording: Recording, work: Work, n_jobs: int) -> Iterator[BlockResult]:
    """The blocks in order, one by one or by several processes."""
    if n_jobs == 1:
        return (run_block(block, work) for block in recording.blocks())
    try:
        import joblib
    except ImportError:
        raise MissingDependencyError(
            "joblib", "experiments", "replay by several processes"
        ) from None
    # A task takes several blocks, because every task carries all profiles with it.
    tasks = min(recording.block_count, _TASKS * joblib.effective_n_jobs(n_jobs))
    parts = np.array_split(np.arange(recording.block_count), tasks)
    # Workers of a cluster have a life of their own.
    own = type(joblib.parallel.get_active_backend()[0]).__name__ == "LokyBackend"
    start = {"initializer": _end_with, "initargs": (os.getpid(),)} if own else {}
    found: Iterable[list[BlockResult]] = joblib.Parallel(n_jobs=n_jobs, **start)(
        joblib.delayed(_run_blocks)(recording, part.tolist(), work) for part in parts
    )
    return chain.from_iterable(found)


def _run_blocks(recording: Recording, numbers: list[int], work: Work) -> list[BlockResult]:
    return [run_block(recording.block(number), work) for number in numbers]


def _end_with(parent: int) -> None:
    """Let a worker end when the process that started it does, however that ended.

    After a kill joblib's workers go on with what they have and wait for more, for minutes. On
    Windows, where a process keeps the number of a parent that is gone, they still do.

    Args:
        parent: The process that started it.
    """

    def watch() -> None:
        while os.getppid() == parent:  # nothing portable waits for a parent
            time.sleep(_LOOK)
        os._exit(1)

    threading.Thread(target=watch, name="rankblend-parent", daemon=True).start()


def _manifest(
    recording: Recording, measures: Iterable[Measure], top: int, notes: dict[str, tuple[str, ...]]
) -> dict[str, Any]:
    return {
        **recording.manifest.plain(),
        "query_hash": recording.query_hash,
        "measures": {measure.name: measure.definition for measure in measures},
        "top": top,
        "notes": {arm: list(remarks) for arm, remarks in notes.items()},
    }
