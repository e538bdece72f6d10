"""Laws of captures: what must not change a graph does not, and no value is ever in one."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "chat"))
import itertools

from chat_world import DETAILS, calls, result, said, user

from rankblend.chat import NoToolCallsError, transcript_to_capture
from rankblend.chat._streaming import MessageAssembler

tools = st.sampled_from(["a", "b", "c"])
argument_names = st.frozensets(st.sampled_from("xyz"))
trips = st.lists(st.lists(st.tuples(tools, argument_names), min_size=1, max_size=3), max_size=5)
Trips = list[list[tuple[str, frozenset[str]]]]
seeds = st.integers(0, 2**16)
FAILURES = ['{"error": "no"}', "Error: no"]


def run(made: Trips, *, seed: int = 0, failures: bool = False) -> list[dict[str, Any]]:
    """The messages of a run: values and the order within a trip by the seed.

    With failures, each trip is preceded by one in which all of its calls fail.
    """
    messages = [user(f"question {seed}")]
    for number, trip in enumerate(made):
        for attempt in ("failed", "made") if failures else ("made",):
            asked, results = [], []
            order = sorted(range(len(trip)), key=lambda at: hash((seed, number, at)))
            for at in order:
                tool, names = trip[at]
                identifier = f"{number}-{at}-{attempt}"
                values = {name: f"value {seed} {name}" for name in names}
                function = {"name": tool, "arguments": json.dumps(values)}
                asked.append({"id": identifier, "function": function})
                bad = attempt == "failed"
                results.append(result(identifier, FAILURES[seed % 2] if bad else f"fine {seed}"))
            messages += [calls(*asked), *(results if seed % 3 else reversed(results))]
    return [*messages, said(f"answer {seed}")]


def digest(messages: list[dict[str, Any]]) -> str:
    return transcript_to_capture(messages, DETAILS).graph.digest


@given(trips.filter(bool), seeds, seeds)
def test_graph_when_a_run_is_made_again_with_other_values_and_orders_then_it_is_the_same(
    made: Trips, one: int, other: int
) -> None:
    assert digest(run(made, seed=one)) == digest(run(made, seed=other))


@given(trips.filter(bool), seeds)
def test_graph_when_calls_failed_before_they_were_retried_then_it_is_the_same(
    made: Trips, seed: int
) -> None:
    assert digest(run(made, seed=seed, failures=True)) == digest(run(made, seed=seed))


@given(trips.filter(bool), st.data())
def test_graph_when_a_call_is_repeated_at_once_then_it_is_the_same(
    made: Trips, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(made) - 1))
    last = max(made[at], key=lambda call: (call[0], sorted(call[1])))
    repeated = [*made[: at + 1], [last], *made[at + 1 :]]
    assert digest(run(repeated)) == digest(run(made))


@given(trips.filter(bool), seeds)
def test_graph_when_made_then_it_is_valid_and_a_chain_without_a_value(
    made: Trips, seed: int
) -> None:
    graph = transcript_to_capture(run(made, seed=seed), DETAILS).graph
    assert graph.validate() == ()
    assert "value" not in json.dumps(graph.plain())
    ids = [node.id for node in graph.nodes]
    assert [(edge.source, edge.target) for edge in graph.edges] == list(itertools.pairwise(ids))
    steps = [(node.tool, tuple(node.properties["mnemosyne.arguments"])) for node in graph.nodes]  # type: ignore[arg-type]
    assert all(before != after for before, after in itertools.pairwise(steps))
    assert {tool for tool, _ in steps} == {tool for trip in made for tool, _ in trip}


@given(trips, trips)
def test_graph_when_earlier_questions_came_before_then_they_do_not_count(
    before: Trips, made: Trips
) -> None:
    assume(made)
    assert digest([*run(before), *run(made)]) == digest(run(made))


@given(trips)
def test_capture_when_no_call_succeeds_then_there_is_none(made: Trips) -> None:
    failed = [
        {**message, "is_error": True} if message["role"] == "tool" else message
        for message in run(made)
    ]
    try:
        transcript_to_capture(failed, DETAILS)
    except NoToolCallsError:
        return
    raise AssertionError


@given(trips, st.data())
def test_stream_when_cut_anywhere_then_it_adds_up_to_the_same_messages(
    made: Trips, data: st.DataObject
) -> None:
    whole = run(made)[1:]
    assembler = MessageAssembler()
    for message in whole:
        if message["role"] == "tool":
            assembler.add(message)
            continue
        assembler.add({"role": "assistant"})
        for piece in _cut(message["content"] or "", data):
            assembler.add({"content": piece})
        for index, call in enumerate(message.get("tool_calls", ())):
            function = call["function"]
            head = {"index": index, "id": call["id"], "function": {"name": function["name"]}}
            assembler.add({"tool_calls": [head]})
            for piece in _cut(function["arguments"], data):
                assembler.add({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    assert list(assembler.messages()) == whole


def _cut(text: str, data: st.DataObject) -> list[str]:
    places = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=3)))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]
