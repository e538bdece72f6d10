"""The study of procedures: its converters, and all of it on a slice of real data."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from studies.procedure_banking import banking_results, steps_graph
from studies.procedure_runs import capture_of, replayed
from studies.procedures import procedures_report

from rankblend.embedders import wordllama
from rankblend.experiment.datasets import Dataset, JudgedQuery, TaskRun
from rankblend.experiment.report._report import as_markdown
from rankblend.relevance import Scope

SCOPE = Scope.parse("dataset:bank")


def document(name: str, text: str) -> dict[str, Any]:
    return {"id": name, "scope": SCOPE, "text": text, "metadata": {"title": name}}


def test_steps_when_numbered_then_each_is_a_node_and_a_named_tool_is_its() -> None:
    graph = steps_graph(document("d", "## Title\n1. Verify identity.\n2. Use open_account_4821.\n"))
    assert [(node.type, node.tool) for node in graph.nodes] == [
        ("agent", None), ("tool", "open_account_4821"),
    ]  # fmt: skip
    assert [(edge.source, edge.target) for edge in graph.edges] == [("step-1", "step-2")]


@pytest.mark.parametrize(
    ("text", "steps"), [("## A\nx\n### B\ny\n", ["A", "B"]), ("only text", ["d"])]
)
def test_steps_when_nothing_is_numbered_then_headings_or_one_step(
    text: str, steps: list[str]
) -> None:
    graph = steps_graph(document("d", text))
    assert [node.name for node in graph.nodes] == steps
    assert graph.validate() == ()


def test_banking_when_other_tasks_required_a_procedure_then_it_rises_and_its_own_do_not_count() -> (
    None
):
    pytest.importorskip("wordllama")
    documents = [document(f"d{n}", f"close account number {n}") for n in range(4)]
    # Five tasks, a fold each: all require d3, the first alone requires d0.
    tasks = [
        JudgedQuery(
            f"t{n}", "close my account", SCOPE, {"d3": 1.0} | ({"d0": 1.0} if not n else {})
        )
        for n in range(5)
    ]
    dataset = Dataset("bank", "none", tuple(documents), {}, tuple(tasks))
    results = asyncio.run(banking_results(dataset, wordllama()))
    successes = results.measure("Success@1")
    assert successes[results.arm("the record alone, pool 200")].tolist() == [1.0] * 5
    plain, floorless = results.arm("similarity only"), results.arm("mnemosyne, no floor")
    for measure in results.values.values():
        assert measure[plain].tolist() == measure[floorless].tolist()


def said(role: str, text: str | None = None, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": text, **more}


def run(task: str, trial: int, tool: str | None, *, success: bool) -> TaskRun:
    messages = [said("system", "policy"), said("user", f"Hello, task {task}")]
    if tool is not None:
        call = {"id": "c", "function": {"name": tool, "arguments": '{"id": 1}'}}
        messages += [said("assistant", tool_calls=[call]), said("tool", "ok", tool_call_id="c"),
                     said("assistant", "Shall I?"), said("user", "Yes")]  # fmt: skip
    messages.append(said("assistant", "Done"))
    tools = () if tool is None else (tool,)
    return TaskRun(task, trial, success, f"You want {task}", tuple(messages), tools)


def test_capture_when_the_customer_speaks_again_then_the_first_words_are_the_question() -> None:
    made = run("7", 0, "cancel", success=True)
    capture, told = capture_of(made), capture_of(made, instructions=True)
    assert capture is not None
    assert told is not None
    assert (capture.question, told.question) == ("Hello, task 7", "You want 7")
    assert [node.tool for node in capture.graph.nodes] == ["cancel"]
    assert capture_of(run("7", 0, None, success=True)) is None


def test_replay_when_verdicts_tell_two_ways_apart_then_the_one_that_works_comes_first() -> None:
    pytest.importorskip("wordllama")
    runs = [
        run("1", trial, "wrong" if trial < 3 else "right", success=trial >= 3) for trial in range(6)
    ]
    found = asyncio.run(replayed(runs, wordllama()))
    assert len(found.results.queries) == 3  # the trials that succeeded
    assert sum(found.produced.values()) == 6 * 5
    after = found.results.measure("Success@1")[found.results.arm("after the verdicts")]
    assert after.tolist() == [1.0, 1.0, 1.0]
    assert (found.skipped, found.unanswerable) == (0, 0)


def test_report_when_made_of_a_slice_then_every_table_is_there(shared: Path) -> None:
    pytest.importorskip("wordllama")
    report = procedures_report(shared / "data", wordllama(), limit=3)
    page = as_markdown(report)
    assert [section.title for section in report.sections][2].endswith("runs of an agent")
    assert page.count("| with a record, floor .5") == 2
    assert page.count("| after the verdicts, without freshness") == 2
    assert "nan" not in page
