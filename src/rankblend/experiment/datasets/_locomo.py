"""LoCoMo: very long conversations of two people, with questions about them.

Source: Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents", ACL 2024;
the file ``locomo10.json``. CC BY-NC 4.0: for evaluation only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

from rankblend.experiment.datasets._dataset import Dataset, JudgedQuery, read_json, reading
from rankblend.relevance import Scope

_FAMILIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
# Turns are named D<session>:<turn>; some evidence strings are compound or sloppy (D:11:26, D30:05).
_TURN = re.compile(r"D:?(\d+):0*(\d+)")
_SESSION = re.compile(r"session_(\d+)")


def load_locomo(path: str | PathLike[str]) -> Dataset:
    """Read ``locomo10.json``.

    Each turn becomes a memory ``<conversation>:D<session>:<turn>`` with the speaker's name before
    the text and the caption of a shared image behind it, at scope
    ``dataset:locomo/conversation:…/session:…``, dated like its session and linked to the next turn
    of the session. Questions of categories 1 to 4 with evidence among the turns are kept and are
    asked at their conversation on the day of its last session; category 5 is adversarial and has no answer in the text.

    Raises:
        InvalidArgumentError: The file is not LoCoMo.
    """
    data = read_json(Path(path))
    expected = "a list of conversations with 'conversation' and 'qa' (locomo10.json)"
    memories: list[Mapping[str, Any]] = []
    queries: list[JudgedQuery] = []
    excluded = {"adversarial": 0, "no usable evidence": 0}
    with reading("LoCoMo", path, expected):
        if not isinstance(data, list):
            raise TypeError
        for number, item in enumerate(data):
            name = str(item.get("sample_id", f"conv-{number}"))
            scope = Scope.parse("dataset:locomo") / f"conversation:{name}"
            turns = list(_turns(name, scope, item["conversation"]))
            memories += turns
            dates = {str(turn["id"]): turn["at"] for turn in turns}
            queries += _queries(name, scope, item["qa"], dates, excluded)
    return Dataset(
        "locomo",
        "CC BY-NC 4.0 (evaluation only)",
        tuple(memories),
        {},
        tuple(queries),
        excluded=excluded,
    )


def _turns(name: str, scope: Scope, conversation: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    numbers = sorted(int(m[1]) for key in conversation if (m := _SESSION.fullmatch(key)))
    for number in numbers:
        date = conversation[f"session_{number}_date_time"]
        at = datetime.strptime(date, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        turns = conversation[f"session_{number}"]
        ids = [f"{name}:{turn['dia_id']}" for turn in turns]
        for position, turn in enumerate(turns):
            caption = turn.get("blip_caption")
            following = ids[position + 1 : position + 2]
            yield {
                "id": ids[position],
                "text": f"{turn['speaker']}: {turn['text']}"
                + (f" [shares {caption}]" if caption else ""),
                "scope": scope / f"session:{number}",
                "layer": "episodic",
                "at": at,
                "links": tuple({"target": target, "kind": "next"} for target in following),
                "metadata": {"speaker": turn["speaker"]},
            }


def _queries(
    name: str,
    scope: Scope,
    questions: list[Mapping[str, Any]],
    dates: Mapping[str, datetime],
    excluded: dict[str, int],
) -> Iterator[JudgedQuery]:
    for number, question in enumerate(questions):
        family = _FAMILIES[question["category"]]
        if family == "adversarial":
            excluded["adversarial"] += 1
            continue
        evidence = " ".join(map(str, question.get("evidence", ())))
        turns = {f"{name}:D{m[1]}:{m[2]}" for m in _TURN.finditer(evidence)} & dates.keys()
        if not turns:
            excluded["no usable evidence"] += 1
            continue
        yield JudgedQuery(
            f"{name}:q{number}",
            str(question["question"]),
            scope,
            dict.fromkeys(sorted(turns), 1.0),
            family,
            name,
            max(dates.values()),
        )
