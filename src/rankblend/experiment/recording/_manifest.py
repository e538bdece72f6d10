"""What a recording says about itself: of what it was made, how deep, and what it holds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import asdict, evolve, field, fields, frozen

from rankblend.errors import RecordingError
from rankblend.experiment.datasets import Dataset
from rankblend.version import SCORING_VERSION

FORMAT = 1


@frozen
class RecordedStore:
    """A store that was asked.

    Attributes:
        name: Its name.
        kind: The name of its class.
        emits: The evidence it gives.
        recorded: What of that was recorded.
        seeded: It starts from other stores' proposals, and is recorded once a seeding.
        holds_vectors: The vectors of the recording are its own.
    """

    name: str
    kind: str
    emits: tuple[str, ...]
    recorded: tuple[str, ...]
    seeded: bool = False
    holds_vectors: bool = False


@frozen
class Manifest:
    """The identity of a recording; two with equal manifests were made of the same things.

    Attributes:
        dataset, licence: Name and licence of the data set.
        dataset_hash: SHA-256 of its memories, links, queries and judgments.
        queries: How many queries.
        excluded: Reason → how many queries of the source were left out for it.
        memories: How many memories the memory held.
        embedder: Identity of the embedder, or None.
        statistics: Over which memories keyword statistics were taken.
        reach: With which the queries were asked.
        stores: In the order in which they were asked.
        seedings: Sets of stores whose best proposals started the seeded stores; the first holds
            all. Each is what some profile's score reads.
        depth: Proposals recorded of each store, overall and per level.
        levels: How many scope levels were asked one by one.
        now: When queries without a time of their own were asked, seconds since the epoch.
        arguments: Further arguments of every recall, as JSON text.
        rankblend: Version that recorded.
        scoring_version: Of the arithmetic that recorded.
    """

    dataset: str
    licence: str
    dataset_hash: str
    queries: int
    excluded: Mapping[str, int] = field(hash=False)
    memories: int
    embedder: str | None
    statistics: str
    reach: str
    stores: tuple[RecordedStore, ...]
    seedings: tuple[tuple[str, ...], ...]
    depth: int
    levels: int
    now: float
    arguments: str
    rankblend: str
    scoring_version: int = SCORING_VERSION

    def to_json(self) -> str:
        """As JSON text, with the version of the format."""
        return json.dumps({"format": FORMAT, **asdict(self)}, ensure_ascii=False, sort_keys=True)

    @classmethod
    def from_json(cls, text: str | bytes, *, where: str) -> Manifest:
        """Read `to_json`.

        Raises:
            RecordingError: It is none, or of another version.
        """
        try:
            data: dict[str, Any] = json.loads(text)
            version = data.pop("format")
            if version != FORMAT:
                raise RecordingError(
                    f"{where}: has format {version}, this rankblend reads {FORMAT}; record it again"
                )
            data["stores"] = tuple(map(_read_store, data["stores"]))
            data["seedings"] = tuple(tuple(names) for names in data["seedings"])
            return cls(
                **{entry.name: data[entry.name] for entry in fields(cls) if entry.name in data}
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, RecordingError):
                raise
            raise RecordingError(
                f"{where}: its manifest cannot be read; record it again"
            ) from error

    def differences(self, other: Manifest) -> list[str]:
        """The names of what two manifests disagree on."""
        mine, theirs = asdict(self), asdict(other)
        return [name for name in mine if mine[name] != theirs[name]]

    def at(self, now: float) -> Manifest:
        """The same, with another time."""
        return evolve(self, now=now)

    def plain(self) -> dict[str, object]:
        """JSON-ready values for reports."""
        plain: dict[str, object] = json.loads(self.to_json())
        return plain


def _read_store(told: dict[str, Any]) -> RecordedStore:
    return RecordedStore(
        told["name"], told["kind"], tuple(told["emits"]), tuple(told["recorded"]),
        told["seeded"], told["holds_vectors"],
    )  # fmt: skip


def dataset_hash(dataset: Dataset) -> str:
    """SHA-256 of everything in a data set that can change a measurement, as 64 hex digits."""
    digest = hashlib.sha256()

    def add(*values: object) -> None:
        text = json.dumps(values, default=str, sort_keys=True, ensure_ascii=False)
        digest.update(text.encode("utf-8", "surrogatepass"))

    add(dataset.name, dataset.reach)
    for memory in dataset.memories:
        add({name: value for name, value in memory.items() if name != "vector"})
        if memory.get("vector") is not None:
            digest.update(np.asarray(memory["vector"], np.float32).tobytes())
    for scope, links in dataset.links.items():
        add(str(scope), [dict(link) for link in links])
    for query in dataset.queries:
        add(query.id, query.text, str(query.scope), dict(query.relevant), query.family,
            query.cluster, query.now)  # fmt: skip
    return digest.hexdigest()
