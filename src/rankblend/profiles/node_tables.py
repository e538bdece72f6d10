"""Reading the tables ``[score]``, ``[rerank]`` and ``[nodes.x]`` into nodes."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from rankblend.errors import InvalidArgumentError
from rankblend.profiles.problems import Path, Problems, dotted
from rankblend.relevance.composers import COMPOSERS, Node, node_problems
from rankblend.relevance.evidence import is_identifier
from rankblend.relevance.missing import (
    MissingPolicy,
    Override,
    Renormalize,
    parse_missing,
    parse_override,
)

__all__ = ["NodeTable", "read_node"]

_KEYS = ("compose", "weights", "of", "missing", "absent", "weights_must_sum_to")


@frozen
class NodeTable:
    """What a table gave.

    Args:
        node: The node; where something is wrong with the table, a stand-in with the inputs that
            could be read, so that problems elsewhere are found in the same run; None without any.
        must_sum_to: What the weights were promised to sum to.
        broken: Something is wrong with the table.
    """

    node: Node | None
    must_sum_to: float | None = None
    broken: bool = False


def read_node(path: Path, value: object, problems: Problems) -> NodeTable:
    """Read one node, noting everything wrong with it but not what its inputs are."""
    before = len(problems.lines)
    table = problems.table(path, value)
    if not isinstance(value, Mapping):
        return NodeTable(None, broken=True)
    compose = table.get("compose", "weighted_mean")
    composer = COMPOSERS.get(compose) if isinstance(compose, str) else None
    options = [option.name for option in composer.options] if composer else []
    if composer:
        problems.keys(path, table, (*_KEYS, *options))
    weights = _weights(path, table, problems)
    missing = _missing((*path, "missing"), table.get("missing", "renormalize"), problems)
    absent = _absent((*path, "absent"), table.get("absent"), problems)
    chosen = {name: table[name] for name in options if name in table}
    if weights or len(problems.lines) == before:
        found = node_problems(
            compose,  # type: ignore[arg-type]  # it says itself what is no name
            weights.items(),
            missing=missing,
            absent=absent.items(),
            options=chosen.items(),
        )
        for line in found:
            key = line.partition(":")[0].partition(".")[0]
            problems.take((*path, key), [f"{dotted(path)}.{line}"])
    must_sum_to = None
    if "weights_must_sum_to" in table:
        where = (*path, "weights_must_sum_to")
        must_sum_to = problems.number(where, table["weights_must_sum_to"], low=0.0)
    if len(problems.lines) == before:
        node = Node(str(compose), weights, missing=missing, absent=absent, options=chosen)
        return NodeTable(node, must_sum_to)
    stand_in = {name: 1.0 for name in weights if is_identifier(name)}
    return NodeTable(Node("weighted_mean", stand_in) if stand_in else None, broken=True)


def _weights(path: Path, table: Mapping[str, object], problems: Problems) -> dict[str, float]:
    """The inputs with their weights; an unusable weight is noted and stands as 1."""
    weights = problems.table((*path, "weights"), table.get("weights"))
    if "of" in table and "weights" in table:
        problems.add(
            (*path, "of"),
            "gives the inputs a second time, beside weights; keep one of the two (an inherited one "
            f'is dropped by without = ["{dotted(path)}.weights"], or .of)',
        )
    if "of" in table:
        return {
            name: 1.0
            for name in problems.names((*path, "of"), table["of"])
            if problems.identifier((*path, "of"), "input", name)
        }
    if "weights" not in table:
        problems.lacking(path, "expected its inputs: weights = { name = number } or of = [names]")
    found = {}
    for name, value in weights.items():
        where = (*path, "weights", name)
        if problems.identifier(where, "input", name):
            number = problems.number(where, value, low=0.0)
            found[name] = 1.0 if number is None else number
    return found


def _missing(path: Path, value: object, problems: Problems) -> MissingPolicy:
    try:
        return parse_missing(value, path=dotted(path))
    except InvalidArgumentError as error:
        problems.take(path, error.problems)
        return Renormalize()


def _absent(path: Path, value: object, problems: Problems) -> dict[str, Override]:
    found = {}
    for name, override in problems.table(path, value).items():
        where = (*path, name)
        try:
            found[name] = parse_override(override, path=dotted(where))
        except InvalidArgumentError as error:
            problems.take(where, error.problems)
    return found
