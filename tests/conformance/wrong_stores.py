"""Stores that are wrong in one way each, and the standard test that must notice.

Every one is the reference store, or one that can do everything, with one thing changed: something that was seen in other memory
layers, or that is easily got wrong.
"""

from __future__ import annotations

import copy
import json
import unicodedata
from collections.abc import Iterator, Sequence
from typing import ClassVar

import networkx as nx
import numpy as np
from attrs import evolve
from capable_store import Capable

from rankblend.relevance import Scope
from rankblend.stores import (
    Contents,
    Edge,
    Key,
    Observation,
    Reach,
    Reason,
    Record,
    Store,
    StoreQuery,
)
from rankblend.testing import ReferenceStore

WRONG: dict[type[Store], str] = {}


def noticed_by(test: str):
    """Register a wrong store with the test that must fail for it."""

    def register(store: type[Store]) -> type[Store]:
        WRONG[store] = test
        return store

    return register


def ranked(store: ReferenceStore, query: StoreQuery, records: Sequence[Record]) -> list[Record]:
    matching = [record for record in records if store.coverage(query, record) > 0]
    return sorted(matching, key=lambda record: (-store.coverage(query, record), record.id))


def changed(seen: Observation, name: str, column=None, reason=None) -> Observation:
    columns, reasons = dict(seen.columns), dict(seen.reasons)
    if column is not None:
        columns[name] = column
    if reason is not None:
        reasons[name] = reason
    return Observation(columns, reasons)


# --- who sees what -----------------------------------------------------------------------------


class _Sees(ReferenceStore):
    """Sees by a rule of its own, and is otherwise right."""

    def sees(self, query: StoreQuery, record: Record) -> bool:
        raise NotImplementedError

    def visible(self, query: StoreQuery, level: int | None = None) -> dict[str, Record]:
        found = super().visible(query, level)
        for record in self.records.values():
            admitted = query.admitted is None or query.admitted[record.serial]
            if record.id not in found and self.sees(query, record) and admitted:
                found[record.id] = record
        return found


@noticed_by("test_other_tenants_play_no_part")
class ComparesPathsAsText(_Sees):
    """acme sees acme-corp and s1 sees s10: a prefix without its separator."""

    def sees(self, query: StoreQuery, record: Record) -> bool:
        return any(str(record.scope).startswith(str(scope.root)) for scope in query.scopes)


@noticed_by("test_propose_gives_only_visible_ids")
class EscapesNothing(_Sees):
    """A name that contains the separator looks like a path."""

    def sees(self, query: StoreQuery, record: Record) -> bool:
        def plain(scope):
            return "/".join(f"{level.kind}:{level.id}" for level in scope.levels) + "/"

        return any(plain(scope).startswith(plain(record.scope)) for scope in query.scopes)


@noticed_by("test_propose_gives_only_visible_ids")
class NormalizesNames(_Sees):
    """Full-width and upper-case names are taken for the plain ones."""

    def sees(self, query: StoreQuery, record: Record) -> bool:
        def folded(scope):
            return unicodedata.normalize("NFKC", scope.path).casefold()

        return any(folded(scope).startswith(folded(record.scope)) for scope in query.scopes)


@noticed_by("test_sibling_scopes_play_no_part")
class SeesSiblings(_Sees):
    """Everything of the tenant is visible."""

    def sees(self, query: StoreQuery, record: Record) -> bool:
        return any(scope.root == record.scope.root for scope in query.scopes)


@noticed_by("test_descendants_play_no_part_unless_reach_is_subtree")
class SeesDescendants(_Sees):
    """What lies below is visible whatever the reach."""

    def sees(self, query: StoreQuery, record: Record) -> bool:
        return any(scope.contains(record.scope) for scope in query.scopes)


@noticed_by("test_reach_when_it_is_subtree_then_descendants_are_at_distance_zero")
class KnowsNoSubtree(ReferenceStore):
    def visible(self, query: StoreQuery, level: int | None = None) -> dict[str, Record]:
        return super().visible(evolve(query, reach=Reach.ANCESTORS), level)


