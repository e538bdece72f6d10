"""The transcripts of 200 real runs, cut at each user turn."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from chat_world import DETAILS

from rankblend.chat import TranscriptError, transcript_to_capture
from rankblend.experiment.datasets import load_taubench_runs
from rankblend.reasonlets import Capture


@frozen
class Cut:
    """One exchange, and the capture of it or why there is none."""

    task: str
    trial: int
    messages: tuple[Any, ...]
    capture: Capture | None
    code: str | None

    @property
    def called(self) -> list[Any]:
        return [call for m in self.messages for call in m.get("tool_calls") or ()]

    @property
    def path(self) -> tuple[Any, ...]:
        """Tools and argument names of the calls that worked, by hand; no calls are made together."""
        path: list[Any] = []
        for message, answer in zip(self.messages, self.messages[1:], strict=False):
            for call in message.get("tool_calls") or ():
                assert answer["tool_call_id"] == call["id"]
                function = call["function"]
                step = (function["name"], tuple(sorted(json.loads(function["arguments"]))))
                if not answer["content"].startswith("Error") and path[-1:] != [step]:
                    path.append(step)
        return tuple(path)


def _cut(messages: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    starts = [at for at, message in enumerate(messages) if message["role"] == "user"]
    for start, end in zip(starts, [*starts[1:], len(messages)], strict=True):
        yield messages[start:end]


@pytest.fixture(scope="module")
def cuts(shared: Path) -> list[Cut]:
    found = []
    for run in load_taubench_runs(shared / "data" / "taubench" / "gpt-4o-airline.json"):
        for messages in _cut(run.messages):
            try:
                capture, code = transcript_to_capture(messages, DETAILS), None
            except TranscriptError as error:
                capture, code = None, error.code
            found.append(Cut(run.task, run.trial, messages, capture, code))
    return found


def test_real_exchanges_when_captured_then_these_many_are_procedures(cuts: list[Cut]) -> None:
    assert len(cuts) == 1490
    with_calls = [cut for cut in cuts if cut.called]
    assert len(with_calls) == 569
    assert Counter(cut.code for cut in cuts) == {None: 540, "no_tool_calls": 950}
    assert sum(cut.capture is None for cut in with_calls) == 29  # 569 − 540
    graphs = {cut.capture.graph.digest for cut in cuts if cut.capture is not None}
    assert len(graphs) == 68


def test_real_exchanges_when_they_follow_the_same_path_then_they_have_the_same_graph(
    cuts: list[Cut],
) -> None:
    graphs = defaultdict(set)
    trials = defaultdict(set)
    for cut in cuts:
        if cut.capture is not None:
            graphs[cut.path].add(cut.capture.graph.digest)
            trials[cut.task, cut.path].add(cut.trial)
    assert all(len(found) == 1 for found in graphs.values())
    assert len(graphs) == 68  # and another path is another graph
    # Rerun means the same task: so many paths of a task were followed in more than one trial.
    assert sum(len(found) > 1 for found in trials.values()) == 130


def test_real_exchanges_when_captured_then_no_graph_holds_an_argument_value(
    cuts: list[Cut],
) -> None:
    for cut in cuts:
        if cut.capture is None:
            continue
        functions = [call["function"] for call in cut.called]
        names = {name for f in functions for name in json.loads(f["arguments"])}
        allowed = {f["name"] for f in functions} | names | {"tool", "mnemosyne.arguments"}
        allowed |= {f"step-{n}" for n in range(1, 100)}
        allowed |= {"schema_version", "nodes", "edges", "from", "to", "id", "type", "properties"}
        assert set(_texts(cut.capture.graph.plain())) <= allowed
        assert not set(_texts(cut.capture.graph.plain())) & {
            text
            for f in functions
            for text in _texts(json.loads(f["arguments"]))
            if text not in names
        }
        assert cut.capture.validate() == ()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            yield name
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
