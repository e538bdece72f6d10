"""Inheritance: what a profile's document says, joined with what the documents it extends say.

The unit is one *element*: a single value (``pool.size``, ``score.weights.cue``) or something that
only means something as a whole (a curve, a missing policy, a list). An element that is not written
here is inherited. Two parents that define one element differently are an error, unless it is
written here or dropped. ``without = ["score.of", "signals.cue"]`` drops what would be inherited at
or below those paths, e.g. to replace a list of inputs by weights. Setting a weight to 0 keeps the
signal in the recipe without influence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import field, frozen

from rankblend.canonical import canonical_json
from rankblend.errors import ProfileError, RankblendError
from rankblend.profiles._documents import Document
from rankblend.profiles._problems import Path, ProfileProblems
from rankblend.values import dotted, quoted

MAX_ANCESTRY = 32
# These describe one document and are never inherited.
_OWN = ("name", "source", "extends", "without")
# How many keys lead to an element, by the first key; what is not listed takes one.
_DEPTH = {
    "pool": 2, "score": 2, "rerank": 2, "floors": 3, "scope": 2, "order": 2, "select": 2,
    "signals": 3, "evidence": 3, "nodes": 3,
}  # fmt: skip
_TABLES_OF_ELEMENTS = ("weights", "absent")

Element = tuple[Any, str]
"""A value and the label of the document it was written in."""


@frozen
class Merged:
    """A document joined with its ancestors.

    Args:
        tables: The joined tables, shaped like one document; the document's own name, source and
            extends are in it, its ancestors' are not.
        origins: Per element the document it was written in.
        complete: Every document it extends could be read.
    """

    tables: dict[str, Any]
    origins: Mapping[Path, str]
    complete: bool = True


@frozen
class _Walk:
    """The state of one merge: how to find documents, what is being and what has been resolved."""

    find: Callable[[str, Document], Document]
    problems: ProfileProblems
    done: dict[str, dict[Path, Element]] = field(factory=dict)
    lost: list[str] = field(factory=list)

    def note(self, document: Document, path: Path, message: str) -> None:
        here = document.label == self.problems.profile
        self.problems.add(path, message if here else f"{message} (in {document.label})")


def merge_documents(
    document: Document, *, find: Callable[[str, Document], Document], problems: ProfileProblems
) -> Merged:
    """Join a document with everything it extends, directly or through others.

    Args:
        document: The profile to resolve.
        find: Finds the document a name or path in ``extends`` means, given the document naming it;
            raises a ``RankblendError`` when there is none.
        problems: Takes unknown parents, cycles and contradictions.
    """
    walk = _Walk(find, problems)
    elements = _resolve(document, walk, ())
    tables: dict[str, Any] = {key: document.tables[key] for key in _OWN if key in document.tables}
    for path, (value, _) in elements.items():
        _place(tables, path, value)
    origins = {path: label for path, (_, label) in elements.items()}
    return Merged(tables, origins, complete=not walk.lost)


def _resolve(document: Document, walk: _Walk, above: tuple[Document, ...]) -> dict[Path, Element]:
    if document.key in walk.done:
        return walk.done[document.key]
    own = _elements(document)
    inherited: dict[Path, Element] = {}
    for parent in _parents(document, walk, (*above, document)):
        for path, (value, label) in _resolve(parent, walk, (*above, document)).items():
            known = inherited.setdefault(path, (value, label))
            if _same(known[0], value) or _covered(path, own) or _dropped(path, document):
                continue
            walk.note(
                document,
                path,
                f'defined differently by "{known[1]}" and "{label}"; write it here to choose',
            )
    joined = _without(inherited, document, walk)
    for path in [path for path in joined if path not in own and _covered(path, own)]:
        del joined[path]
    joined.update(own)
    walk.done[document.key] = joined
    return joined


def _parents(document: Document, walk: _Walk, line: tuple[Document, ...]) -> list[Document]:
    named = document.tables.get("extends", [])
    parents = []
    before = len(walk.problems.lines)
    for name in walk.problems.names(("extends",), [named] if isinstance(named, str) else named):
        try:
            parent = walk.find(name, document)
        except ProfileError as error:
            for problem in error.problems:
                walk.note(document, ("extends",), f"{quoted(name)}: {problem}")
        except RankblendError as error:
            walk.note(document, ("extends",), str(error))
        else:
            if parent.key in {ancestor.key for ancestor in line}:
                circle = " → ".join([*(ancestor.label for ancestor in line), parent.label])
                walk.note(document, ("extends",), f"{circle} is a circle")
            elif len(line) >= MAX_ANCESTRY:
                walk.note(document, ("extends",), f"more than {MAX_ANCESTRY} generations")
            else:
                parents.append(parent)
    if len(walk.problems.lines) > before:
        walk.lost.append(document.label)
    return parents


def _elements(document: Document) -> dict[Path, Element]:
    found: dict[Path, Element] = {}

    def gather(path: Path, value: Any) -> None:
        if isinstance(value, dict) and value and len(path) < _depth(path):
            for key, inner in value.items():
                gather((*path, key), inner)
        else:
            found[path] = (value, document.label)

    for key, value in document.tables.items():
        if key not in _OWN:
            gather((key,), value)
    return found


def _depth(path: Path) -> int:
    depth = _DEPTH.get(path[0], 1)
    is_node = path[0] in ("score", "rerank", "nodes")
    return depth + (is_node and path[depth - 1 : depth] in [(key,) for key in _TABLES_OF_ELEMENTS])


def _without(
    inherited: dict[Path, Element], document: Document, walk: _Walk
) -> dict[Path, Element]:
    for name in walk.problems.names(("without",), document.tables.get("without", [])):
        if not walk.lost and not any(_below(path, name) for path in inherited):
            walk.note(document, ("without",), f"nothing is inherited at {quoted(name)}")
    return {path: it for path, it in inherited.items() if not _dropped(path, document)}


def _dropped(path: Path, document: Document) -> bool:
    names = document.tables.get("without", [])
    return isinstance(names, list) and any(
        isinstance(name, str) and _below(path, name) for name in names
    )


def _below(path: Path, name: str) -> bool:
    return f"{dotted(path)}.".startswith(f"{name}.")


def _covered(path: Path, own: Mapping[Path, Element]) -> bool:
    """Whether the document itself writes this element, or a plain value where its table would be."""
    return any(
        path[:length] in own and (length == len(path) or own[path[:length]][0] != {})
        for length in range(1, len(path) + 1)
    )


def _place(tables: dict[str, Any], path: Path, value: Any) -> None:
    """Put an element back; where a plain value stands in the way of a table, the value stays."""
    table = tables
    for key in path[:-1]:
        inner = table.setdefault(key, {})
        if not isinstance(inner, dict):
            return
        table = inner
    if value == {} and isinstance(table.get(path[-1]), dict):
        return
    table[path[-1]] = {} if value == {} else value


def _same(one: Any, other: Any) -> bool:
    try:
        return canonical_json(one) == canonical_json(other)
    except RankblendError:  # a date, NaN: refused later, where it stands
        return repr(one) == repr(other)