@noticed_by("test_query_when_it_names_several_scopes_then_it_sees_what_each_sees")
class ReadsTheFirstScopeOnly(ReferenceStore):
    def visible(self, query: StoreQuery, level: int | None = None) -> dict[str, Record]:
        return super().visible(evolve(query, scopes=query.scopes[:1]), level)


@noticed_by("test_propose_when_the_limit_shrinks_then_the_answer_is_a_prefix")
class FiltersScopesAfterTheLimit(ReferenceStore):
    """The classic: top-k over everybody's memories, then the filter."""

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        best = ranked(self, query, list(self.records.values()))[:limit]
        seen = self.visible(query, level)
        return [record.id for record in best if seen.get(record.id) is record]


@noticed_by("test_propose_when_an_ancestor_is_crowded_then_each_level_is_heard")
class FiltersLevelsAfterTheLimit(ReferenceStore):
    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        best = super().propose(query, limit)
        return [id_ for id_ in best if id_ in self.visible(query, level)]


@noticed_by("test_propose_when_the_limit_shrinks_then_the_answer_is_a_prefix")
class FiltersAdmittedAfterTheLimit(ReferenceStore):
    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        best = super().propose(evolve(query, admitted=None), limit, level=level)
        return [id_ for id_ in best if id_ in self.visible(query, level)]


@noticed_by("test_admitted_when_it_excludes_then_the_memory_is_like_an_unknown_one")
class ProposesWhatIsNotAdmitted(ReferenceStore):
    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        return super().propose(evolve(query, admitted=None), limit, level=level)


@noticed_by("test_admitted_when_it_excludes_then_the_memory_is_like_an_unknown_one")
class ObservesWhatIsNotAdmitted(ReferenceStore):
    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        return super().observe(evolve(query, admitted=None), ids)


@noticed_by("test_admitted_when_it_excludes_then_the_memory_is_like_an_unknown_one")
class AdmitsBeyondTheMask(ReferenceStore):
    """A memory written after the mask was made counts as admitted."""

    def visible(self, query: StoreQuery, level: int | None = None) -> dict[str, Record]:
        if query.admitted is not None:
            longer = np.ones(1000, dtype=np.bool_)
            longer[: len(query.admitted)] = query.admitted
            query = evolve(query, admitted=longer)
        return super().visible(query, level)


@noticed_by("test_admitted_when_it_excludes_nothing_then_it_changes_nothing")
class RoundsUnderAMask(ReferenceStore):
    """With a filter it takes another path, through single precision."""

    def coverage(self, query: StoreQuery, record: Record) -> float:
        exact = super().coverage(query, record)
        return exact if query.admitted is None else round(exact, 1)


@noticed_by("test_propose_when_a_level_is_given_then_only_that_level_answers")
class IgnoresLevels(ReferenceStore):
    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        return super().propose(query, limit)


@noticed_by("test_propose_when_a_level_is_given_then_only_that_level_answers")
class TakesLevelsAsAtMost(ReferenceStore):
    """level=2 gives the levels 0 and 1 too."""

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        levels = range(6 if level is None else level + 1)
        found = [id_ for n in levels for id_ in super(type(self), self).propose(query, 99, level=n)]
        return sorted(found)[:limit]


@noticed_by("test_id_when_stored_at_several_scopes_then_the_nearest_is_seen")
class TakesTheLastOfSeveral(ReferenceStore):
    """Of two memories with one id the later written one is seen, not the nearer one."""

    def visible(self, query: StoreQuery, level: int | None = None) -> dict[str, Record]:
        admitted = [record for record in self.records.values() if query.admits(record)]
        return {
            record.id: record
            for record in admitted
            if level in (None, query.distance(record.scope))
        }


