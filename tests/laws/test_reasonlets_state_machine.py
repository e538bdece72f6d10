"""A procedural memory against a plain model: anything in any order, in memory and in a file."""

from __future__ import annotations

import asyncio
import copy
import math
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define, field
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rankblend.reasonlets import (
    Capture,
    Edge,
    Graph,
    InMemoryReasonletStore,
    Judgement,
    Node,
    Outcome,
    Produced,
    Provenance,
    ReasonletConflictError,
    ReasonletMemory,
    ReasonletNotFoundError,
    ReasonletOptions,
    SqliteReasonletStore,
    Status,
)

DAY = 86_400.0
START = datetime(2026, 3, 1, tzinfo=UTC)
SCOPES = ["t:1", "t:1/u:1"]
GRAPHS = [Graph([Node("a", "tool"), Node(end, "answer")], [Edge("a", end)]) for end in "xyz"]
VECTORS = {
    "q0": [1.0, 0.0, 0.0],
    "q1": [0.9, 0.3, 0.1],
    "q2": [0.6, 0.8, 0.2],
    "q3": [0.1, 1.0, 0.0],
}
PEOPLE = ["ana", None]

scopes, questions = st.sampled_from(SCOPES), st.sampled_from(sorted(VECTORS))
people, booleans = st.sampled_from(PEOPLE), st.booleans()
answers = st.sampled_from([None, "good", "bad", "  "])
some = st.integers(0, 23)  # picks one of what is there
rarely = st.sampled_from([False, False, False, True])


def embed(texts: list[str]) -> np.ndarray:
    return np.array([VECTORS[text] for text in texts])


async def judge(question: str, answer: str) -> Judgement:
    return Judgement(answer == "good")


def judged_by(answer: str | None) -> bool | None:
    return None if answer is None or not answer.strip() else answer == "good"


@define
class Ran:
    """A run of the model."""

    at: float
    agent: bool
    evaluator: bool | None
    subject: str | None
    human: bool | None = None
    scores: tuple[float, ...] | None = None

    @property
    def success(self) -> bool:
        return next(v for v in (self.human, self.evaluator, self.agent) if v is not None)

    @property
    def judged(self) -> bool:
        return self.human is not None or self.evaluator is not None


@define
class Procedure:
    """A procedure of the model; counters of pruned runs are kept as the runs themselves."""

    scope: str
    question: str
    graph: int
    subject: str | None
    created: float
    version: str
    family: str
    parent: str | None
    pending: bool
    runs: dict[str, Ran] = field(factory=dict)
    pruned: list[Ran] = field(factory=list)

    @property
    def all_runs(self) -> list[Ran]:
        return [*self.pruned, *self.runs.values()]

    @property
    def counts(self) -> tuple[int, int, int, int]:
        ran = self.all_runs
        return (
            len(ran),
            sum(r.success for r in ran),
            sum(r.judged for r in ran),
            sum(r.judged and r.success for r in ran),
        )

    @property
    def last_run(self) -> float:
        return max((r.at for r in self.all_runs), default=self.created)

    def image(self) -> tuple[Any, ...]:
        success = max((r.at for r in self.all_runs if r.success), default=None)
        runs = {
            id_: (r.at, r.agent, r.evaluator, r.subject, r.human, r.scores)
            for id_, r in self.runs.items()
        }
        return (
            self.scope, self.question, GRAPHS[self.graph].digest, self.subject, self.created,
            self.version, self.family, self.parent, self.pending, self.counts, self.last_run,
            success, runs,
        )  # fmt: skip

    def rate(self, prior: float) -> float:
        runs, successes, judged, good = self.counts
        weighted = judged + 0.5 * (runs - judged)
        worked = good + 0.5 * (successes - good)
        return (worked + 5 * prior) / (weighted + 5)


