"""What an embedder is: a callable from texts to vectors, and the name it is remembered by."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from numpy.typing import NDArray


@runtime_checkable
class Embedder(Protocol):
    """Anything that turns n texts into a real array of shape (n, d), one row per text, in order.

    A plain function is enough. Rows need not be unit length and may be of any real dtype; whoever
    needs vectors goes through `rankblend.embedders._gate`, which validates and normalizes.
    """

    def __call__(self, texts: Sequence[str], /) -> NDArray[Any]:
        """Embed the texts."""
        ...


@runtime_checkable
class SupportsIdentity(Protocol):
    """An embedder that says what it is; a memory is only ever reopened with the same one.

    Attributes:
        name: What produced the vectors, e.g. ``"wordllama"``; never blank.
        dimension: d, or None while it is not known.
        model: The model inside, for people; None when there is nothing to say.
    """

    name: str
    dimension: int | None
    model: str | None


def embedder_name(embedder: Callable[..., object]) -> str:
    """What to call it: its stable name where it has one, else its kind, such as ``lambda``."""
    return stable_name(embedder) or _kind(embedder)


def stable_name(embedder: Callable[..., object]) -> str | None:
    """A name by which it is recognized in another process; None where it has none.

    That is its ``name``, or the module and name of a function that anybody can import. A lambda, a
    function inside another or in a script, a bound method, a partial, an object of a class: each may
    be one of many that embed differently, so it needs a ``name``, which `from_callable` gives.
    """
    stated = getattr(embedder, "name", None)
    if isinstance(stated, str) and stated.strip():
        return stated
    module, name = (getattr(embedder, part, None) for part in ("__module__", "__name__"))
    if isinstance(module, str) and isinstance(name, str) and module != "__main__":
        # What is there under its name is what another process finds there.
        found = getattr(sys.modules.get(module), name, None)
        if found is embedder and not isinstance(embedder, type):
            return f"{module}.{name}"
    return None


def earlier_names(embedder: Callable[..., object]) -> frozenset[str]:
    """What an embedder was called in files of rankblend 0.1: by function or class, module unsaid."""
    inner = getattr(embedder, "function", embedder)
    return frozenset({_kind(embedder), _kind(inner)})


def _kind(embedder: Callable[..., object]) -> str:
    name = getattr(embedder, "__name__", None)
    named = isinstance(name, str) and name.strip("<> ")
    return named or type(embedder).__name__


def name_problem(embedder: object) -> str | None:
    """What to do about a callable that a file could not recognize; None where it could."""
    if not callable(embedder) or stable_name(embedder) is not None:
        return None
    return (
        f"a {type(embedder).__name__} has no name by which a file would recognize it when it is "
        "opened again; give it one that changes when its vectors do: "
        "rankblend.embedders.from_callable(…, name=…)"
    )


def embedder_dimension(embedder: Callable[..., object]) -> int | None:
    """Its ``dimension`` where it states a usable one, else None."""
    dimension = getattr(embedder, "dimension", None)
    usable = isinstance(dimension, int) and not isinstance(dimension, bool) and dimension > 0
    return dimension if usable else None
