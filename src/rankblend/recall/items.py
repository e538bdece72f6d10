"""Reading what is to be written: memories and links from plain mappings, all problems at once."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from rankblend.recall import arguments
from rankblend.recall.arguments import Problems
from rankblend.stores.protocol import Edge, Record

__all__ = ["Item", "read_edges", "read_items"]

_DEFAULTS: Mapping[str, object] = {
    "text": None, "scope": None, "id": None, "layer": "semantic", "key": None, "salience": None,
    "confidence": None, "review": None, "maturity": None, "certainty": None, "links": (),
    "at": None, "expires": None, "metadata": None, "vector": None, "uses": 0, "used": None,
}  # fmt: skip
_LINK = ("source", "target", "kind", "weight", "verified")


@frozen(eq=False)
class Item:
    """A memory to write: its record without a vector, and the vector it brings, if any."""

    record: Record
    vector: NDArray[np.float32] | None


def read_items(items: Sequence[object], *, now: float, named: bool) -> list[Item]:
    """Mappings with the arguments of `Memory.remember` as records.

    Args:
        items: The mappings.
        now: Seconds since the epoch: when a memory without ``at`` is valid from.
        named: Say in problems which item they are in.

    Raises:
        InvalidArgumentError: Everything that is wrong with any of them.
    """
    problems = Problems()
    found = []
    for position, item in enumerate(items):
        where = f"items[{position}]." if named else ""
        if not isinstance(item, Mapping):
            problems.add(f"items[{position}]: expected a mapping of the arguments of remember")
            continue
        unknown = [name for name in item if name not in _DEFAULTS]
        for name in unknown:
            problems.add(f"{where}{name!s:.40}: no such argument of remember")
        given: dict[str, Any] = {**_DEFAULTS, **{k: v for k, v in item.items() if k in _DEFAULTS}}
        vector = arguments.read_vector(problems, f"{where}vector", given.pop("vector"))
        if given["id"] is None:
            given["id"] = uuid.uuid4().hex
        uses, used = given.pop("uses"), given.pop("used")
        problems.integer(f"{where}uses", uses, least=0)
        last_used = arguments.read_time(problems, f"{where}used", used)
        record = arguments.read_record(problems, where, now=now, **given)
        if record is not None:
            found.append(Item(evolve(record, uses=uses or 0, used=last_used), vector))
    if len({item.record.key for item in found}) < len(found):
        problems.add("items: one id occurs twice at one scope; write its revisions in two calls")
    problems.raise_if_any()
    return found


def read_edges(links: Iterable[object], scope: object) -> list[Edge]:
    """Mappings with the arguments of `Memory.link` as edges written at one scope.

    Raises:
        InvalidArgumentError: Everything that is wrong with any of them.
    """
    problems = Problems()
    where = arguments.read_scope(problems, "scope", scope)
    edges = []
    for position, item in enumerate(links):
        name = f"links[{position}]"
        if not isinstance(item, Mapping) or not {"source", "target"} <= item.keys():
            problems.add(f"{name}: expected a mapping with source and target")
            continue
        for unknown in (each for each in item if each not in _LINK):
            problems.add(f"{name}.{unknown!s:.40}: no such property of a link")
        source, target = (
            problems.text(f"{name}.{end}", item[end], limit=arguments.MAX_ID)
            for end in ("source", "target")
        )
        kind = problems.text(f"{name}.kind", item.get("kind", "related"), limit=arguments.MAX_LABEL)
        weight = problems.fraction(f"{name}.weight", item.get("weight", 1.0))
        if not weight:
            problems.add(f"{name}.weight: expected a number above 0")
        if where is not None and weight:
            edges.append(
                Edge(where, source, target, kind, weight, bool(item.get("verified", False)))
            )
    problems.raise_if_any()
    return edges