class ReasonletMachine(RuleBasedStateMachine):
    """Both say the same, whatever was done."""

    def make_store(self) -> Any:
        return InMemoryReasonletStore()

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.runner = asyncio.Runner()
        self.now = START
        self.model: dict[str, Procedure] = {}
        self.use(self.make_store())
        for scope, question, subject, parent in [
            ("t:1", "q0", None, None),
            ("t:1", "q1", "ana", 0),
            ("t:1/u:1", "q0", None, None),
        ]:
            self.remember(
                scope=scope, question=question, graph=len(self.model), success=True,
                subject=subject, answer=None, parent=parent, gated=False,
            )  # fmt: skip

    def use(self, store: Any) -> None:
        self.store = store
        parts: Any = {"evaluator": judge, "clock": lambda: self.now}
        self.memory = ReasonletMemory(embed, store, **parts)
        self.gated = ReasonletMemory(
            embed, store, options=ReasonletOptions(require_review=True), **parts
        )

    def run(self, call: Any) -> Any:
        return self.runner.run(call)

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            self.run(self.store.aclose())
            self.runner.close()
            shutil.rmtree(self.folder)

    def pick(self, number: int, scope: str | None = None) -> str | None:
        """One of the procedures, in a scope where that is given."""
        there = sorted(i for i, p in self.model.items() if scope in (None, p.scope))
        return there[number % len(there)] if there else None

    def place(self, id_: str, wrong: bool) -> str:
        """The scope of a procedure, or another one."""
        own = self.model[id_].scope
        return next(scope for scope in SCOPES if (scope != own) == wrong)

    def refused(self, kind: type[Exception], call: Callable[[], Any]) -> None:
        with pytest.raises(kind):
            self.run(call())

    @rule(hours=st.sampled_from([1, 24, 24 * 30, -1, -24 * 3]))
    def time_passes(self, hours: int) -> None:
        self.now += timedelta(hours=hours)

    @rule(
        scope=scopes, question=questions, graph=st.integers(0, 2), success=booleans,
        subject=people, answer=answers, parent=st.none() | some, gated=booleans, wrong=rarely,
    )  # fmt: skip
    def remember(self, scope: str, question: str, graph: int, success: bool, subject: str | None,
                 answer: str | None, parent: int | None, gated: bool, wrong: bool = False) -> None:  # fmt: skip
        above = None if parent is None else self.pick(parent)
        if above is not None and not wrong:
            scope = self.model[above].scope
        provenance = Provenance("test", subject_id=subject, tags={"n": "1"})
        capture = Capture(scope, question, GRAPHS[graph], Outcome(success), provenance,
                          parent_id=above, answer=answer)  # fmt: skip
        memory = self.gated if gated else self.memory
        if above is not None and self.model[above].scope != scope:
            self.refused(ReasonletNotFoundError, lambda: memory.remember(capture))
            return
        receipt = self.run(memory.remember(capture))
        now, ran = (
            self.now.timestamp(),
            Ran(self.now.timestamp(), success, judged_by(answer), subject),
        )
        if above is not None and self.model[above].graph == graph:
            assert (receipt.id, receipt.produced) == (above, Produced.EXECUTION)
        else:
            assert receipt.id > max(self.model, default="")  # in the order of creation
            family, minor = receipt.id, 0
            if above is not None:
                family = self.model[above].family
                used = [p.version for p in self.model.values() if p.family == family]
                minor = 1 + max(int(version[2:]) for version in used)
            made = Procedure(
                scope, question, graph, subject, now, f"1.{minor}", family, above, gated
            )
            assert receipt.produced is (Produced.CREATED if above is None else Produced.VERSION)
            self.model[receipt.id] = made
        kept = self.model[receipt.id]
        kept.runs[receipt.execution] = ran
        assert receipt.version == kept.version
        assert (receipt.status is Status.PENDING_REVIEW) == kept.pending
        assert receipt.success == ran.success

    @rule(which=some, wrong=rarely, success=booleans, subject=people, answer=answers)
    def record(
        self, which: int, wrong: bool, success: bool, subject: str | None, answer: str | None
    ) -> None:
        id_ = self.pick(which)
        if id_ is None:
            return
        scope = self.place(id_, wrong)

        def call() -> Any:
            return self.memory.record_execution(
                scope, id_, outcome=Outcome(success), provenance=Provenance("t", subject_id=subject),
                question="q0", answer=answer,
            )  # fmt: skip

        if self.model[id_].scope != scope:
            self.refused(ReasonletNotFoundError, call)
            return
        receipt = self.run(call())
        ran = Ran(self.now.timestamp(), success, judged_by(answer), subject)
        self.model[id_].runs[receipt.execution] = ran

    @rule(which=some, wrong=rarely, worked=st.none() | booleans, score=st.sampled_from([0.0, 0.5]))
    def feedback(self, which: int, wrong: bool, worked: bool | None, score: float) -> None:
        runs = sorted((e, i) for i, p in self.model.items() for e in p.runs)
        if not runs:
            return
        execution, id_ = runs[which % len(runs)]
        scope = self.place(id_, wrong)

        def call() -> Any:
            return self.memory.record_feedback(
                scope, execution, utility=score, correctness=1.0, reusability=0.25, worked=worked
            )

        if self.model[id_].scope != scope:
            self.refused(ReasonletNotFoundError, call)
            return
        self.run(call())
        ran = self.model[id_].runs[execution]
        ran.scores = (score, 1.0, 0.25)
        ran.human = ran.human if worked is None else worked

    @rule(which=some)
    def approve(self, which: int) -> None:
        id_ = self.pick(which)
        if id_ is not None:
            self.run(self.memory.approve(self.model[id_].scope, id_))
            self.model[id_].pending = False

    @rule(which=some, wrong=rarely)
    def reject(self, which: int, wrong: bool) -> None:
        id_ = self.pick(which)
        if id_ is None:
            return
        made = self.model[id_]
        scope = self.place(id_, wrong)
        if made.scope != scope:
            self.refused(ReasonletNotFoundError, lambda: self.memory.reject(scope, id_))
        elif not made.pending or any(p.parent == id_ for p in self.model.values()):
            self.refused(ReasonletConflictError, lambda: self.memory.reject(scope, id_))
        else:
            self.run(self.memory.reject(scope, id_))
            del self.model[id_]

    @rule(
        scope=st.none() | scopes,
        days=st.none() | st.integers(1, 40),
        keep=st.none() | st.integers(0, 2),
    )
    def prune(self, scope: str | None, days: int | None, keep: int | None) -> None:
        if days is None and keep is None:
            return
        older = None if days is None else timedelta(days=days)
        before = self.now.timestamp() - (days or 0) * DAY
        gone = 0
        for made in self.model.values():
            if scope not in (None, made.scope):
                continue
            newest = sorted(made.runs, key=lambda e: (made.runs[e].at, e), reverse=True)
            for place, execution in enumerate(newest):
                too_old = days is not None and made.runs[execution].at < before
                if too_old or (keep is not None and place >= keep):
                    made.pruned.append(made.runs.pop(execution))
                    gone += 1
        assert self.run(self.memory.prune(scope=scope, older_than=older, keep=keep)) == gone

    @rule(scope=scopes, subject=st.sampled_from(["ana", "ana", "nobody"]), purge=booleans)
    def erase(self, scope: str, subject: str, purge: bool) -> None:
        erased = self.run(self.memory.erase_subject(scope, subject, purge=purge))
        own = {i for i, p in self.model.items() if (p.scope, p.subject) == (scope, subject)}
        runs = [r for i in own for r in self.model[i].runs.values()]
        detached = 0
        families = {self.model[id_].family for id_ in own}
        for id_ in own:
            del self.model[id_]
        for family in families - self.model.keys():
            left = {i: p for i, p in self.model.items() if p.family == family}
            for made in left.values():
                made.family = min(left)
        for made in self.model.values():
            if made.parent in own:
                made.parent, detached = None, detached + 1
            if made.scope == scope:
                theirs = [e for e, r in made.runs.items() if r.subject == subject]
                runs += [made.runs.pop(e) for e in theirs]
        scored = sum(r.scores is not None for r in runs)
        counted = (erased.reasonlets, erased.executions, erased.feedback, erased.detached)
        assert counted == (len(own), len(runs), scored, detached)

    @rule()
    def rebuild(self) -> None:
        changed = 0
        for made in self.model.values():
            changed += any(r.judged for r in made.pruned)
            # What was pruned counts on as it did, but as the agent's word.
            made.pruned = [Ran(r.at, r.success, None, r.subject) for r in made.pruned]
        assert self.run(self.memory.rebuild_judged_counters()) == changed

    @rule(
        scope=scopes,
        question=questions,
        top=st.integers(1, 4),
        least=st.sampled_from([None, 0.0, 0.9]),
    )
    def recall(self, scope: str, question: str, top: int, least: float | None) -> None:
        found = self.run(self.memory.recall(question, scope=scope, top=top, min_similarity=least))
        expected = []
        asked = _unit(question)
        for id_, made in self.model.items():
            similarity = min(max(float(asked @ _unit(made.question)), 0.0), 1.0)
            if (
                made.scope != scope
                or made.pending
                or similarity < (0.5 if least is None else least)
            ):
                continue
            above = self.model.get(made.parent or "")
            lifts = above is not None and above.rate(0.5) > 0.5
            rate = made.rate(above.rate(0.5) if above is not None and lifts else 0.5)
            days = (self.now.timestamp() - made.last_run) / DAY
            fresh = 1.0 if days <= 0 else math.pow(0.5, days / 30)
            total = 0.5 * similarity + 0.3 * rate + 0.2 * fresh
            expected.append((-round(total, 9), -round(similarity, 9), id_, (rate, fresh, lifts)))
        expected.sort()
        assert [match.reasonlet.id for match in found] == [row[2] for row in expected[:top]]
        for match, (total, similarity, id_, (rate, fresh, lifts)) in zip(
            found, expected, strict=False
        ):
            score = match.score
            assert (-total, -similarity, rate, fresh) == pytest.approx(
                (score.total, score.similarity, score.success_rate, score.freshness), abs=2e-9
            )
            made = self.model[id_]
            evidence = match.evidence
            assert (evidence.runs, evidence.judged_runs) == (made.counts[0], made.counts[2])
            assert evidence.uses_parent_prior == lifts
            assert match.reasonlet.question == made.question

    @rule(scope=scopes, limit=st.integers(1, 3), after=st.none() | some)
    def page(self, scope: str, limit: int, after: int | None) -> None:
        cursor = None if after is None else self.pick(after)
        found = self.run(self.memory.list_pending(scope, limit=limit, after=cursor))
        waiting = sorted(i for i, p in self.model.items() if p.pending and p.scope == scope)
        expected = [i for i in waiting if cursor is None or i > cursor][:limit]
        assert [each.id for each in found] == expected

    @rule(which=some)
    def lineage(self, which: int) -> None:
        id_ = self.pick(which)
        if id_ is not None:
            made = self.model[id_]
            versions = self.run(self.memory.lineage(made.scope, id_))
            expected = sorted(
                ((p.version, i) for i, p in self.model.items() if p.family == made.family),
                key=lambda pair: int(pair[0][2:]),
            )
            assert [(each.version, each.id) for each in versions] == expected

    @rule()
    def move(self) -> None:
        """Everything into another store, and on with that one."""
        path = self.folder / "moved.jsonl"
        assert self.run(self.memory.export(path)) == len(self.model)
        before = self.image()
        self.run(self.store.aclose())
        self.use(self.make_store())
        assert self.run(self.memory.import_(path)) == len(self.model)
        assert self.image() == before

    def image(self) -> dict[str, tuple[Any, ...]]:
        return _image(self.run(self.store.dump()))

    @invariant()
    def compare(self) -> None:
        assert self.image() == {id_: made.image() for id_, made in self.model.items()}


