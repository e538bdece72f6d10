"""Tests of what a store proposes: order, limit, levels, ties, completeness."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
from attrs import evolve

from rankblend.stores import StoreQuery
from rankblend.testing._subject import EVERYTHING, LEVELS, Filled, StoreHooks
from rankblend.testing._worlds import HOME, TENANT, USER, crowd, home_query, memory, standard_world

_LIMITS = (1, 2, 3, 7)


class ProposalTests(StoreHooks):
    """Propose: distinct ids, best first, cut by the limit alone."""

    def test_propose_gives_something(self) -> None:
        """Every other test of proposals would be empty otherwise."""
        with self.filled(standard_world(self.dimension)) as filled:
            proposed = filled.propose(home_query(self.dimension), EVERYTHING)
            if self.proposes:
                assert proposed, "nothing proposed: set proposes = False for an observing store"
            else:
                assert not proposed, "proposes = False, but it proposed something"

    def test_propose_gives_distinct_ids_within_the_limit(self) -> None:
        """Plain strings, each once, never more than asked for."""
        with self.filled(standard_world(self.dimension)) as filled:
            query = home_query(self.dimension)
            for level in LEVELS:
                for limit in (*_LIMITS, EVERYTHING):
                    proposed = filled.propose(query, limit, level)
                    assert len(proposed) <= limit, f"{len(proposed)} ids, limit {limit}"
                    assert len(set(proposed)) == len(proposed), f"an id twice: {proposed}"
                    assert all(type(id_) is str for id_ in proposed), "an id that is no str"

    def test_propose_when_the_limit_is_zero_then_nothing_is_proposed(self) -> None:
        """Zero is a limit, not the default."""
        with self.filled(standard_world(self.dimension)) as filled:
            for level in LEVELS:
                assert filled.propose(home_query(self.dimension), 0, level) == []

    def test_propose_when_the_limit_shrinks_then_the_answer_is_a_prefix(self) -> None:
        """Levels, visibility and masks apply before the limit, however crowded the rest is."""
        records = [
            *standard_world(self.dimension),
            *crowd((TENANT,), each=40, dimension=self.dimension),
        ]
        with self.filled(records) as filled:
            query = home_query(self.dimension)
            masked = filled.admitting(query, lambda record: not record.id.startswith("crowd"))
            for question in (query, masked):
                for level in LEVELS:
                    every = filled.propose(question, EVERYTHING, level)
                    for limit in _LIMITS:
                        proposed = filled.propose(question, limit, level)
                        assert proposed == every[:limit], (
                            f"level {level}, limit {limit}: {proposed}, "
                            f"but without a limit {every[:limit]} come first"
                        )

    def test_propose_when_an_ancestor_is_crowded_then_each_level_is_heard(self) -> None:
        """Forty better matches a level up do not push the query's own memories out."""
        near = standard_world(self.dimension)
        with self.filled(near) as calm:
            wanted = [
                bool(calm.propose(home_query(self.dimension), 3, level)) for level in (0, 1, 2)
            ]
        far = crowd((TENANT, USER), each=40, dimension=self.dimension)
        with self.filled([*near, *far]) as filled:
            for level, expected in enumerate(wanted):
                proposed = filled.propose(home_query(self.dimension), 3, level)
                assert bool(proposed) == expected, f"level {level} was crowded out"

    def test_propose_when_memories_match_alike_then_the_least_ids_are_chosen(self) -> None:
        """Equal memories come in the order of their ids, whatever the order of writing."""
        names = ["q", "b", "z", "a", "m", "é", "Z", "k"]
        equal = [memory(HOME, name, 2, dimension=self.dimension) for name in names]
        start = memory(HOME, "home-m", 1, dimension=self.dimension, links=tuple(names))
        for records in ([start, *equal], [*equal[::-1], start]):
            with self.filled(records) as filled:
                proposed = filled.propose(home_query(self.dimension), EVERYTHING)
                ties = [id_ for id_ in proposed if id_ in names]
                assert ties == sorted(ties), f"ties in the order {ties}"
                if self.proposes:
                    assert ties in ([], sorted(names)), "of equal memories only some are proposed"

    def test_propose_agrees_with_exhaustive_search(self) -> None:
        """Best first by `strength`; whatever is stronger than a proposal is proposed too."""
        records = [
            *standard_world(self.dimension),
            *(memory(USER, f"twin-{n}", 3, dimension=self.dimension) for n in (3, 1, 2)),
            *(memory(HOME, f"tail-{n}", n % 5, number=n, dimension=self.dimension)
              for n in range(12)),
        ]  # fmt: skip
        with self.filled(records) as filled:
            for level in LEVELS:
                for limit in (*_LIMITS, EVERYTHING):
                    self._check_complete(filled, home_query(self.dimension), limit, level)

    def test_insertion_order_plays_no_part(self) -> None:
        """The same memories, written in another order or one by one, give the same answers."""
        world = standard_world(self.dimension)
        shuffled = random.Random(7).sample(world, len(world))  # noqa: S311 - a fixed order
        query = home_query(self.dimension)
        with self.filled(world) as first:
            for batches in ([world[::-1]], [shuffled], [[record] for record in shuffled]):
                with self.filled() as other:
                    for batch in batches:
                        other.write(batch)
                    self.assert_alike(other, first, query)

    def test_propose_when_there_is_little_to_go_by_then_it_stays_within_the_contract(self) -> None:
        """Blank text, no vector, no seeds, nothing stored: fewer proposals, never an error."""
        query = home_query(self.dimension)
        poorer = [
            evolve(query, text="", vector=None, seeds=()),
            evolve(query, text=" \t\u200b"),
            evolve(query, vector=None),
            evolve(query, seeds=()),
            evolve(query, text="!!! ???", vector=None),
            evolve(query, text="nul\x00 返金 😀 " * 50),
        ]
        for records in ([], standard_world(self.dimension)):
            with self.filled(records) as filled:
                for question in poorer:
                    proposed = filled.propose(question, EVERYTHING)
                    visible = filled.visible(question)
                    assert set(proposed) <= set(visible)
                    assert len(set(proposed)) == len(proposed)
                    assert filled.propose(question, 2) == proposed[:2]
                    filled.observe(question, [*visible, "nobody"])

    def _check_complete(
        self, filled: Filled, query: StoreQuery, limit: int, level: int | None
    ) -> None:
        ids = filled.visible(query, level)
        strengths = self.strength(query, filled.observe(query, ids))
        assert strengths.shape == (len(ids),), "strength() must give one value per id"
        strength = dict(zip(ids, np.asarray(strengths, dtype=np.float64).tolist(), strict=True))
        proposed = filled.propose(query, limit, level)
        where = f"level {level}, limit {limit}"
        assert set(proposed) <= set(ids), f"{where}: proposed what is not visible"
        assert not [id_ for id_ in proposed if np.isnan(strength[id_])], (
            f"{where}: proposed a memory that has no strength"
        )
        for first, second in pairwise(proposed):
            assert not self._before(second, first, strength), f"{where}: {second} after {first}"
        for worse in proposed[-1:]:
            missed = [id_ for id_ in ids if id_ not in proposed]
            missed = [id_ for id_ in missed if self._before(id_, worse, strength)]
            assert not missed, f"{where}: {missed[0]} comes before {worse}, but is not proposed"

    def _before(self, first: str, second: str, strength: dict[str, float]) -> bool:
        """Whether ``first`` must be proposed before ``second``: stronger, or as strong by id."""
        if self.tolerance:  # within it, either may come first
            return strength[first] > strength[second] + self.tolerance
        return (-strength[first], first) < (-strength[second], second)