@noticed_by("test_id_when_equally_near_at_two_scopes_then_the_order_of_writing_plays_no_part")
class TakesTheFirstOfEquallyNear(ReferenceStore):
    def visible(self, query: StoreQuery, level: int | None = None) -> dict[str, Record]:
        admitted = [record for record in self.records.values() if query.admits(record)]
        farthest_first = sorted(admitted, key=lambda record: -query.distance(record.scope))
        found = {record.id: record for record in farthest_first}
        return {id_: r for id_, r in found.items() if level in (None, query.distance(r.scope))}


@noticed_by("test_id_when_its_nearest_memory_has_no_content_then_no_other_answers_for_it")
class KeepsOnlyWhatHasWords(ReferenceStore):
    """A memory it has nothing to index of is not held, and hides nothing."""

    def add(self, records: Sequence[Record]) -> None:
        super().remove([record.key for record in records])
        super().add([record for record in records if record.text.strip()])


@noticed_by("test_id_when_stored_at_several_scopes_then_the_nearest_is_seen")
class IsUniqueById(ReferenceStore):
    """Writing an id at another scope replaces the first one."""

    def add(self, records: Sequence[Record]) -> None:
        for record in records:
            for key in [key for key in self.records if key.id == record.id]:
                del self.records[key]
            self.records[record.key] = record


@noticed_by("test_observe_when_an_id_is_invisible_then_it_is_like_an_unknown_one")
class ObservesTheInvisible(ReferenceStore):
    """Trusts that it is only asked about what may be seen."""

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        everywhere = tuple(dict.fromkeys([*query.scopes, *(key.scope for key in self.records)]))
        return super().observe(evolve(query, scopes=everywhere), ids)


@noticed_by("test_observe_when_an_id_is_invisible_then_it_is_like_an_unknown_one")
class TellsInvisibleFromUnknown(ReferenceStore):
    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        held = {key.id for key in self.records}
        seen = super().observe(query, ids)
        for reasons in seen.reasons.values():
            for row, id_ in enumerate(ids):
                if reasons[row] == Reason.UNKNOWN and id_ in held:
                    reasons[row] = Reason.NOT_PERMITTED
        return seen


@noticed_by("test_other_tenants_play_no_part")
class CountsEverybodysWords(ReferenceStore):
    """Word statistics over all tenants: what others write can be read off one's own scores."""

    def coverage(self, query: StoreQuery, record: Record) -> float:
        having = sum("customer" in other.text.split() for other in self.records.values())
        return super().coverage(query, record) / (1 + having)


# --- proposals ---------------------------------------------------------------------------------


@noticed_by("test_propose_gives_distinct_ids_within_the_limit")
class IgnoresTheLimit(ReferenceStore):
    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        return super().propose(query, 999 if limit else 0, level=level)


@noticed_by("test_propose_when_the_limit_is_zero_then_nothing_is_proposed")
class TakesZeroForTheDefault(ReferenceStore):
    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        return super().propose(query, limit or 10, level=level)


@noticed_by("test_propose_gives_distinct_ids_within_the_limit")
class ProposesTwice(ReferenceStore):
    """One proposal for each word that matches."""

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        return [id_ for id_ in super().propose(query, limit, level=level) for _ in "ab"][:limit]


@noticed_by("test_propose_gives_distinct_ids_within_the_limit")
class ProposesNumpyStrings(ReferenceStore):
    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        return list(np.array(super().propose(query, limit, level=level), dtype=np.str_))


@noticed_by("test_propose_when_memories_match_alike_then_the_least_ids_are_chosen")
class LeavesTiesAsWritten(ReferenceStore):
    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        seen = self.visible(query, level).values()
        best = sorted(seen, key=lambda record: -self.coverage(query, record))
        return [record.id for record in best if self.coverage(query, record) > 0][:limit]


