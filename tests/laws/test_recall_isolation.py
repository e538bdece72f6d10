"""Nobody is ever shown, told or influenced by what they may not see, whatever was done before.

A memory with all stores and a plain dictionary are given the same writes, at hundreds of scopes.
After each, what a recall shows, considers, counts, explains, compares and refuses, what a graph is
made of and what a store outside is told are compared with what the dictionary says is visible. What
is invisible must also be without influence: answers stay the same, bit for bit, when it changes.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

import rankblend as rb
from rankblend.errors import MemoryNotFoundError, ScopeMismatchError
from rankblend.profiles import read_profile
from rankblend.testing import hashed_embedder

sys.path.insert(0, str(Path(__file__).parent))
from isolation_world import HOME, IDS, SCOPES, STRANGERS, Kept, seen_from

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
WORDS = ("refund", "order", "policy", "tea", "Ana")
rb.register_evidence(rb.Evidence("liked"))
FOREIGN = read_profile(
    """
    [signals.keyword]
    evidence = "bm25"
    curve = { saturation = { c = 6 } }
    [signals.liked]
    evidence = "likes.liked"
    [signals.similarity]
    evidence = "cosine"
    curve = "clip"
    [score]
    compose = "weighted_mean"
    weights = { keyword = 1, liked = 1, similarity = 1 }
    [scope]
    mode = "backfill"
    [select]
    duplicate_penalty = 0.3
    diversity = 0.2
    """,
    name="foreign",
)
PROFILES = ("symfonic", "default", "rrf", "generative-agents", FOREIGN)
QUERIES = ("refund order", "Ana", "token0q", "x y", "")

# Drawn by number: hypothesis prints what it chooses from.
scopes = st.one_of(
    st.sampled_from(HOME),
    st.sampled_from(HOME),
    st.integers(0, len(SCOPES) - 1).map(SCOPES.__getitem__),
)
strangers = st.integers(0, len(STRANGERS) - 1).map(STRANGERS.__getitem__)
profiles = st.integers(0, len(PROFILES) - 1).map(PROFILES.__getitem__)
ids = st.sampled_from(IDS)


class Isolation(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="isolation-"))
        self.embedder = hashed_embedder(8)
        self.statistics = "root"
        self.held: dict[tuple[rb.Scope, str], Kept] = {}
        self.tokens: list[str] = []
        self.told: set[str] = set()
        self.memory = self._opened()

    def _opened(self) -> rb.Memory:
        def likes(asked: Sequence[str]) -> dict[str, dict[str, float]]:
            self.told.update(asked)
            return {each: {"liked": 0.5} for each in asked if each != "y"}

        return rb.Memory.open(
            self.folder / "m.db",
            embedder=self.embedder,
            clock=lambda: NOW,
            allow_subtree=True,
            statistics=self.statistics,
            stores=[*rb.default_stores(), rb.SignalStore("likes", likes, emits=("liked",))],
        )

    # Writes

    @initialize(statistics=st.sampled_from(("root", "visible")), seed=st.integers(0, 9))
    def begin(self, statistics: str, seed: int) -> None:
        """Something at every scope there is, all of it about the same."""
        self.statistics = statistics
        self.reopen()
        choose = random.Random(seed)
        items = []
        for where in SCOPES:
            identifier, token = choose.choice(IDS), self.token()
            text = f"refund order {choose.choice(WORDS)} {token}"
            self.held[where, identifier] = Kept(text, token)
            items.append({"text": text, "scope": where, "id": identifier, "links": ["x", "Ana"]})
        self.memory.remember_many(items)

    def token(self) -> str:
        self.tokens.append(f"token{len(self.tokens)}q")
        return self.tokens[-1]

    @rule(where=scopes, identifier=ids, words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
          layer=st.sampled_from(("semantic", "semantic", "episodic", "working", "procedural")),
          key=st.sampled_from((None, "k")), expired=st.sampled_from((False, False, True)),
          links=st.lists(st.sampled_from((*IDS, "Ana")), max_size=2, unique=True))  # fmt: skip
    def remember(
        self, where: rb.Scope, identifier: str, words: list[str], layer: str, key: str | None,
        expired: bool, links: list[str],
    ) -> None:  # fmt: skip
        token = self.token()
        text = " ".join([*words, token])
        self.memory.remember(
            text, scope=where, id=identifier, layer=layer, key=key, links=links,
            salience=0.5, expires=NOW if expired else None,
        )  # fmt: skip
        self.held[where, identifier] = Kept(text, token, layer, key, expired)
        self.recall([where], "", "symfonic", "ancestors", False, False)

    @rule(which=st.integers(0, 5000), to=scopes)
    def move(self, which: int, to: rb.Scope) -> None:
        """From one scope to another, as a host would: there is no call for it."""
        if not self.held:
            return
        where, identifier = list(self.held)[which % len(self.held)]
        kept = self.held.pop((where, identifier))
        self.memory.forget(identifier, scope=where)
        self.held[to, identifier] = Kept(kept.text, kept.token)
        self.memory.remember(kept.text, scope=to, id=identifier)
        self.recall([where], "refund order", "default", "ancestors", False, False)

    @rule(where=scopes, identifier=ids, which=st.one_of(st.none(), st.integers(0, 5000)))
    def forget(self, where: rb.Scope, identifier: str, which: int | None) -> None:
        if which is not None and self.held:
            where, identifier = list(self.held)[which % len(self.held)]
        if (where, identifier) in self.held:
            assert self.memory.forget(identifier, scope=where) == 1
            del self.held[where, identifier]
            self.recall([where], "refund order", "default", "ancestors", False, False)

    @rule(where=scopes, one=st.sampled_from((*IDS, "Ana")), other=st.sampled_from((*IDS, "tea")))
    def link(self, where: rb.Scope, one: str, other: str) -> None:
        self.memory.link(one, other, scope=where, kind="equivalent", verified=True)

    @rule()
    def reopen(self) -> None:
        self.memory.close()
        self.memory = self._opened()

    # Questions

    @rule(asked=st.lists(scopes, min_size=1, max_size=2, unique=True), query=st.sampled_from(QUERIES),
          profile=profiles, reach=st.sampled_from(("ancestors", "ancestors", "subtree")),
          away=st.booleans(), past=st.booleans())  # fmt: skip
    def recall(
        self, asked: list[rb.Scope], query: str, profile: Any, reach: str, away: bool, past: bool
    ) -> None:
        arguments: dict[str, Any] = {
            "scope": asked, "reach": reach, "profile": profile, "top": 999, "seeds": ["x", "Ana"],
            "as_of": NOW if past else None,
        }  # fmt: skip
        self.told.clear()
        result = (
            asyncio.run(self.memory.arecall(query, **arguments))
            if away
            else self.memory.recall(query, **arguments)
        )
        seen = seen_from(self.held, asked, below=reach == "subtree")
        for match in result:
            where, distance = seen[match.memory.id]
            assert (match.memory.scope, match.distance) == (where, distance)
            assert match.memory.text == self.held[where, match.memory.id].text
        # Considered, counted, told to a store outside.
        assert set(result.trace.sources) <= set(seen)
        assert set(result.ranking.candidates.ids) <= set(seen)
        assert self.told <= set(seen)
        assert all(count <= len(seen) for count in result.trace.proposed.values())
        assert result.trace.pool <= len(seen)
        assert not result.degraded
        if not query and len(seen) < 10:
            # Blank: recency proposes all there is, so that what is missing would be noticed.
            considered = set(result.trace.sources)
            assert considered == set(seen)
        told = str(result.plain()) + str(result.trace) + str(result.compare(result).plain())
        unknown = result.explain("nobody").plain()
        for identifier in IDS:
            explained = result.explain(identifier)
            told += str(explained.plain())
            if identifier not in seen:
                assert explained.plain() == {**unknown, "id": identifier}
                assert words_of(
                    lambda i=identifier: result.swap(i, "nobody"), identifier
                ) == words_of(lambda: result.swap("other", "nobody"), "other")
        self.untold(told + str(result.explain(IDS[0])), seen)

    def untold(self, told: str, seen: dict[str, tuple[rb.Scope, int]]) -> None:
        shown = {self.held[where, identifier].token for identifier, (where, _) in seen.items()}
        assert [token for token in self.tokens if token not in shown and f"{token}" in told] == []

    @rule(where=scopes, identifier=ids)
    def calls_by_id(self, where: rb.Scope, identifier: str) -> None:
        seen = {i: scope for i, (scope, _) in seen_from(self.held, [where]).items()}
        if (where, identifier) in self.held:
            seen[identifier] = where
        if identifier in seen:
            found = self.memory.get(identifier, scope=where)
            assert found.text == self.held[seen[identifier], identifier].text
            if seen[identifier] == where:
                return
            for call in (self.memory.forget, self.memory.reinforce):
                with pytest.raises(ScopeMismatchError):
                    call(identifier, scope=where)
            return
        for call in (self.memory.get, self.memory.forget, self.memory.reinforce):
            with pytest.raises(MemoryNotFoundError):
                call(identifier, scope=where)
            told = words_of(lambda call=call: call(identifier, scope=where), identifier)
            assert told == words_of(lambda call=call: call("nobody", scope=where), "nobody")

    @rule(where=scopes)
    def graph(self, where: rb.Scope) -> None:
        seen = seen_from(self.held, [where])
        graph = self.memory.to_networkx(scope=where)
        visible = {str(up) for up in where.ancestors()}
        assert {edge["scope"] for *_, edge in graph.edges(data=True)} <= visible
        nodes = {name for name, about in graph.nodes(data=True) if about.get("memory")}
        assert nodes <= set(seen)
        self.untold(str(list(graph.edges(data=True))), seen)

    @rule(where=st.sampled_from(HOME), query=st.sampled_from(QUERIES), profile=profiles,
          stranger=st.one_of(scopes, strangers), identifier=ids,
          erase=st.booleans())  # fmt: skip
    def strangers_write(
        self,
        where: rb.Scope,
        query: str,
        profile: Any,
        stranger: rb.Scope,
        identifier: str,
        erase: bool,
    ) -> None:
        if where.distance(stranger) >= 0:
            return
        if self.statistics == "root" and stranger.root == where.root and profile != "symfonic":
            return  # the words of one tenant are counted together
        ask = {"scope": where, "profile": profile, "top": 50}
        before = self.memory.recall(query, **ask)
        if erase and (stranger, identifier) in self.held:
            self.memory.forget(identifier, scope=stranger)
            del self.held[stranger, identifier]
        else:
            self.remember(
                stranger, identifier, ["refund", "order", "Ana"], "semantic", None, False, ["x"]
            )
        self.memory.link("x", "y", scope=stranger, kind="equivalent", verified=True)
        after = self.memory.recall(query, **ask)
        assert before.plain() == after.plain()
        assert before.trace.sources == after.trace.sources
        assert [before.explain(i).plain() for i in IDS] == [after.explain(i).plain() for i in IDS]

    def teardown(self) -> None:
        assert len(self.memory) == len(self.held)
        self.memory.close()
        shutil.rmtree(self.folder)


def words_of(call: Callable[[], object], identifier: str) -> str:
    """What an error says, whatever the id it names."""
    try:
        call()
    except rb.RankblendError as error:
        return f"{type(error).__name__}: {error}".replace(repr(identifier), "<id>")
    return "answered"


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
    run(examples=5, steps=12)


@pytest.mark.slow
def test_isolation_when_very_much_is_written_then_nobody_sees_what_is_not_theirs() -> None:
    run(examples=60, steps=60)
