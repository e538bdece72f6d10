"""`Memory` given anything: refused in words of ours, with nothing stored, or answered rightly."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankblend as rb

sys.path.insert(0, str(Path(__file__).parent))
from asked_memory import (
    IDS,
    NOW,
    PRESETS,
    QUERIES,
    SCOPES,
    USER,
    check,
    check_write,
    few,
    filled,
    fuzzed,
    many,
    stored,
)  # fmt: skip
from strategies import (
    anything,
    mappings,
    numbers,
    refused,
    scope_likes,
    some,
    texts,
    times,
    vectors,
)

LINKS = st.lists(
    st.one_of(
        IDS,
        st.builds(rb.Link, IDS, texts(), numbers(), st.booleans()),
        st.fixed_dictionaries({"target": IDS}, optional={"weight": numbers(), "kind": anything()}),
    ),
    max_size=3,
)
METADATA = mappings(st.one_of(numbers(), texts(), st.lists(numbers(), max_size=2)))
ITEM = some(
    text=st.one_of(texts(largest=60), st.sampled_from(("tea " * 50_000, "x" * 1_000_001))),
    scope=scope_likes(), id=IDS, layer=st.one_of(st.sampled_from(("working", "procedural")), texts()),
    key=texts(), salience=numbers(), confidence=numbers(), review=st.sampled_from(("confirmed", "no")),
    maturity=texts(), certainty=texts(), links=LINKS, at=times(), expires=times(),
    metadata=METADATA, vector=vectors(),
)  # fmt: skip
BROUGHT = some(uses=numbers(), used=times(), created=times())
LINK = some(
    source=IDS, target=IDS, kind=texts(), weight=numbers(), verified=st.booleans(), at=times()
)
CONDITIONS = st.one_of(
    mappings(),
    mappings(st.one_of(numbers(), texts(), times(), mappings(st.one_of(numbers(), times())))),
    st.fixed_dictionaries({}, optional={"layer": texts(), "at": mappings(times()), "id": IDS}),
)
QUESTION = some(
    scope=st.one_of(SCOPES, scope_likes()), reach=st.sampled_from(("ancestors", "subtree", "all")),
    top=st.one_of(st.integers(0, 20), numbers()), profile=st.one_of(st.sampled_from(PRESETS), texts()),
    weights=mappings(numbers()), filters=CONDITIONS, prefer=CONDITIONS,
    seeds=st.lists(st.one_of(IDS, st.builds(rb.Seed, IDS, numbers())), max_size=3),
    as_of=times(), now=times(), include_expired=st.booleans(), reinforce=st.booleans(),
    strict=st.booleans(),
)  # fmt: skip
NAMES = {"text": "tea", "scope": USER}


def check_question(query: Any, arguments: dict[str, Any]) -> None:
    given = {"scope": USER, **arguments}
    with filled() as memory:
        before = stored(memory)
        answers: list[rb.Recall] = []
        if refused(lambda: answers.append(memory.recall(query, **given))):
            assert refused(lambda: asyncio.run(memory.arecall(query, **given)))
            assert stored(memory) == before
            return
        result = answers[0]
        assert not result.degraded
        check(memory, result, whole=True)
        if given.get("top") is not None:
            assert len(result) <= given["top"]
        if not given.get("reinforce"):
            assert stored(memory) == before
            again = asyncio.run(memory.arecall(query, **{"now": NOW, **given}))
            if given.get("now") is None:
                assert again.plain() == result.plain()


def check_lookup(data: st.DataObject) -> None:
    """What is asked by id, of a memory and of an answer."""
    with filled() as memory:
        before = stored(memory)
        asked, home, top = data.draw(QUERIES), data.draw(SCOPES), data.draw(st.integers(0, 9))
        result = memory.recall(asked, scope=home, top=top)
        odd, other, scope = data.draw(ODD), data.draw(ODD), data.draw(PLACE)
        for call in (
            lambda: memory.get(odd, scope=scope),
            lambda: result.explain(odd),
            lambda: result.swap(odd, other),
            lambda: result.compare(odd),
            lambda: memory.to_networkx(scope=scope),
            lambda: memory.recall("tea", scope=scope).compare(result),
        ):
            refused(call)
        assert stored(memory) == before
        if isinstance(odd, str) and odd not in ("a", "b", "c", "far"):
            nobody = {**result.explain("nobody").plain(), "id": odd}
            assert result.explain(odd).plain() == nobody


ODD = st.one_of(IDS, numbers(), anything())
PLACE = st.one_of(SCOPES, scope_likes())
WRITES: dict[str, st.SearchStrategy[Callable[[rb.Memory], Any]]] = {
    "remember": ITEM.map(lambda item: lambda memory: memory.remember(**{**NAMES, **item})),
    "remember_many": st.one_of(
        st.lists(st.builds(lambda a, b: {**NAMES, **a, **b}, ITEM, BROUGHT), max_size=3), anything(),
    ).map(lambda items: lambda memory: memory.remember_many(items)),
    "forget": st.tuples(st.one_of(IDS, st.lists(IDS, max_size=3), anything()), scope_likes()).map(
        lambda given: lambda memory: memory.forget(given[0], scope=given[1])
    ),
    "reinforce": st.tuples(st.one_of(IDS, st.lists(IDS, max_size=3), anything()), scope_likes()).map(
        lambda given: lambda memory: memory.reinforce(given[0], scope=given[1])
    ),
    "link": LINK.map(
        lambda link: lambda memory: memory.link(**{"source": "a", "target": "c", "scope": USER, **link})
    ),
    "link_many": st.tuples(st.one_of(st.lists(LINK, max_size=3), anything()), scope_likes()).map(
        lambda given: lambda memory: memory.link_many(given[0], scope=given[1])
    ),
    "unlink": st.tuples(st.one_of(IDS, anything()), st.one_of(IDS, anything()), scope_likes()).map(
        lambda given: lambda memory: memory.unlink(given[0], given[1], scope=given[2])
    ),
    "add_networkx": st.lists(
        st.tuples(st.one_of(IDS, st.integers()), IDS, mappings(numbers())), max_size=3
    ).map(
        lambda edges: lambda memory: memory.add_networkx(
            nx.DiGraph([(a, b, {str(k): v for k, v in more.items()}) for a, b, more in edges]), scope=USER
        )
    ),
}  # fmt: skip
CALLS = st.one_of(*WRITES.values())


@few
@given(CALLS)
def test_write_when_given_anything_then_refused_and_nothing_stored_or_answered(
    call: Callable[[rb.Memory], Any],
) -> None:
    check_write(call)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITES)
@settings(fuzzed, max_examples=400)
@given(st.data())
def test_write_when_given_anything_very_often_then_refused_and_nothing_stored_or_answered(
    name: str, data: st.DataObject
) -> None:
    check_write(data.draw(WRITES[name]))


@few
@given(st.one_of(QUERIES, anything()), QUESTION)
def test_recall_when_asked_anything_then_refused_or_right(
    query: Any, arguments: dict[str, Any]
) -> None:
    check_question(query, arguments)


@pytest.mark.slow
@many
@given(st.one_of(QUERIES, anything()), QUESTION)
def test_recall_when_asked_anything_very_often_then_refused_or_right(
    query: Any, arguments: dict[str, Any]
) -> None:
    check_question(query, arguments)


@few
@given(st.data())
def test_lookup_when_given_anything_then_refused_or_the_words_for_the_unknown(
    data: st.DataObject,
) -> None:
    check_lookup(data)


@pytest.mark.slow
@many
@given(st.data())
def test_lookup_when_given_anything_very_often_then_refused_or_the_words_for_the_unknown(
    data: st.DataObject,
) -> None:
    check_lookup(data)