@noticed_by("test_insertion_order_plays_no_part")
class PrefersWhatCameFirst(ReferenceStore):
    """Keeps only the first of what it takes for duplicates."""

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        first = {}
        for record in self.visible(query, level).values():
            first.setdefault(self.coverage(query, record), record.id)
        proposed = super().propose(query, 999, level=level)
        return [id_ for id_ in proposed if id_ in first.values()][:limit]


@noticed_by("test_propose_agrees_with_exhaustive_search")
class SearchesApproximately(ReferenceStore):
    """An index that misses a third of what it should find."""

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        found = super().propose(query, 999, level=level)
        return [id_ for id_ in found if sum(id_.encode()) % 3][:limit]


@noticed_by("test_propose_agrees_with_exhaustive_search")
class ProposesWorstFirst(ReferenceStore):
    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        return super().propose(query, 999, level=level)[::-1][:limit]


@noticed_by("test_propose_gives_only_visible_ids")
class ProposesTheSeeds(ReferenceStore):
    """What it was given to start from comes back, unseen."""

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        seeds = [seed.id for seed in query.seeds]
        rest = [id_ for id_ in super().propose(query, limit, level=level) if id_ not in seeds]
        return [*seeds, *rest][:limit]


@noticed_by("test_propose_gives_something")
class ProposesNothing(ReferenceStore):
    """Satisfies the protocol, as far as names go."""

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        return []


@noticed_by("test_propose_when_there_is_little_to_go_by_then_it_stays_within_the_contract")
class NeedsWords(ReferenceStore):
    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        query.text.split()[0]
        return super().propose(query, limit, level=level)


# --- observations ------------------------------------------------------------------------------


@noticed_by("test_observe_when_other_ids_are_asked_too_then_nothing_changes")
class NormalizesOverTheBatch(ReferenceStore):
    """Divides by the best of what it was asked about."""

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        seen = super().observe(query, ids)
        best = np.nanmax(seen.columns["coverage"], initial=0.0)
        return changed(seen, "coverage", seen.columns["coverage"] / (best or 1.0))


@noticed_by("test_observe_when_other_ids_are_asked_too_then_nothing_changes")
class AnswersEachIdOnce(ReferenceStore):
    """A repeated id is absent the second time."""

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        once = [id_ if id_ not in ids[:row] else "" for row, id_ in enumerate(ids)]
        return super().observe(query, once)


@noticed_by("test_observe_when_other_ids_are_asked_too_then_nothing_changes")
class AnswersInItsOwnOrder(ReferenceStore):
    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        return super().observe(query, sorted(ids))


@noticed_by("test_observe_when_an_id_is_unknown_then_it_is_absent_and_unknown")
class SaysZeroForUnknown(ReferenceStore):
    """Absent becomes "does not match"."""

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        seen = super().observe(query, ids)
        filled = np.nan_to_num(seen.columns["coverage"])
        return changed(seen, "coverage", filled, np.zeros(len(ids), dtype=np.int8))


@noticed_by("test_observe_when_an_id_is_unknown_then_it_is_absent_and_unknown")
class GivesNoReasons(ReferenceStore):
    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        return Observation(super().observe(query, ids).columns)


@noticed_by("test_memories_when_they_lack_everything_then_they_are_kept")
class MakesUpValues(ReferenceStore):
    """A memory without salience gets the middle."""

    def evidence(self, query: StoreQuery, record: Record) -> tuple[float, ...]:
        return self.coverage(query, record), 0.5 if record.salience is None else record.salience


@noticed_by("test_observed_values_lie_in_the_range_of_their_evidence")
class AnswersInPercent(ReferenceStore):
    def coverage(self, query: StoreQuery, record: Record) -> float:
        return 100 * super().coverage(query, record)


@noticed_by("test_observe_gives_one_column_per_emitted_name")
class AnswersInSinglePrecision(ReferenceStore):
    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        seen = super().observe(query, ids)
        return changed(seen, "coverage", seen.columns["coverage"].astype(np.float32))


