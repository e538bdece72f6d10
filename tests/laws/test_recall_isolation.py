"""Nobody is ever shown, told or influenced by what they may not see, whatever was done before.

A memory with all default stores and a plain dictionary are given the same writes. After each, what
a recall shows, considers, explains and refuses is compared with what the dictionary says is visible.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

import rankblend as rb
from rankblend.errors import MemoryNotFoundError, ScopeMismatchError
from rankblend.testing import hashed_embedder

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def scope(*levels: tuple[str, str]) -> rb.Scope:
    return rb.Scope(levels)


# One real path and what might be taken for it: prefixes, escaped separators, look-alikes.
ONE = scope(("a", "1"))
TWO = scope(("a", "1"), ("b", "2"))
THREE = scope(("a", "1"), ("b", "2"), ("c", "3"))
SIBLING = scope(("a", "1"), ("b", "20"))
SCOPES = (
    ONE, TWO, THREE, SIBLING,
    scope(("a", "10")), scope(("a", "1/b:2")), scope(("a", "1%2Fb:2")), scope(("a", "1/")),
    scope(("a", "1:")), scope(("A", "1")), scope(("а", "1")), scope(("a", "１")),
    scope(("a", "1 ")), scope(("a", "é")), scope(("a", "e\u0301")), scope(("b", "2"), ("a", "1")),
    scope(("a", "1"), ("b", "2/c:3")), scope(("a", "*")), scope(("a", "%")), scope(("a", "_")),
)  # fmt: skip
HOME = (ONE, TWO, THREE, SIBLING)
IDS = ("x", "y", "X", "é", "e\u0301", "x/y", "a:1/", "%")
WORDS = ("refund", "order", "policy", "tea", "Ana")
PROFILES = ("symfonic", "default", "rrf", "generative-agents")

scopes = st.one_of(st.sampled_from(HOME), st.sampled_from(SCOPES))
ids = st.sampled_from(IDS)


@frozen
class Kept:
    """What the dictionary knows of a memory; the token occurs in no other text."""

    text: str
    token: str
    layer: str


class Isolation(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="isolation-"))
        self.embedder = hashed_embedder(8)
        self.memory = self._opened()
        self.model: dict[tuple[rb.Scope, str], Kept] = {}
        self.tokens: list[str] = []

    def _opened(self) -> rb.Memory:
        return rb.Memory.open(
            self.folder / "m.db", embedder=self.embedder, clock=lambda: NOW, allow_subtree=True
        )

    # What the dictionary says

    def visible(self, asked: list[rb.Scope], reach: str) -> dict[str, tuple[rb.Scope, int]]:
        """Id → where the memory that is seen is stored, and how far up."""
        best: dict[str, tuple[int, int, str, rb.Scope]] = {}
        for (where, identifier), kept in self.model.items():
            seen = [
                (own.distance(where), position)
                for position, own in enumerate(asked)
                if own.distance(where) >= 0
            ]
            below = [i for i, own in enumerate(asked) if reach == "subtree" and own.contains(where)]
            if kept.layer == "working" and where not in asked:
                continue
            if not seen and not below:
                continue
            distance = 0 if below else min(d for d, _ in seen)
            first = min([*(position for _, position in seen), *below])
            rank = (distance, first, where.path, where)
            best[identifier] = min(best.get(identifier, rank), rank, key=lambda r: r[:3])
        return {identifier: (rank[3], rank[0]) for identifier, rank in best.items()}

    # Writes

    @initialize(layer=st.sampled_from(("semantic", "working")))
    def begin(self, layer: str) -> None:
        """Something at every level of the real path, so that questions there find anything at all."""
        for where, identifier in ((ONE, "x"), (ONE, "y"), (TWO, "é"), (THREE, "X"), (SIBLING, "x")):
            self.remember(where, identifier, ["refund", "order"], layer, None, ["Ana"])

    @rule(where=scopes, identifier=ids, words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
          layer=st.sampled_from(("semantic", "semantic", "episodic", "working")),
          salience=st.sampled_from((None, 0.25, 1.0)), links=st.lists(st.sampled_from((*IDS, "Ana")), max_size=2, unique=True))  # fmt: skip
    def remember(
        self, where: rb.Scope, identifier: str, words: list[str], layer: str,
        salience: float | None, links: list[str],
    ) -> None:  # fmt: skip
        token = f"token{len(self.tokens)}q"
        self.tokens.append(token)
        text = " ".join([*words, token])
        self.memory.remember(
            text, scope=where, id=identifier, layer=layer, salience=salience, links=links
        )
        self.model[where, identifier] = Kept(text, token, layer)
        self.recall([where], "", "symfonic", "ancestors", False)

    @rule(where=scopes, identifier=ids, held=st.one_of(st.none(), st.integers(0, 30)))
    def forget(self, where: rb.Scope, identifier: str, held: int | None) -> None:
        if held is not None and self.model:
            where, identifier = list(self.model)[held % len(self.model)]
        seen = self.visible([where], "ancestors")
        if (where, identifier) in self.model:
            assert self.memory.forget(identifier, scope=where) == 1
            del self.model[where, identifier]
            self.recall([where], "refund order", "default", "ancestors", False)
            return
        expected = ScopeMismatchError if identifier in seen else MemoryNotFoundError
        for call in (self.memory.forget, self.memory.reinforce):
            with pytest.raises(expected) as refused:
                call(identifier, scope=where)
            if expected is MemoryNotFoundError:
                assert (
                    str(refused.value)
                    == f"{identifier!r}: not visible from {str(where)!r} or unknown"
                )

    @rule(where=scopes, one=st.sampled_from((*IDS, "Ana")), other=st.sampled_from((*IDS, "tea")))
    def link(self, where: rb.Scope, one: str, other: str) -> None:
        self.memory.link(one, other, scope=where, kind="about")

    @rule()
    def reopen(self) -> None:
        self.memory.close()
        self.memory = self._opened()

    # Questions

    @rule(asked=st.lists(scopes, min_size=1, max_size=2, unique=True), query=st.sampled_from(("refund order", "Ana", "token0q", "")),
          profile=st.sampled_from(PROFILES), reach=st.sampled_from(("ancestors", "ancestors", "subtree")), away=st.booleans())  # fmt: skip
    def recall(
        self, asked: list[rb.Scope], query: str, profile: str, reach: str, away: bool
    ) -> None:
        arguments: dict[str, Any] = {
            "scope": asked, "reach": reach, "profile": profile, "top": 99, "seeds": ["x", "Ana"],
        }  # fmt: skip
        result = (
            asyncio.run(self.memory.arecall(query, **arguments))
            if away
            else self.memory.recall(query, **arguments)
        )
        seen = self.visible(asked, reach)
        for match in result:
            found = match.memory
            where, distance = seen[found.id]
            assert (found.scope, match.distance) == (where, distance)
            assert found.text == self.model[where, found.id].text
        assert set(result.trace.sources) <= set(seen)
        # No store proposes what was erased, and none failed.
        assert result.trace.notes == ()
        assert not result.degraded
        if not query:
            # Blank: recency proposes all there is, so that what is missing would be noticed.
            assert set(result.ids) == set(seen)
        told = str(result.plain()) + str(result.trace)
        unknown = result.explain("nobody").plain()
        for identifier in IDS:
            explained = result.explain(identifier)
            told += str(explained)
            if identifier not in seen:
                assert explained.plain() == {**unknown, "id": identifier}
        shown = {self.model[where, identifier].token for identifier, (where, _) in seen.items()}
        assert [token for token in self.tokens if token not in shown and token in told] == []

    @rule(where=scopes, identifier=ids)
    def get(self, where: rb.Scope, identifier: str) -> None:
        seen = {i: scope for i, (scope, _) in self.visible([where], "ancestors").items()}
        if (where, identifier) in self.model:
            seen[identifier] = where
        if identifier in seen:
            found = self.memory.get(identifier, scope=where)
            assert found.text == self.model[seen[identifier], identifier].text
        else:
            with pytest.raises(MemoryNotFoundError):
                self.memory.get(identifier, scope=where)

    @rule(where=st.sampled_from(HOME), query=st.sampled_from(("refund order", "Ana")), profile=st.sampled_from(PROFILES),
          stranger=st.sampled_from([each for each in SCOPES if each.root != ONE]), identifier=ids)  # fmt: skip
    def strangers_write(
        self, where: rb.Scope, query: str, profile: str, stranger: rb.Scope, identifier: str
    ) -> None:
        before = self.memory.recall(query, scope=where, profile=profile)
        self.remember(
            stranger, identifier, ["refund", "order", "Ana"], "semantic", 1.0, ["x", "Ana"]
        )
        self.memory.link("x", "y", scope=stranger)
        after = self.memory.recall(query, scope=where, profile=profile)
        assert before.plain() == after.plain()
        assert before.trace.sources == after.trace.sources

    def teardown(self) -> None:
        assert len(self.memory) == len(self.model)
        self.memory.close()
        shutil.rmtree(self.folder)


def run(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        Isolation,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_isolation_when_anything_is_written_then_nobody_sees_what_is_not_theirs() -> None:
    run(examples=12, steps=20)


@pytest.mark.slow
def test_isolation_when_very_much_is_written_then_nobody_sees_what_is_not_theirs() -> None:
    run(examples=60, steps=50)
