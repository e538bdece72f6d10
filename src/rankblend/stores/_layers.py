"""Layer policies: which memories of a layer a query sees from where, and what they may contribute.

A layer is only a label on a memory. What the label means is decided here, by policy, and a memory
of an unknown layer is treated like a semantic one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType

from attrs import field, frozen

from rankblend.errors import InvalidArgumentError
from rankblend.relevance import is_identifier
from rankblend.values import shown


class LayerVisibility(StrEnum):
    """From where the memories of a layer are seen."""

    INHERIT = "inherit"
    """From their own scope and from everywhere below it."""

    TIP_ONLY = "tip_only"
    """Only by a query at exactly their own scope."""

    SHADOW = "shadow"
    """Like ``inherit``, but of the memories that share a slot (the ``key`` argument of
    `Memory.remember`) only those at the nearest scope are seen: they hide the farther ones."""


def _visibility(value: LayerVisibility | str) -> LayerVisibility:
    try:
        return LayerVisibility(value)
    except ValueError:
        known = ", ".join(map(repr, map(str, LayerVisibility)))
        raise InvalidArgumentError(
            f"layer policy: expected a visibility of {known}, got {shown(value)}"
        ) from None


def _permitted(names: Iterable[str] | None) -> frozenset[str] | None:
    if names is None:
        return None
    if isinstance(names, str):
        raise InvalidArgumentError("layer policy: permitted expects a set of names, got one text")
    given: Sequence[object] = tuple(names)
    wrong = sorted(
        shown(name)
        for name in given
        if not (isinstance(name, str) and all(map(is_identifier, name.split("."))))
    )
    if wrong:
        raise InvalidArgumentError(
            f"layer policy: permitted: not a name of evidence: {', '.join(wrong)}"
        )
    return frozenset(map(str, given))


@frozen
class LayerPolicy:
    """What holds for all memories of one layer.

    Args:
        visibility: See `LayerVisibility`; its text is accepted. ``tip_only`` and ``shadow`` never
            show memories stored *below* a query's scope, also under ``reach="subtree"``.
        permitted: Names of the evidence this layer may contribute, as ``name`` or ``store.name``;
            nothing else is read for its memories. None: everything.

    Raises:
        InvalidArgumentError: An unknown visibility, or a name that cannot name evidence.

    Example:
        >>> LayerPolicy("tip_only").visibility
        <LayerVisibility.TIP_ONLY: 'tip_only'>
    """

    visibility: LayerVisibility = field(default=LayerVisibility.INHERIT, converter=_visibility)
    permitted: frozenset[str] | None = field(default=None, converter=_permitted)

    def permits(self, evidence: str) -> bool:
        """Whether memories of this layer may contribute evidence of this name."""
        if self.permitted is None:
            return True
        return evidence in self.permitted or evidence.rpartition(".")[2] in self.permitted


DEFAULT_LAYERS: Mapping[str, LayerPolicy] = MappingProxyType(
    {
        "semantic": LayerPolicy(LayerVisibility.INHERIT),
        "episodic": LayerPolicy(LayerVisibility.INHERIT),
        "procedural": LayerPolicy(LayerVisibility.SHADOW),
        "working": LayerPolicy(LayerVisibility.TIP_ONLY),
    }
)
_UNKNOWN = LayerPolicy()


def layer_policy(layers: Mapping[str, LayerPolicy], name: str) -> LayerPolicy:
    """The policy of a layer; a layer nobody described inherits and may contribute everything."""
    return layers.get(name, _UNKNOWN)
