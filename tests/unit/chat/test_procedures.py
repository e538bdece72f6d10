"""A procedure in words: the order of its steps, and what is never shown."""

from __future__ import annotations

import asyncio
import json

from chat_world import QUESTION, SCOPE, embed

from rankblend.chat import describe_match, matches_as_json
from rankblend.chat._offer import steps_of
from rankblend.reasonlets import (
    Capture,
    Edge,
    Graph,
    Node,
    Outcome,
    Provenance,
    ReasonletMatch,
    ReasonletMemory,
)


def order(nodes: str, *edges: str) -> str:
    graph = Graph([Node(each, each) for each in nodes], [Edge(*edge) for edge in edges])
    return "".join(step.tool for step in steps_of(graph))


def match_of(graph: Graph, name: str) -> ReasonletMatch:
    async def main() -> ReasonletMatch:
        memory = ReasonletMemory(embed)
        await memory.remember(
            Capture(SCOPE, QUESTION, graph, Outcome(success=True), Provenance("x"), name=name)
        )
        (match,) = await memory.recall(QUESTION, scope=SCOPE)
        return match

    return asyncio.run(main())


def test_steps_when_written_in_another_order_then_they_follow_the_edges() -> None:
    assert order("cab", "ab", "bc") == "abc"
    assert order("abcd", "ac", "bc", "cd") == "abcd"
    assert order("dabc", "ab", "ab", "ac", "cd") == "abcd"


def test_steps_when_there_are_no_edges_then_as_written() -> None:
    assert order("cab") == "cab"
    assert order("") == ""


def test_steps_when_they_are_on_a_cycle_then_they_come_last_as_written() -> None:
    assert order("zyab", "zy", "yz", "ab") == "abzy"
    assert order("a", "aa") == "a"


def test_step_when_it_calls_no_tool_then_its_type_is_shown_and_never_its_name() -> None:
    nodes = [
        Node("1", "tool", name="first", tool="pay"),
        Node("2", "decision", name="Has Ana of 12 High Street paid?"),
        Node("3", "answer"),
        Node("4", "tool", tool="odd", properties={"mnemosyne.arguments": "secret"}),
        Node("5", "tool", tool="mixed", properties={"mnemosyne.arguments": ["a", 7]}),
    ]
    shown = [(step.tool, step.arguments) for step in steps_of(Graph(nodes))]
    assert shown == [
        ("pay", ()),
        ("decision", ()),
        ("answer", ()),
        ("odd", ()),
        ("mixed", ("a",)),
    ]


def test_names_when_they_hold_line_breaks_or_invisible_characters_then_they_are_one_line() -> None:
    bad = "pay\r\n\u2028\u202enow\x00 \u200b!"
    node = Node("n", "tool", tool=bad, properties={"mnemosyne.arguments": [bad]})
    match = match_of(Graph([node]), bad)
    assert describe_match(match).count("pay now !") == 3
    assert len(describe_match(match).splitlines()) == 5
    (shown,) = json.loads(matches_as_json([match]))
    assert shown["name"] == "pay now !"
    assert shown["steps"] == [{"tool": "pay now !", "arguments": ["pay now !"]}]


def test_matches_when_there_are_none_then_an_empty_array() -> None:
    assert matches_as_json([]) == "[]"
