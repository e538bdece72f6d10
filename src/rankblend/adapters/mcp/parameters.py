"""The parameters of tools: their JSON Schema, and a check that repeats no value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import field, frozen

__all__ = ["Parameter", "input_schema", "problems_of"]

_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


@frozen
class Parameter:
    """One parameter of a tool.

    Args:
        name: Its name.
        kind: Its JSON type; the items of an array are strings.
        description: For the model.
        required: Whether it must be given.
        limits: More of its JSON Schema, e.g. ``{"minimum": 0}``; checked where the value is used.
    """

    name: str
    kind: str
    description: str
    required: bool = False
    limits: Mapping[str, object] = field(factory=dict, hash=False)

    def schema(self) -> dict[str, object]:
        """Its JSON Schema."""
        items: dict[str, object] = {"items": {"type": "string"}} if self.kind == "array" else {}
        return {"type": self.kind, "description": self.description, **items, **self.limits}

    def accepts(self, value: object) -> bool:
        """Whether a value is of its type."""
        if isinstance(value, bool) and self.kind != "boolean":
            return False
        if isinstance(value, list) and not all(isinstance(item, str) for item in value):
            return False
        return isinstance(value, _KINDS[self.kind])


def input_schema(parameters: Sequence[Parameter]) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments."""
    return {
        "type": "object",
        "properties": {parameter.name: parameter.schema() for parameter in parameters},
        "required": [parameter.name for parameter in parameters if parameter.required],
        "additionalProperties": False,
    }


def problems_of(parameters: Sequence[Parameter], arguments: Mapping[str, object]) -> Iterator[str]:
    """What is wrong with the arguments of a call: names and types, never a value.

    An argument that is null is as good as none.
    """
    known = {parameter.name for parameter in parameters}
    unknown = len(arguments.keys() - known)
    if unknown:
        yield f"{unknown} unknown arguments; known: {', '.join(sorted(known))}"
    for parameter in parameters:
        value = arguments.get(parameter.name)
        if value is None:
            if parameter.required:
                yield f"{parameter.name}: required"
        elif not parameter.accepts(value):
            items = " of strings" if parameter.kind == "array" else ""
            yield f"{parameter.name}: expected {parameter.kind}{items}"