@noticed_by("test_observe_gives_one_column_per_emitted_name")
class ForgetsAColumn(ReferenceStore):
    """No column where there is nothing to say."""

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        seen = super().observe(query, ids)
        keep = [name for name, column in seen.columns.items() if not np.isnan(column).all()]
        return Observation({n: seen.columns[n] for n in keep}, {n: seen.reasons[n] for n in keep})


@noticed_by("test_observe_gives_one_column_per_emitted_name")
class GivesReasonsAsWideIntegers(ReferenceStore):
    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        seen = super().observe(query, ids)
        return changed(seen, "coverage", reason=seen.reasons["coverage"].astype(np.int64))


@noticed_by("test_reasons_agree_with_values")
class SaysPresentForAbsent(ReferenceStore):
    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        seen = super().observe(query, ids)
        return changed(seen, "salience", reason=np.zeros(len(ids), dtype=np.int8))


@noticed_by("test_answers_leave_their_inputs_alone")
class SortsTheIds(ReferenceStore):
    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        seen = super().observe(query, ids)
        ids.sort()
        return seen


@noticed_by("test_answers_leave_their_inputs_alone")
class ScalesTheQuery(ReferenceStore):
    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        if query.vector is not None and query.vector.flags.writeable:
            query.vector[:] /= 2
        return super().propose(query, limit, level=level)


@noticed_by("test_answers_when_changed_by_the_caller_then_the_store_is_not")
class ReturnsItsCache(ReferenceStore):
    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        cached = self.__dict__.setdefault("cached", {})
        asked = (id(query), tuple(ids))
        if asked not in cached:
            cached[asked] = super().observe(query, ids)
        return cached[asked]


@noticed_by("test_answers_when_asked_again_then_they_are_the_same")
class ReinforcesWhenRead(ReferenceStore):
    """Looking at a memory makes it more salient."""

    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        seen = super().observe(query, ids)
        for record in self.visible(query).values():
            raised = min((record.salience or 0.0) + 0.05, 1.0)
            self.records[record.key] = evolve(record, salience=raised)
        return seen


@noticed_by("test_store_answers_something")
class ObservesNothing(ReferenceStore):
    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        return super().observe(query, ["" for _ in ids])


# --- writes ------------------------------------------------------------------------------------


@noticed_by("test_remove_then_nothing_of_the_memory_is_left")
class KeepsGhosts(ReferenceStore):
    """Removed from what is proposed; whoever knows the id still gets its evidence."""

    def remove(self, keys: Sequence[Key]) -> None:
        self.gone = {*getattr(self, "gone", ()), *keys}

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        gone = {key.id for key in getattr(self, "gone", ())}
        proposed = super().propose(query, 999, level=level)
        return [id_ for id_ in proposed if id_ not in gone][:limit]


@noticed_by("test_remove_then_nothing_of_the_memory_is_left")
class CountsTheRemoved(ReferenceStore):
    def add(self, records: Sequence[Record]) -> None:
        super().add(records)
        self.ever = {*getattr(self, "ever", ()), *(record.key for record in records)}

    def __len__(self) -> int:
        return len(getattr(self, "ever", ()))


@noticed_by("test_remove_when_everything_goes_then_the_store_is_empty")
class KeepsTheLastOne(ReferenceStore):
    """An index that cannot be empty."""

    def remove(self, keys: Sequence[Key]) -> None:
        for key in keys:
            if len(self.records) > 1:
                super().remove([key])


@noticed_by("test_id_when_its_nearest_memory_goes_then_the_next_one_is_seen")
class ForgetsTheIdForGood(ReferenceStore):
    """The map from ids to memories is not mended when the nearest one goes."""

    def remove(self, keys: Sequence[Key]) -> None:
        super().remove(keys)
        self.gone = {*getattr(self, "gone", ()), *(key.id for key in keys)}

    def visible(self, query: StoreQuery, level: int | None = None) -> dict[str, Record]:
        found = super().visible(query, level)
        return {id_: found[id_] for id_ in found if id_ not in getattr(self, "gone", ())}


