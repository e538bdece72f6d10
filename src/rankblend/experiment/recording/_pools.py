"""What a profile asks of recorded stores: who proposes, how deep, and from which seeds."""

from __future__ import annotations

from collections.abc import Collection

from attrs import frozen

from rankblend.errors import RecordingError
from rankblend.experiment.recording._manifest import Manifest, RecordedStore
from rankblend.profiles import RankingProfile
from rankblend.recall import CATALOG_STORES, reads
from rankblend.relevance import ScopeBlendMode


@frozen
class Demand:
    """What a recall with one profile asks; profiles of one demand share pools and evidence.

    Attributes:
        size: Proposals taken of each store and level.
        most: Greatest pool.
        by_level: Stores are asked level by level.
        proposers: Who is asked to propose, in the order of the manifest.
        blank_proposers: The same for a query without words.
        observers: Who is asked to observe.
        evidence: What of it is kept, sorted.
        seeding: Which seeding of the manifest seeded stores started from.
        without_stores: Stores that are left out.
        notes: In what the replay of such a recall differs from it.
    """

    size: int
    most: int
    by_level: bool
    proposers: tuple[str, ...]
    blank_proposers: tuple[str, ...]
    observers: tuple[str, ...]
    evidence: tuple[str, ...]
    seeding: int
    without_stores: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def demand_of(
    profile: RankingProfile, manifest: Manifest, *, without_stores: Collection[str] = ()
) -> Demand:
    """What a recall with this profile would ask of the stores that were recorded.

    Evidence that no recorded store emits is absent, as it would be live. A graph starts from the
    proposals of the stores that this profile asks to propose; if no profile given to `record` asked
    the same ones, it keeps the seeds of all stores, and `Demand.notes` says so.

    Args:
        profile: The recipe.
        manifest: Of the recording.
        without_stores: Stores that neither propose nor observe; seeds stay as recorded with them.

    Raises:
        RecordingError: A pool deeper than recorded; evidence that a store emits and was not
            recorded; a score that reads nothing any recorded store emits, which could only be
            measured as 0; unknown stores. All of them.
    """
    known = {store.name for store in manifest.stores}
    problems = [
        f"without_stores: {name!r} was not recorded; recorded: {', '.join(sorted(known))}"
        for name in sorted(set(without_stores) - known)
    ]
    if profile.pool.size > manifest.depth:
        problems.append(
            f"profile {profile.name!r}: pool.size {profile.pool.size} is deeper than recorded "
            f"({manifest.depth}); record with depth={profile.pool.size}"
        )
    if not proposing_stores(profile, manifest.stores):
        told = sorted({name for store in manifest.stores for name in store.recorded})
        problems.append(
            f"profile {profile.name!r}: its score reads nothing that was recorded (recorded: "
            f"{', '.join(told)})"
        )
    wanted = frozenset(name.rpartition(".")[2] for name in profile.evidence_needed)
    stores = [store for store in manifest.stores if store.name not in without_stores]
    observers = [s for s in stores if reads(profile.evidence_needed, s.name, s.emits)]
    problems += [
        f"profile {profile.name!r}: reads {store.name}.{name}, which the store emits and was not "
        "recorded; record again with it"
        for store in observers
        for name in store.emits
        if name in wanted and name not in store.recorded
    ]
    if problems:
        raise RecordingError(problems)
    seeding, notes = _seeding(profile, manifest)
    return Demand(
        profile.pool.size,
        profile.pool.max,
        profile.scope.mode is not ScopeBlendMode.OFF,
        tuple(s.name for s in proposing_stores(profile, stores)),
        tuple(s.name for s in stores if s.name in CATALOG_STORES),
        tuple(s.name for s in observers),
        tuple(sorted(wanted)),
        seeding,
        frozenset(without_stores),
        notes,
    )


def proposing_stores(
    profile: RankingProfile, stores: Collection[RecordedStore]
) -> list[RecordedStore]:
    """The stores that a profile asks to propose, for a query with words."""
    return [s for s in stores if reads(profile.evidence_scored, s.name, s.emits)]


def seeding_of(
    profile: RankingProfile, stores: Collection[RecordedStore]
) -> tuple[str, ...] | None:
    """The stores from which a recall takes seeds; None when nothing it reads starts from any."""
    if not any(s.seeded and reads(profile.evidence_needed, s.name, s.emits) for s in stores):
        return None
    return tuple(s.name for s in proposing_stores(profile, stores) if not s.seeded)


def _seeding(profile: RankingProfile, manifest: Manifest) -> tuple[int, tuple[str, ...]]:
    wanted = seeding_of(profile, manifest.stores)
    if wanted is None:
        return 0, ()
    if wanted in manifest.seedings:
        return manifest.seedings.index(wanted), ()
    kept, live = (", ".join(names) or "no store" for names in (manifest.seedings[0], wanted))
    return 0, (f"the graph keeps the recorded seeds of {kept}; live they would be of {live}",)
