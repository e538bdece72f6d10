"""τ²-bench banking: procedures of a bank's service desk and tasks that need several of them.

Source: Barres et al., "τ²-Bench: Evaluating Conversational Agents in a Dual-Control Environment"
(2025), domain ``banking_knowledge`` (MIT).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from rankblend.experiment.datasets._dataset import Dataset, JudgedQuery, judged, read_json, reading
from rankblend.relevance import Scope

_SCOPE = Scope.parse("dataset:tau2-banking")
_TOPIC = re.compile(r"doc_(.+)_\d+")


def load_tau2_banking(path: str | PathLike[str]) -> Dataset:
    """Read the folder with ``tasks.json`` and ``documents/``.

    Each document becomes a procedural memory (title, then content) at ``dataset:tau2-banking``,
    with the product or subject that its id names as ``topic`` in its metadata. A task is
    asked as the customer's instructions; its relevant memories are the documents it lists as
    required. Its family tells how many those are: ``1-4``, ``5-9``, ``10+``.

    Raises:
        InvalidArgumentError: The folder does not hold these files.
    """
    folder = Path(path)
    expected = "a folder with tasks.json and documents/*.json (domain banking_knowledge)"
    with reading("τ²-bench banking", path, expected):
        sources = sorted(folder.glob("documents/*.json"))
        if not sources or not (folder / "tasks.json").is_file():
            raise LookupError
        tasks = read_json(folder / "tasks.json")
        memories = tuple(_memory(read_json(source)) for source in sources)
        known = {memory["id"] for memory in memories}
        queries = [_query(task, known) for task in tasks]
    return judged("tau2-banking", "MIT", memories, queries, lacking="no required document")


def _memory(document: Mapping[str, Any]) -> Mapping[str, Any]:
    matched = _TOPIC.fullmatch(document["id"])
    topic = matched[1] if matched else "other"
    return {
        "id": document["id"],
        "text": f"{document['title']}\n{document['content']}",
        "scope": _SCOPE,
        "layer": "procedural",
        "metadata": {"title": document["title"], "topic": topic},
    }


def _query(task: Mapping[str, Any], known: set[str]) -> JudgedQuery:
    required = sorted(known & set(task["required_documents"]))
    size = len(required)
    return JudgedQuery(
        str(task["id"]),
        task["user_scenario"]["instructions"],
        _SCOPE,
        dict.fromkeys(required, 1.0),
        "1-4" if size < 5 else "5-9" if size < 10 else "10+",
        str(task["id"]),
    )