def _unit(question: str) -> np.ndarray:
    vector = np.array(VECTORS[question])
    return (vector / np.linalg.norm(vector)).astype(np.float32).astype(np.float64)


def _image(entries: Any) -> dict[str, tuple[Any, ...]]:
    """What a store holds, as `Procedure.image` says it."""
    return {entry.reasonlet.id: _entry_image(entry) for entry in entries}


def _entry_image(entry: Any) -> tuple[Any, ...]:
    made = entry.reasonlet
    metrics = made.metrics
    success = None if metrics.last_success is None else metrics.last_success.timestamp()
    runs = {
        stored.id: (
            stored.run.at, stored.run.outcome.success, stored.run.evaluator,
            stored.run.provenance.subject_id,
            None if stored.feedback is None else stored.feedback.worked,
            None if stored.feedback is None else (
                stored.feedback.utility, stored.feedback.correctness, stored.feedback.reusability
            ),
        )
        for stored in entry.runs
    }  # fmt: skip
    return (
        str(made.scope), made.question, made.graph.digest, made.provenance.subject_id,
        made.created.timestamp(), made.version, made.family, made.parent_id,
        made.status is Status.PENDING_REVIEW,
        (metrics.runs, metrics.successes, metrics.judged_runs, metrics.judged_successes),
        metrics.last_run.timestamp(), success, runs,
    )  # fmt: skip


