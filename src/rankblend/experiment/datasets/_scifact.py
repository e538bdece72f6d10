"""SciFact: scientific claims and the abstracts that support or refute them.

Source: Wadden et al., "Fact or Fiction: Verifying Scientific Claims", EMNLP 2020 (claims CC BY-NC
2.0, abstracts ODC-By 1.0), as exported to CSV. The validation claims with the abstracts they cite
are the 300 queries and 339 judgments that BEIR calls the test split.
"""

from __future__ import annotations

import ast
import csv
import io
import re
import sys
import tokenize
import zipfile
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from rankblend.experiment.datasets._dataset import Dataset, JudgedQuery, judged, wrong_format
from rankblend.relevance import Scope

_SCOPE = Scope.parse("dataset:scifact")
_NUMBER = re.compile(r"\d+")
_CORPUS, _CLAIMS = "corpus_train.csv", "claims_validation.csv"


def load_scifact(path: str | PathLike[str]) -> Dataset:
    """Read ``corpus_train.csv`` and ``claims_validation.csv`` from a folder or a zip file.

    Each abstract becomes a memory (title, then sentences) at ``dataset:scifact``; each distinct
    claim is a query whose relevant memories are the abstracts it cites. A claim's family tells
    whether its evidence is labelled ``SUPPORT``, ``CONTRADICT`` or not at all (``NONE``).

    Raises:
        InvalidArgumentError: The path does not hold these files.
    """
    expected = f"a folder or a zip file with {_CORPUS} and {_CLAIMS}"
    try:
        memories = tuple(map(_memory, _rows(Path(path), _CORPUS)))
        known = {memory["id"] for memory in memories}
        claims: dict[str, tuple[str, dict[str, float], str]] = {}
        for row in _rows(Path(path), _CLAIMS):
            text, relevant, label = claims.setdefault(row["id"], (row["claim"], {}, "NONE"))
            relevant.update(dict.fromkeys(_NUMBER.findall(row["cited_doc_ids"]), 1.0))
            claims[row["id"]] = text, relevant, row["evidence_label"] or label
    except (OSError, KeyError, ValueError, SyntaxError, zipfile.BadZipFile) as error:
        raise wrong_format("SciFact", path, expected) from error
    queries = [
        JudgedQuery(f"c{key}", text, _SCOPE, {i: g for i, g in cited.items() if i in known},
                    label, f"c{key}")
        for key, (text, cited, label) in claims.items()
    ]  # fmt: skip
    return judged(
        "scifact", "claims CC BY-NC 2.0, abstracts ODC-By 1.0 (evaluation only)", memories, queries,
        lacking="cites no abstract of the corpus",
    )  # fmt: skip


def _rows(path: Path, name: str) -> Iterator[Mapping[str, str]]:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    if path.is_dir():
        with (path / name).open(encoding="utf-8-sig", newline="") as file:
            yield from csv.DictReader(file)
        return
    with zipfile.ZipFile(path) as archive:
        member = next((n for n in archive.namelist() if n.split("/")[-1] == name), None)
        if member is None:
            raise KeyError(name)
        with archive.open(member) as file:
            yield from csv.DictReader(io.TextIOWrapper(file, encoding="utf-8-sig", newline=""))


def _memory(row: Mapping[str, str]) -> Mapping[str, Any]:
    return {
        "id": row["doc_id"],
        "text": " ".join([row["title"], *_strings(row["abstract"])]),
        "scope": _SCOPE,
        "layer": "semantic",
        "metadata": {"title": row["title"]},
    }


def _strings(shown: str) -> list[str]:
    """The sentences in the printed form of an array: string literals without commas between."""
    tokens = tokenize.generate_tokens(io.StringIO(shown).readline)
    return [str(ast.literal_eval(t.string)) for t in tokens if t.type == tokenize.STRING]
