"""A bank's procedures remembered as Reasonlets and recalled for tasks that need several of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from rankblend.embedders import Embedder
from rankblend.experiment.datasets import Dataset, JudgedQuery
from rankblend.experiment.results import Results
from rankblend.reasonlets import (
    Capture,
    Edge,
    Graph,
    InMemoryReasonletStore,
    Node,
    Outcome,
    Provenance,
    ReasonletMemory,
    ReasonletOptions,
)
from studies.procedure_arms import FLOORLESS, SIMILARITY_ONLY, Asked, measured, ranked

__all__ = ["AFTER", "BEFORE", "FOLDS", "banking_results", "steps_graph"]

FOLDS = 5
_MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
_SOURCE = Provenance("service desk manual")
_NUMBERED = re.compile(r"^\s{0,1}\d+[.)]\s+(.+)$", re.MULTILINE)
_HEADING = re.compile(r"^#+\s+(.+)$", re.MULTILINE)
_TOOL = re.compile(r"\b[a-z]+(?:_[a-z]+)*_\d{3,}\b")
_WIDE = ReasonletOptions(min_similarity=0.0, candidate_pool=200)
_RECORD_ONLY = ReasonletOptions(
    similarity_weight=0.0, success_rate_weight=1.0, freshness_weight=0.0, min_similarity=0.0,
    candidate_pool=200,
)  # fmt: skip

BEFORE: Mapping[str, ReasonletOptions] = {
    "similarity only": SIMILARITY_ONLY,
    "mnemosyne, floor .5": ReasonletOptions(),
    "mnemosyne, no floor": FLOORLESS,
}
AFTER: Mapping[str, ReasonletOptions] = {
    "with a record, floor .5": ReasonletOptions(),
    "with a record, no floor": FLOORLESS,
    "with a record, no floor, pool 200": _WIDE,
    "the record alone, pool 200": _RECORD_ONLY,
}


async def banking_results(dataset: Dataset, embedder: Embedder, *, titles: bool = False) -> Results:
    """Every arm on every task.

    The record of a task's recall are the runs of the other folds' tasks: each is one run, that
    worked, of each procedure it requires.

    Args:
        dataset: Documents and tasks.
        embedder: Of questions.
        titles: A procedure's question is its title, not its whole text.
    """
    plain, ids = await _remembered(dataset, embedder, titles=titles)
    entries = await plain.dump()
    asked = []
    for fold in range(FOLDS):
        experienced = InMemoryReasonletStore()
        await experienced.load(entries)
        memory = ReasonletMemory(embedder, experienced, clock=lambda: _MOMENT)
        for number, task in enumerate(dataset.queries):
            if number % FOLDS != fold:
                await _record(memory, task, ids)
        for task in dataset.queries[fold::FOLDS]:
            rankings = {}
            for store, arms in ((plain, BEFORE), (experienced, AFTER)):
                for name, options in arms.items():
                    rankings[name] = await _recalled(store, embedder, task, options)
            relevant = {ids[name]: gain for name, gain in task.relevant.items()}
            asked.append(Asked(task.id, task.cluster, relevant, rankings))
    return measured(asked)


def steps_graph(document: Mapping[str, Any]) -> Graph:
    """The numbered steps of a document, else its headings, else one step that reads it.

    A step that names a tool, such as ``open_bank_account_4821``, is a call of it.
    """
    text = str(document["text"])
    lines = _NUMBERED.findall(text) or _HEADING.findall(text)
    if not lines:
        return Graph([Node("read", "retrieve", name=str(document["metadata"]["title"]))])
    nodes = []
    for number, line in enumerate(lines, start=1):
        tool = _TOOL.search(line)
        kind, name = ("tool", tool[0]) if tool else ("agent", None)
        nodes.append(Node(f"step-{number}", kind, name=line.strip()[:200], tool=name))
    return Graph(nodes, [Edge(one.id, two.id) for one, two in pairwise(nodes)])


async def _remembered(
    dataset: Dataset, embedder: Embedder, *, titles: bool
) -> tuple[InMemoryReasonletStore, dict[str, str]]:
    """A store with every document, and document → id."""
    store = InMemoryReasonletStore()
    memory = ReasonletMemory(embedder, store, clock=lambda: _MOMENT)
    ids = {}
    for document in dataset.memories:
        title = str(document["metadata"]["title"])
        question = title if titles else str(document["text"])[:32_000]
        receipt = await memory.remember(
            Capture(document["scope"], question, steps_graph(document), Outcome(success=True),
                    _SOURCE, title)
        )  # fmt: skip
        ids[str(document["id"])] = receipt.id
    return store, ids


async def _record(memory: ReasonletMemory, task: JudgedQuery, ids: Mapping[str, str]) -> None:
    scope = task.scope
    for document in task.relevant:
        run = await memory.record_execution(
            scope, ids[document], outcome=Outcome(success=True),
            provenance=Provenance("service desk", run_id=task.id),
        )  # fmt: skip
        await memory.record_feedback(
            scope, run.execution, utility=1.0, correctness=1.0, reusability=1.0, worked=True
        )


async def _recalled(
    store: InMemoryReasonletStore, embedder: Embedder, task: JudgedQuery, options: ReasonletOptions
) -> list[str]:
    matches = await ranked(
        store, embedder, task.text, str(task.scope), options, clock=lambda: _MOMENT
    )
    return [match.reasonlet.id for match in matches]
