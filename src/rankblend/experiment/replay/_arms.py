"""What is to be replayed: arms, checked against a recording and sorted by how they can be run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve, frozen

from rankblend.errors import InvalidArgumentError, RankblendError
from rankblend.experiment.plans import Arm, Plan
from rankblend.experiment.recording import Demand, Manifest, demand_of
from rankblend.profiles import RankingProfile, load_profile
from rankblend.recall import Reranker
from rankblend.relevance import Node

Arms = (
    Plan
    | Mapping[str, RankingProfile | str]
    | Iterable[Arm | RankingProfile | str]
    | RankingProfile
    | str
)


@frozen(eq=False)
class Run:
    """An arm that can be run.

    Attributes:
        number: Its row in the results.
        arm: The arm.
        demand: What its profile asks of the recording.
        node: Which part of the profile scores: ``score`` or ``rerank``.
    """

    number: int
    arm: Arm
    demand: Demand
    node: str = "score"

    @property
    def profile(self) -> RankingProfile:
        """The recipe."""
        return self.arm.profile

    @property
    def hash(self) -> str:
        """What decides the rankings: without its rerank score an arm is the baseline's."""
        if self.node == "rerank" or self.profile.reranking == "baseline":
            return self.arm.hash
        return evolve(self.arm, profile=evolve(self.profile, reranking="baseline")).hash

    @property
    def root(self) -> Node:
        """The node that scores queries with words."""
        profile = self.arm.profile
        return profile.score if self.node == "score" or profile.rerank is None else profile.rerank


def read_arms(given: Arms) -> tuple[tuple[Arm, ...], Mapping[str, str]]:
    """The arms of a plan, of profiles by name, or of profiles named by themselves.

    Returns:
        The arms, a plan's baseline first; and what a plan skipped, with the reasons.

    Raises:
        InvalidArgumentError: No arms, or names that are not distinct.
    """
    if isinstance(given, Plan):
        return given.all_arms, given.skipped
    if isinstance(given, (RankingProfile, str)):
        given = (given,)
    if isinstance(given, Mapping):
        arms = tuple(Arm(name, load_profile(profile)) for name, profile in given.items())
    else:
        arms = tuple(_arm(one) for one in given)
    names = [arm.name for arm in arms]
    if not arms:
        raise InvalidArgumentError("profiles: expected at least one")
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InvalidArgumentError(
            f"profiles: {name!r} is the name of more than one; give a mapping from names to "
            "profiles"
            for name in twice
        )
    return arms, {}


def prepare(
    arms: tuple[Arm, ...], manifest: Manifest, reranker: Reranker | None
) -> tuple[list[Run], dict[str, str], dict[str, tuple[str, ...]]]:
    """The arms that can be run on a recording; why the others cannot; remarks on those that can.

    Raises:
        RankblendError: Not one of them can be run; the error of the first.
    """
    runs: list[Run] = []
    refused: dict[str, str] = {}
    notes: dict[str, tuple[str, ...]] = {}
    demands: dict[object, Demand] = {}
    first: RankblendError | None = None
    for number, arm in enumerate(arms):
        profile = arm.profile
        key = (profile.pool, profile.scope.mode, profile.evidence_needed, profile.evidence_scored,
               arm.without_stores)  # fmt: skip
        try:
            if key not in demands:
                demands[key] = demand_of(profile, manifest, without_stores=arm.without_stores)
            node, remarks = "score", demands[key].notes
            if profile.reranking == "relevance":
                serving = None if reranker is None else reranker(profile)
                node = "score" if serving is None else serving.node
                if node == "score":
                    why = "no reranker was given" if serving is None else serving.trace
                    remarks = (*remarks, f"its rerank score does not serve ({why})")
        except RankblendError as error:
            first = first or error
            refused[arm.name] = str(error)
            continue
        runs.append(Run(number, arm, demands[key], node))
        if remarks:
            notes[arm.name] = remarks
    if first is not None and not runs:
        raise first
    return runs, refused, notes


def _arm(given: Arm | RankingProfile | str) -> Arm:
    if isinstance(given, Arm):
        return given
    profile = load_profile(given)
    return Arm(profile.name, profile)
