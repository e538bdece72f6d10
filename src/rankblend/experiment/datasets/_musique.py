"""MuSiQue with a knowledge graph: multi-hop questions over passages and their OpenIE triples.

Source: Trivedi et al., "MuSiQue: Multihop Questions via Single-hop Question Composition", TACL 2022
(CC BY 4.0); sample and triples as published with HippoRAG (NeurIPS 2024).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from rankblend.experiment.datasets._dataset import Dataset, JudgedQuery, judged, read_json, reading
from rankblend.relevance import Scope

_SCOPE = Scope.parse("dataset:musique")


def load_musique(path: str | PathLike[str]) -> Dataset:
    """Read the folder with ``data/musique_train*.json`` and ``output/openie_musique_train*.json``.

    Each passage becomes a memory ``p<number>`` (title, then text) linked to the entities found in
    it, by name; each triple becomes a link between two entities. A question's relevant memories are
    the passages its annotators marked as supporting; its family is the number of hops.

    Raises:
        InvalidArgumentError: The folder does not hold these files.
    """
    folder = Path(path)
    expected = "a folder with data/musique_train.json, data/musique_train_corpus.json and output/"
    with reading("MuSiQue", path, expected):
        openie = read_json(sorted(folder.glob("output/openie_musique_train*.json"))[0])
        corpus = read_json(folder / "data" / "musique_train_corpus.json")
        questions = read_json(folder / "data" / "musique_train.json")
        extracted = {(d["title"], d["text"]): d for d in openie["docs"]}
        memories, links, position_of = [], [], {}
        for number, passage in enumerate(corpus):
            found = extracted.get((passage["title"], passage["text"]), {})
            position_of[passage["title"], passage["text"]] = f"p{number}"
            memories.append(_memory(number, passage, found))
            links += list(_links(found))
        queries = [_query(question, position_of) for question in questions]
    return judged(
        "musique", "CC BY 4.0", memories, queries, links={_SCOPE: links},
        lacking="no supporting passage in the corpus",
    )  # fmt: skip


def _memory(number: int, passage: Mapping[str, str], found: Mapping[str, Any]) -> Mapping[str, Any]:
    names = [*found.get("extracted_entities", ())]
    for triple in found.get("extracted_triples", ()):
        if len(triple) == 3:
            names += [triple[0], triple[2]]
    entities = dict.fromkeys(name for name in map(_clean, names) if name)
    return {
        "id": f"p{number}",
        "text": f"{passage['title']}\n{passage['text']}",
        "scope": _SCOPE,
        "layer": "semantic",
        "links": tuple({"target": name, "kind": "mentions"} for name in entities),
        "metadata": {"title": passage["title"]},
    }


def _links(found: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for triple in found.get("extracted_triples", ()):
        if len(triple) != 3:
            continue
        subject, relation, value = map(_clean, triple)
        if subject and value and subject != value:
            yield {"source": subject, "target": value, "kind": relation[:100] or "related"}


def _clean(name: object) -> str:
    """An entity's name in lower case, so that the same entity of two passages is one node."""
    return " ".join(str(name).casefold().split())[:500]


def _query(question: Mapping[str, Any], position_of: Mapping[tuple[str, str], str]) -> JudgedQuery:
    supporting = [
        position_of.get((p["title"], p["paragraph_text"]))
        for p in question["paragraphs"]
        if p["is_supporting"]
    ]
    return JudgedQuery(
        question["id"],
        question["question"],
        _SCOPE,
        {passage: 1.0 for passage in supporting if passage is not None},
        question["id"].split("__")[0].rstrip("0123456789") or question["id"][:4],
        question["id"],
    )