class SqliteMachine(ReasonletMachine):
    """The same over a file that is killed in the middle of things and opened again."""

    files = 0

    def make_store(self) -> Any:
        self.files += 1
        self.path = self.folder / f"{self.files}.db"
        return self.open(self.path)

    def open(self, path: Path) -> SqliteReasonletStore:
        """A store that leaves writing to the operating system: no power fails in this test."""
        store = SqliteReasonletStore.open(path)
        assert store._database._writer is not None
        store._database._writer.execute("PRAGMA synchronous = OFF")
        return store

    @rule()
    def reopen(self) -> None:
        self.run(self.store.aclose())
        self.use(self.open(self.path))

    @rule(scope=scopes, question=questions)
    def another_process_writes(self, scope: str, question: str) -> None:
        """A second store on the file; the first one sees it in its next answer."""
        first = self.store
        self.use(self.open(self.path))
        receipt = self.run(
            self.memory.remember(
                Capture(scope, question, GRAPHS[0], Outcome(True), Provenance("other"))
            )
        )
        at = self.now.timestamp()
        made = Procedure(scope, question, 0, None, at, "1.0", receipt.id, None, False)
        made.runs[receipt.execution] = Ran(at, True, None, None)
        self.model[receipt.id] = made
        self.run(self.store.aclose())
        self.use(first)
        self.recall_at(scope, question)

    def recall_at(self, scope: str, question: str) -> None:
        found = self.run(self.memory.recall(question, scope=scope, top=50, min_similarity=0.99))
        alike = {
            i for i, p in self.model.items()
            if (p.scope, p.question, p.pending) == (scope, question, False)
        }  # fmt: skip
        assert {match.reasonlet.id for match in found} >= alike or len(alike) > 20

    @precondition(lambda self: self.model)
    @rule(
        statement=st.integers(1, 14), go_on=booleans, data=st.data(),
        operation=st.sampled_from(["remember", "record", "feedback", "approve", "prune", "erase"]),
    )  # fmt: skip
    def kill(self, statement: int, go_on: bool, data: Any, operation: str) -> None:
        """The files as they are before some statement: what a kill there would leave behind."""
        before = copy.deepcopy(self.model)
        dead = self.folder / f"dead-{self.files}"
        seen, copied = 0, False

        def look(_: str) -> None:
            nonlocal seen, copied
            seen += 1
            if seen == statement:
                dead.mkdir()
                for path in self.folder.glob(f"{self.path.name}*"):
                    if not path.name.endswith("-shm"):
                        shutil.copy(path, dead)
                copied = True

        writer = self.store._database._writer
        writer.set_trace_callback(look)
        try:
            self.do(operation, data)
        finally:
            writer.set_trace_callback(None)
        if not copied:
            return
        survivor = self.open(dead / self.path.name)
        try:
            assert _image(self.run(survivor.dump())) in (
                {id_: made.image() for id_, made in before.items()},
                {id_: made.image() for id_, made in self.model.items()},
            )
            left = _image(self.run(survivor.dump()))
        finally:
            self.run(survivor.aclose())
        if go_on:
            if left != {id_: made.image() for id_, made in self.model.items()}:
                self.model = before
            self.run(self.store.aclose())
            self.files += 1
            self.path = (dead / self.path.name).rename(self.folder / f"{self.files}.db")
            for path in dead.glob("*-wal"):
                path.rename(self.folder / f"{self.path.name}-wal")
            self.use(self.open(self.path))
        shutil.rmtree(dead)

    def do(self, operation: str, data: Any) -> None:
        """One of the rules with values of its own."""
        which, scope = data.draw(some), data.draw(scopes)
        match operation:
            case "remember":
                self.remember(scope=scope, question="q1", graph=which % 3, success=True,
                              subject="ana", answer="good", parent=which, gated=False)  # fmt: skip
            case "record":
                self.record(which=which, wrong=False, success=True, subject="ana", answer="bad")
            case "feedback":
                self.feedback(which=which, wrong=False, worked=which % 2 == 0, score=0.5)
            case "approve":
                self.approve(which=which)
            case "prune":
                self.prune(scope=None, days=None, keep=which % 2)
            case _:
                self.erase(scope=scope, subject="ana", purge=False)


class TestInMemory(ReasonletMachine.TestCase):
    settings = settings(max_examples=10, stateful_step_count=20, deadline=None)


@pytest.mark.slow
class TestInMemoryLonger(ReasonletMachine.TestCase):
    settings = settings(max_examples=100, stateful_step_count=30, deadline=None)


@pytest.mark.slow
class TestSqlite(SqliteMachine.TestCase):
    settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
