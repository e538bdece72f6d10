"""Recording: every query of a data set asked once, deep enough for any profile to be replayed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import evolve

from rankblend import limits
from rankblend.errors import InvalidArgumentError, RecordingError
from rankblend.experiment.datasets import Dataset, JudgedQuery
from rankblend.experiment.recording._arrow import Unfinished, import_pyarrow, rows_to_batch
from rankblend.experiment.recording._gather import Round, Row, gather
from rankblend.experiment.recording._manifest import Manifest, RecordedStore, dataset_hash
from rankblend.experiment.recording._pools import seeding_of
from rankblend.experiment.recording._recording import Recording
from rankblend.files import refuse
from rankblend.profiles import (
    Pool,
    RankingProfile,
    Select,
    SignalRecipe,
    load_profile,
    profile_names,
)
from rankblend.recall import Memory, StoredMemory
from rankblend.relevance import CurveStep, Node, ScopeBlend, lookup_evidence, parse_curve
from rankblend.stores import Key, SupportsVectors
from rankblend.version import __version__

_EVERYTHING = 1_000_000  # the greatest pool a profile may have


def asking_profile(
    stores: Collection[RecordedStore], proposing: Collection[str], *, depth: int, by_level: bool
) -> RankingProfile:
    """A profile whose recall has all evidence on everything that some stores propose.

    The score reads what the proposing stores emit; everything else is read as a tie-break, which
    makes a store observe and not propose. Diversity and a token cap make a recall fetch vectors and
    token counts. Nothing is shown, so nothing of it is computed.

    Args:
        stores: All of them.
        proposing: Names of those that propose.
        depth: Proposals of each.
        by_level: Level by level, or over all levels.
    """
    signals: dict[str, SignalRecipe] = {}
    scored: list[str] = []
    observed: list[str] = []
    for store in stores:
        for evidence in store.recorded:
            name = f"s{len(signals)}"
            signals[name] = SignalRecipe(f"{store.name}.{evidence}", curve=_any_curve(evidence))
            (scored if store.name in proposing else observed).append(name)
    return RankingProfile(
        "recording",
        Node.of("strongest", *scored),
        signals=signals,
        ties=tuple(observed),
        pool=Pool(depth, _EVERYTHING),
        scope=ScopeBlend("blend" if by_level else "off"),
        select=Select(top=0, max_tokens=1, diversity=0.5),
    )


def _any_curve(evidence: str) -> tuple[CurveStep, ...]:
    """A curve that takes this evidence; its values are of no interest."""
    kind = lookup_evidence(evidence)
    unit = "signal" if kind is None else kind.unit
    if unit == "seconds":
        return parse_curve({"half_life": {"days": 1}})
    return parse_curve("reciprocal" if unit == "hops" else "clip")


DEFAULT_DEPTH = 100
_BATCH = 32  # queries whose work is lost at most when a recording is interrupted


def record(
    memory: Memory,
    dataset: Dataset,
    *,
    out: str | os.PathLike[str],
    profiles: Iterable[RankingProfile | str] | None = None,
    depth: int | None = None,
    evidence: Collection[str] | None = None,
    now: datetime | None = None,
    filters: Mapping[str, object] | None = None,
    prefer: Mapping[str, object] | None = None,
    progress: Callable[[int], object] | None = None,
) -> Recording:
    """Ask a memory every query of a data set and keep everything any profile could need.

    Each store's proposals, overall and level by level, and all evidence on every candidate, with
    the reason where it is absent. Reads never reinforce. A store that fails ends the recording with
    its error: evidence that is absent only because of a failure must not look like a finding.

    An interrupted recording leaves finished batches in ``<out>.partial``; calling this again with
    the same arguments goes on from there. The file appears whole or not at all. If ``out`` already
    is the recording that would be made, it is opened.

    Args:
        memory: Holds the data set.
        dataset: Its queries are asked at their scope with the data set's reach.
        out: Path of the recording.
        profiles: Profiles whose replay shall be exact where a graph starts from other stores'
            proposals; None for all that are known by name. Any other profile can be replayed too:
            it is exact unless it reads a seeded store and its score reads a set of stores that none
            of these reads; its graph then keeps the seeds of all stores, and the results say so.
        depth: Proposals of each store and level; None for the greatest ``pool.size`` of the
            profiles, at least 100.
        evidence: Names of what to record (``cosine``, ``store.cosine``); None for everything.
        now: When queries without a time of their own are asked; None for the present.
        filters: Hard conditions of every query, as for `Memory.recall`.
        prefer: Soft ones; the satisfied share becomes evidence.
        progress: Told how many queries are done, batch by batch, those of an earlier run included.

    Returns:
        The recording.

    Raises:
        InvalidArgumentError: The arguments, all problems at once.
        RecordingError: ``out`` or its unfinished part was made of something else.
        StoreFailedError, StoreTimeoutError: A store failed.
        MissingDependencyError: pyarrow is not installed (extra ``experiments``).
    """
    import_pyarrow()
    recipes = [load_profile(one) for one in (profile_names() if profiles is None else profiles)]
    _check(depth, now, dataset)
    stores = _stores(memory, evidence)
    manifest = Manifest(
        dataset=dataset.name,
        licence=dataset.licence,
        dataset_hash=dataset_hash(dataset),
        queries=len(dataset.queries),
        excluded=dict(dataset.excluded),
        memories=len(memory),
        embedder=memory.embedder,
        statistics=memory.statistics,
        reach=dataset.reach,
        stores=stores,
        seedings=_seedings(recipes, stores),
        depth=depth or max([DEFAULT_DEPTH, *(recipe.pool.size for recipe in recipes)]),
        levels=max(len(query.scope) for query in dataset.queries),
        now=(now or datetime.now(UTC)).timestamp(),
        arguments=json.dumps({"filters": filters, "prefer": prefer}, sort_keys=True, default=str),
        rankblend=__version__,
    )
    path = Path(out)
    if path.exists():
        return _finished(path, manifest, timed=now is not None)
    refuse(path)
    unfinished = Unfinished(path)
    manifest = _resumed(unfinished, manifest, timed=now is not None)
    asking = _Recorder(memory, dataset, manifest, {"filters": filters, "prefer": prefer})
    for number, start in enumerate(range(0, len(dataset.queries), _BATCH)):
        batch = dataset.queries[start : start + _BATCH]
        if number >= unfinished.done():
            rows = [asking.row(query) for query in batch]
            unfinished.put(number, rows_to_batch(rows, asking.look_up))
        if progress is not None:
            progress(len(batch))
    unfinished.finish(manifest)
    return Recording.open(path)


class _Recorder:
    """Asks one memory every query in all the ways a recording needs."""

    def __init__(
        self, memory: Memory, dataset: Dataset, manifest: Manifest, arguments: Mapping[str, Any]
    ) -> None:
        self.memory, self.dataset, self.manifest = memory, dataset, manifest
        self.arguments = arguments
        seeded = [store.name for store in manifest.stores if store.seeded]
        self.profiles = [
            (number, asking_profile(manifest.stores, [*seeding, *seeded], depth=manifest.depth,
                                    by_level=by_level))
            for number, seeding in enumerate(manifest.seedings)
            for by_level in (False, True)
        ]  # fmt: skip
        self._stored: dict[Key, StoredMemory] = {}

    def row(self, query: JudgedQuery) -> Row:
        """One query."""
        now = query.now or datetime.fromtimestamp(self.manifest.now, UTC)
        asked = [
            Round(
                seeding,
                self.memory.recall(
                    query.text, scope=query.scope, reach=self.dataset.reach, profile=profile,
                    now=now, strict=True, **self.arguments,
                ),
            )
            for seeding, profile in self.profiles
        ]  # fmt: skip
        return gather(query, now.timestamp(), asked, self.manifest)

    def look_up(self, key: Key) -> StoredMemory:
        """A memory as it is stored."""
        if key not in self._stored:
            self._stored[key] = self.memory.get(key.id, scope=key.scope)
        return self._stored[key]


def _check(depth: object, now: object, dataset: Dataset) -> None:
    problems = [] if depth is None else limits.beyond(depth=depth)
    if now is not None and (not isinstance(now, datetime) or now.tzinfo is None):
        problems.append("now: expected an aware datetime")
    if not dataset.queries:
        problems.append("dataset: has no queries, so there is nothing to record")
    if problems:
        raise InvalidArgumentError(problems)


def _stores(memory: Memory, evidence: Collection[str] | None) -> tuple[RecordedStore, ...]:
    """The stores that give evidence, with what of it is to be recorded."""
    stores = []
    for name, store in memory.stores.items():
        recorded = tuple(
            one
            for one in store.emits
            if evidence is None or one in evidence or f"{name}.{one}" in evidence
        )
        stores.append(
            RecordedStore(
                name,
                type(store).__name__,
                tuple(store.emits),
                recorded,
                bool(getattr(store, "seeded", False)),
                isinstance(store, SupportsVectors) and store.dimension is not None,
            )
        )
    holding = [store.name for store in stores if store.holds_vectors]
    stores = [evolve(store, holds_vectors=store.name in holding[:1]) for store in stores]
    unknown = sorted(
        name
        for name in evidence or ()
        if not any(
            name in s.emits or name in [f"{s.name}.{one}" for one in s.emits] for s in stores
        )
    )
    if unknown:
        raise InvalidArgumentError(f"evidence: no store emits {name!r:.60}" for name in unknown)
    if not any(store.recorded for store in stores):
        raise InvalidArgumentError("evidence: expected at least one name")
    return tuple(stores)


def _seedings(
    profiles: Iterable[RankingProfile], stores: Collection[RecordedStore]
) -> tuple[tuple[str, ...], ...]:
    """All stores first; then what each profile's score reads beside seeded stores."""
    everyone = tuple(store.name for store in stores if store.recorded and not store.seeded)
    found = dict.fromkeys([everyone])
    if any(store.recorded and store.seeded for store in stores):
        found |= dict.fromkeys(
            seeding for profile in profiles if (seeding := seeding_of(profile, stores)) is not None
        )
    return tuple(found)


def _resumed(unfinished: Unfinished, manifest: Manifest, *, timed: bool) -> Manifest:
    """Go on with what is there, at its time unless one was given; or start afresh."""
    begun = unfinished.manifest()
    if begun is None:
        unfinished.begin(manifest)
        return manifest
    wanted = manifest if timed else manifest.at(begun.now)
    _same(begun, wanted, unfinished.folder)
    return wanted


def _finished(path: Path, manifest: Manifest, *, timed: bool) -> Recording:
    recording = Recording.open(path)
    wanted = manifest if timed else manifest.at(recording.manifest.now)
    _same(recording.manifest, wanted, path)
    return recording


def _same(found: Manifest, wanted: Manifest, path: Path) -> None:
    differing = found.differences(wanted)
    if differing:
        raise RecordingError(
            f"{path}: was recorded with another {', '.join(differing)}; remove it, or choose "
            "another path"
        )
