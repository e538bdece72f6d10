"""BFCL memory: earlier conversations with an assistant and questions that need them.

Source: Berkeley Function Calling Leaderboard v4, the memory category (Apache-2.0).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from rankblend.experiment.datasets._dataset import Dataset, JudgedQuery, judged, read_json, reading
from rankblend.relevance import Scope

_ELLIPSIS = re.compile(r"\.{3,}|…")
_NOT_WORD = re.compile(r"[^a-z0-9]+")
_LEAST_QUOTE = 12  # shorter pieces of a quote occur in many turns


def load_bfcl(path: str | PathLike[str]) -> Dataset:
    """Read the folder with ``BFCL_v4_memory.json``.

    Each user turn of an earlier conversation becomes a memory at
    ``dataset:bfcl/scenario:…/session:…``. A question's relevant memories are the turns that contain
    the verbatim quote its answer key gives (compared on letters and digits, piece by piece where
    the quote has an ellipsis). Questions are asked at their scenario.

    Raises:
        InvalidArgumentError: The folder does not hold these files.
    """
    folder = Path(path)
    expected = "a folder with BFCL_v4_memory.json, memory_prereq_conversation/, possible_answer/"
    with reading("BFCL memory", path, expected):
        sources = sorted(folder.glob("memory_prereq_conversation/memory_*.json"))
        if not sources:
            raise LookupError
        questions = read_json(folder / "BFCL_v4_memory.json")
        answers = read_json(folder / "possible_answer" / "BFCL_v4_memory.json")
        memories = [turn for source in sources for turn in _turns(source)]
        quotes = {answer["id"]: answer["source"] for answer in answers}
        queries = [_query(question, quotes, memories) for question in questions]
    return judged(
        "bfcl", "Apache-2.0", memories, queries, lacking="quote found in no turn", reach="subtree"
    )


def _turns(source: Path) -> Iterator[Mapping[str, Any]]:
    scenario = source.stem.removeprefix("memory_")
    scope = Scope.parse("dataset:bfcl") / f"scenario:{scenario}"
    for number, session in enumerate(read_json(source)):
        turns = [message["content"] for turn in session["question"] for message in turn]
        ids = [f"{scenario}:{number}:{position}" for position in range(len(turns))]
        for position, text in enumerate(turns):
            yield {
                "id": ids[position],
                "text": text,
                "scope": scope / f"session:{number}",
                "layer": "episodic",
                "links": tuple(
                    {"target": target, "kind": "next"} for target in ids[position + 1 :][:1]
                ),
                "metadata": {"topic": session.get("topic", "")},
            }


def _query(
    question: Mapping[str, Any],
    quotes: Mapping[str, str],
    memories: list[Mapping[str, Any]],
) -> JudgedQuery:
    scenario = question["scenario"]
    pieces = [_plain(piece) for piece in _ELLIPSIS.split(quotes.get(question["id"], ""))]
    pieces = [piece for piece in pieces if len(piece) >= _LEAST_QUOTE] or [p for p in pieces if p]
    scope = Scope.parse("dataset:bfcl") / f"scenario:{scenario}"
    relevant = {
        str(memory["id"]): 1.0
        for memory in memories
        if scope.contains(memory["scope"])
        and pieces
        and any(piece in _plain(memory["text"]) for piece in pieces)
    }
    return JudgedQuery(
        question["id"],
        question["question"][0][0]["content"],
        scope,
        relevant,
        scenario,
        scenario,
    )


def _plain(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    return _NOT_WORD.sub(" ", decomposed).strip()