@noticed_by("test_remove_when_keys_are_unknown_then_nothing_happens")
class RemovesById(ReferenceStore):
    """forget("x") at one scope forgets everybody's x."""

    def remove(self, keys: Sequence[Key]) -> None:
        ids = {key.id for key in keys}
        super().remove([key for key in self.records if key.id in ids])


@noticed_by("test_remove_when_keys_are_unknown_then_nothing_happens")
class RemovesOnlyTheKnown(ReferenceStore):
    def remove(self, keys: Sequence[Key]) -> None:
        for key in keys:
            del self.records[key]


@noticed_by("test_update_then_the_new_content_is_seen_at_once_and_the_old_is_gone")
class KeepsTheFirstVersion(ReferenceStore):
    def add(self, records: Sequence[Record]) -> None:
        super().add([record for record in records if record.key not in self.records])


@noticed_by("test_update_then_the_new_content_is_seen_at_once_and_the_old_is_gone")
class IndexesLater(ReferenceStore):
    """A write shows in the second answer after it."""

    def add(self, records: Sequence[Record]) -> None:
        if not self.records:
            super().add(records)
        else:
            self.pending = [*getattr(self, "pending", ()), *records]

    def propose(self, query: StoreQuery, limit: int, *, level: int | None = None) -> Sequence[str]:
        proposed = super().propose(query, limit, level=level)
        super().add(getattr(self, "pending", ()))
        return proposed


@noticed_by("test_add_leaves_the_records_alone")
class NormalizesTheVector(ReferenceStore):
    def add(self, records: Sequence[Record]) -> None:
        for record in records:
            if record.vector is not None and record.vector.flags.writeable:
                record.vector[:] *= 0.5
        super().add(records)


@noticed_by("test_add_when_a_batch_names_a_key_twice_then_the_last_one_counts")
class TakesTheFirstOfABatch(ReferenceStore):
    def add(self, records: Sequence[Record]) -> None:
        super().add(records[::-1])


@noticed_by("test_store_when_it_is_new_then_it_knows_nothing")
class SharesItsState(ReferenceStore):
    """One dictionary for all instances."""

    shared: ClassVar[dict[Key, Record]] = {}

    def __init__(self) -> None:
        self.records = self.shared


@noticed_by("test_ids_when_they_are_unusual_then_they_are_ids_like_others")
class NormalizesIds(ReferenceStore):
    def observe(self, query: StoreQuery, ids: Sequence[str]) -> Observation:
        return super().observe(query, [id_.strip() for id_ in ids])


@noticed_by("test_texts_when_they_are_unusual_then_they_are_kept_and_asked_for")
class RefusesEmptyTexts(ReferenceStore):
    def add(self, records: Sequence[Record]) -> None:
        for record in records:
            record.text.split()[0]
        super().add(records)


@noticed_by("test_batches_give_what_single_questions_give")
class AsksTheFirstOfABatch(ReferenceStore):
    """A batch shares the scopes of its first query."""

    def observe_many(
        self, queries: Sequence[StoreQuery], ids: Sequence[Sequence[str]]
    ) -> Iterator[Observation]:
        for query, asked in zip(queries, ids, strict=True):
            yield self.observe(evolve(query, scopes=queries[0].scopes), asked)


@noticed_by("test_batches_give_what_single_questions_give")
class RoundsInBatches(ReferenceStore):
    """A batch through another kernel: the last bits differ."""

    def observe_many(
        self, queries: Sequence[StoreQuery], ids: Sequence[Sequence[str]]
    ) -> Iterator[Observation]:
        for seen in super().observe_many(queries, ids):
            yield changed(seen, "coverage", np.nextafter(seen.columns["coverage"], 1.0))


# --- the rest of the contract ------------------------------------------------------------------


@noticed_by("test_store_has_a_name_and_registered_evidence")
class HasAnOddName(ReferenceStore):
    name = "my store"


