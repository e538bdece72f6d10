"""Tests of who sees what: visibility is authorization and comes before everything else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from attrs import evolve

from rankblend.relevance import Scope
from rankblend.stores import Key, Reach, Reason, Record, Statistics, StoreQuery
from rankblend.testing._subject import EVERYTHING, LEVELS, Filled, StoreHooks
from rankblend.testing._worlds import (
    BELOW,
    HOME,
    LOOKALIKES,
    OTHER_ROOTS,
    TENANT,
    USER,
    crowd,
    home_query,
    memory,
    standard_world,
)


class VisibilityTests(StoreHooks):
    """What a query cannot see is never proposed, never told from the unknown, and has no effect."""

    def test_propose_gives_only_visible_ids(self) -> None:
        """From every scope of the world, at every level, with either reach."""
        world = standard_world(self.dimension)
        with self.filled(world) as filled:
            for query in self._questions():
                for level in LEVELS:
                    allowed = filled.visible(query, level)
                    extra = set(filled.propose(query, EVERYTHING, level)) - set(allowed)
                    assert not extra, (
                        f"proposed {sorted(extra)} to {[str(scope) for scope in query.scopes]}, "
                        f"level {level}, reach {query.reach}"
                    )

    def test_observe_when_an_id_is_invisible_then_it_is_like_an_unknown_one(self) -> None:
        """The same NaN and the same reason: that a memory exists is not for everybody."""
        world = standard_world(self.dimension)
        with self.filled(world) as filled:
            for query in self._questions():
                visible = set(filled.visible(query))
                hidden = sorted({record.id for record in world} - visible)
                self._check_unknown(filled, query, hidden)

    def test_sibling_scopes_play_no_part(self) -> None:
        """With strict statistics, better matches beside the query's path change nothing at all."""
        query = evolve(home_query(self.dimension), statistics=Statistics.VISIBLE)
        self._check_no_part(query, LOOKALIKES)

    def test_other_tenants_play_no_part(self) -> None:
        """Nothing outside the first scope level changes anything, whatever it is called."""
        for statistics in (Statistics.ROOT, Statistics.VISIBLE):
            query = evolve(home_query(self.dimension), statistics=statistics)
            self._check_no_part(query, OTHER_ROOTS)

    def test_descendants_play_no_part_unless_reach_is_subtree(self) -> None:
        """What is stored below the query's scope is invisible from it."""
        query = evolve(home_query(self.dimension), statistics=Statistics.VISIBLE)
        self._check_no_part(query, (BELOW, BELOW / "step:1"))

    def test_propose_when_a_level_is_given_then_only_that_level_answers(self) -> None:
        """Each level exactly, and all levels together are what no level gives."""
        with self.filled(standard_world(self.dimension)) as filled:
            for query in self._questions():
                together: list[str] = []
                for level in range(6):
                    proposed = filled.propose(query, EVERYTHING, level)
                    extra = set(proposed) - set(filled.visible(query, level))
                    assert not extra, f"level {level} proposed {sorted(extra)}"
                    together += proposed
                assert sorted(together) == sorted(filled.propose(query, EVERYTHING)), (
                    "the levels together do not give what is given without a level"
                )

    def test_reach_when_it_is_subtree_then_descendants_are_at_distance_zero(self) -> None:
        """From a host's scope all that is stored below is seen as if it were stored there."""
        descendants = ["below-mb", "below-mm", "home-m", "home-x", "home-c", "home-u"]
        with self.filled(standard_world(self.dimension)) as filled:
            query = home_query(self.dimension)
            inside = evolve(query, scopes=(BELOW,))
            ancestors = evolve(query, scopes=(USER,))
            subtree = evolve(ancestors, reach=Reach.SUBTREE)
            own, seen = (filled.observe(asked, descendants) for asked in (inside, subtree))
            for name, column in own.columns.items():
                lost = ~np.isnan(column) & (seen.reason(name) == Reason.UNKNOWN)
                assert not lost.any(), f"{name}: a descendant is unknown under reach subtree"
            self._check_unknown(filled, ancestors, descendants)
            proposed = filled.propose(subtree, EVERYTHING, 0)
            assert set(proposed) <= set(filled.visible(subtree, 0)), "level 0 is more than below"
            if set(descendants) & set(filled.propose(inside, EVERYTHING)):
                assert set(descendants) & set(proposed), "no descendant is proposed at level 0"

    def test_admitted_when_it_excludes_then_the_memory_is_like_an_unknown_one(self) -> None:
        """The mask limits proposals and observations; a serial beyond its end is excluded."""
        with self.filled(standard_world(self.dimension)) as filled:
            query = home_query(self.dimension)
            odd = filled.admitting(query, lambda record: record.serial % 2 == 1)
            assert odd.admitted is not None
            short = evolve(odd, admitted=np.ones(len(odd.admitted) // 2, dtype=np.bool_))
            nothing = evolve(odd, admitted=np.zeros(0, dtype=np.bool_))
            for question in (odd, short, nothing):
                visible = filled.visible(question)
                extra = set(filled.propose(question, EVERYTHING)) - set(visible)
                assert not extra, f"proposed what is not admitted: {sorted(extra)}"
                hidden = sorted(set(filled.visible(query)) - set(visible))
                self._check_unknown(filled, question, hidden)

    def test_admitted_when_it_excludes_nothing_then_it_changes_nothing(self) -> None:
        """A mask of everything is no mask."""
        with self.filled(standard_world(self.dimension)) as filled:
            query = home_query(self.dimension)
            everyone = filled.admitting(query, lambda _: True)
            self.assert_alike(filled, filled, query, asked=everyone)

    def test_id_when_stored_at_several_scopes_then_the_nearest_is_seen(self) -> None:
        """Exchanging two memories farther up changes nothing for an id that is held nearer."""
        self._check_nearest(memory(HOME, "both", 2, number=1, dimension=self.dimension))

    def test_id_when_its_nearest_memory_has_no_content_then_no_other_answers_for_it(self) -> None:
        """A memory without text, vector or labels hides a farther one of its id all the same."""
        self._check_nearest(Record(Key(HOME, "both"), "", created=1.0, at=1.0))

    def test_id_when_its_nearest_memory_goes_then_the_next_one_is_seen(self) -> None:
        """At once, as if the nearer one had never been."""
        near = memory(HOME, "both", 2, number=1, dimension=self.dimension)
        far = memory(TENANT, "both", 4, number=2, dimension=self.dimension)
        world = standard_world(self.dimension)
        query = home_query(self.dimension)
        with self.filled([*world, near, far]) as filled, self.filled([*world, far]) as fresh:
            filled.erase([near.key])
            self.assert_alike(filled, fresh, query)

    def test_id_when_equally_near_at_two_scopes_then_the_order_of_writing_plays_no_part(
        self,
    ) -> None:
        """Two descendants, or two scopes' own memories: one of them is seen, always the same."""
        places = (USER / "session:2", USER / "session:3", TENANT / "user:8")
        copies = [
            memory(place, "both", hits, number=hits, dimension=self.dimension, links=links)
            for place, hits, links in zip(places, (1, 3, 4), (("user-m",), (), ()), strict=True)
        ]
        query = home_query(self.dimension)
        questions = (
            evolve(query, scopes=(USER,), reach=Reach.SUBTREE),
            evolve(query, scopes=(TENANT,), reach=Reach.SUBTREE),
            evolve(query, scopes=places),
            evolve(query, scopes=places[::-1]),
        )
        world = standard_world(self.dimension)
        with self.filled([*world, *copies]) as one, self.filled([*copies[::-1], *world]) as two:
            for question in questions:
                self.assert_alike(one, two, question)

    def test_query_when_it_names_several_scopes_then_it_sees_what_each_sees(self) -> None:
        """The union, each memory at its least distance."""
        there = TENANT / "user:8"
        extra = [
            memory(there, f"there-{n}", n, number=n, dimension=self.dimension) for n in range(4)
        ]
        with self.filled([*standard_world(self.dimension), *extra]) as filled:
            query = home_query(self.dimension)
            both = evolve(query, scopes=(HOME, there))
            for level in LEVELS:
                allowed = filled.visible(both, level)
                assert set(filled.propose(both, EVERYTHING, level)) <= set(allowed)
            one, two = query, evolve(query, scopes=(there,))
            for question in (one, two):
                alone, seen = (
                    filled.observe(asked, filled.visible(question)) for asked in (question, both)
                )
                for name in alone.columns:
                    lost = (alone.reason(name) != Reason.UNKNOWN) & (
                        seen.reason(name) == Reason.UNKNOWN
                    )
                    assert not lost.any(), f"{name}: visible alone, unknown to two scopes"
            hidden = set(filled.visible(two)) - set(filled.visible(one))
            self._check_unknown(filled, one, sorted(hidden))

    def _questions(self) -> list[StoreQuery]:
        query = home_query(self.dimension)
        places: list[tuple[Scope, ...]] = [
            *((scope,) for scope in (HOME, USER, TENANT, BELOW, *LOOKALIKES, *OTHER_ROOTS)),
            (HOME, OTHER_ROOTS[0]),
            (LOOKALIKES[0], BELOW),
            (Scope.parse("tenant:nowhere/user:7"),),
        ]
        reaches = (Reach.ANCESTORS, Reach.SUBTREE)
        return [evolve(query, scopes=place, reach=reach) for place in places for reach in reaches]

    def _check_no_part(self, query: StoreQuery, scopes: Iterable[Scope]) -> None:
        world = standard_world(self.dimension)
        hidden = crowd(scopes, each=12, dimension=self.dimension)
        with self.filled(world) as calm, self.filled([*hidden, *world]) as crowded:
            self.assert_alike(crowded, calm, query)
            self._check_unknown(crowded, query, _ids(hidden))
            crowded.erase([record.key for record in hidden])
            self.assert_alike(crowded, calm, query)

    def _check_nearest(self, near: Record) -> None:
        far = memory(TENANT, "both", 4, number=2, dimension=self.dimension)
        other = memory(TENANT, "other", 1, number=3, dimension=self.dimension)
        swapped = [
            evolve(other, key=far.key, links=far.links),
            evolve(far, key=other.key, links=other.links),
        ]
        world = standard_world(self.dimension)
        query = home_query(self.dimension)
        with (
            self.filled([*world, near, far, other]) as one,
            self.filled([*world, *swapped, near]) as two,
        ):
            first, second = (filled.observe(query, ["both"]) for filled in (one, two))
            self.assert_same(first, second, "evidence of a farther memory with this id")
            for filled in (one, two):
                for level in (1, 2, 3):
                    proposed = filled.propose(query, EVERYTHING, level)
                    assert "both" not in proposed, f"level {level} proposed a hidden memory"

    def _check_unknown(self, filled: Filled, query: StoreQuery, ids: Sequence[str]) -> None:
        seen = filled.observe(query, [*ids, "nobody"])
        for name, column in seen.columns.items():
            shown = [id_ for id_, value in zip(ids, column, strict=False) if not np.isnan(value)]
            assert not shown, f"{name}: a value for {shown[0]!r}, which the query cannot see"
            reasons = seen.reason(name)
            assert (reasons == Reason.UNKNOWN).all(), (
                f"{name}: reasons {set(reasons.tolist())} tell the invisible from the unknown"
            )


def _ids(records: Iterable[Record]) -> list[str]:
    return [record.id for record in records]