@noticed_by("test_store_has_a_name_and_registered_evidence")
class EmitsTheUnregistered(ReferenceStore):
    emits = ("coverage", "magic_of_the_kit_test")


@noticed_by("test_close_when_called_twice_then_nothing_happens")
class ClosesOnce(ReferenceStore):
    def close(self) -> None:
        del self.records


# --- what only some stores can do ----------------------------------------------------------------


@noticed_by("test_load_then_the_store_answers_as_if_everything_had_been_added")
class LoadsNoLinks(Capable):
    def load_contents(self, contents: Contents) -> None:
        super().load_contents(contents)
        self.joined = {}


@noticed_by("test_load_when_there_is_nothing_then_the_store_is_empty")
class LoadsNothingBadly(Capable):
    """A place left over for a memory that is not there."""

    def load_contents(self, contents: Contents) -> None:
        super().load_contents(contents)
        if not self.held:
            self.add([Record(Key(Scope.parse("tenant:acme"), "nobody"), "refund", 0)])


@noticed_by("test_fresh_then_a_store_of_the_same_kind_knows_nothing")
class IsNotFresh(Capable):
    """A copy that shares what is held."""

    def fresh(self) -> IsNotFresh:
        return copy.copy(self)


@noticed_by("test_fresh_when_filled_then_it_answers_as_the_store_does")
class ForgetsItsSettings(Capable):
    weight = 0.5

    def fresh(self) -> ForgetsItsSettings:
        other = ForgetsItsSettings()
        other.weight = 1.0
        return other

    def coverage(self, query: StoreQuery, record: Record) -> float:
        return self.weight * super().coverage(query, record)


@noticed_by("test_cache_when_restored_then_the_store_answers_as_before")
class KeepsNoVectors(Capable):
    def restore(self, data: bytes, *, rows: object = None) -> bool:
        restored = super().restore(data)
        self.held = {key: evolve(one, vector=None) for key, one in self.held.items()}
        return restored


@noticed_by("test_cache_when_a_memory_was_removed_then_no_byte_of_it_is_kept")
class KeepsWhatWasRemoved(Capable):
    def remove(self, keys: Sequence[Key]) -> None:
        self.graves = [*getattr(self, "graves", ()), *(key.id for key in keys)]
        super().remove(keys)

    def snapshot(self) -> bytes:
        return super().snapshot() + json.dumps(getattr(self, "graves", [])).encode()


@noticed_by("test_cache_when_it_is_of_no_use_then_it_is_refused_and_nothing_changes")
class BelievesAnyBytes(Capable):
    def restore(self, data: bytes, *, rows: object = None) -> bool:
        return super().restore(data) or not self.held.clear()


@noticed_by("test_edges_when_removed_then_nothing_of_them_is_left")
class KeepsLinks(Capable):
    def remove_edges(self, edges: Sequence[Edge]) -> None:
        pass


@noticed_by("test_edges_when_they_cannot_be_seen_then_they_play_no_part")
class CountsAllLinks(Capable):
    def joins(self, query: StoreQuery, record: Record) -> float:
        return float(sum(record.id in (edge.source, edge.target) for edge in self.joined.values()))


@noticed_by("test_vectors_are_those_of_visible_memories")
class GivesVectorsOfTheInvisible(Capable):
    def vectors_of(self, query: StoreQuery, ids: Sequence[str]) -> np.ndarray:
        by_id = {record.id: record.vector for record in self.held.values()}
        nothing = np.full(self.dimension or 0, np.nan, np.float32)
        found = [by_id.get(identifier) for identifier in ids]
        return np.array([nothing if vector is None else vector for vector in found])


@noticed_by("test_walk_shows_what_the_query_sees_and_what_cut_it_short")
class ShowsEverybodysLinks(Capable):
    def to_networkx(self, query: StoreQuery | None = None) -> nx.MultiDiGraph:
        return super().to_networkx()
