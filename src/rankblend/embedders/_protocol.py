"""What an embedder is: a callable from texts to vectors, and the name it is remembered by."""

from __future__ import annotations

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
    """Its ``name``, else the name of the function, else of its class; never blank.

    A lambda is called ``lambda``: two of them cannot be told apart, so give whatever is kept in a
    file a name of its own with `from_callable`.
    """
    for candidate in (getattr(embedder, "name", None), getattr(embedder, "__name__", None)):
        if isinstance(candidate, str) and candidate.strip():
            return candidate.strip("<>")
    return type(embedder).__name__


def embedder_dimension(embedder: Callable[..., object]) -> int | None:
    """Its ``dimension`` where it states a usable one, else None."""
    dimension = getattr(embedder, "dimension", None)
    usable = isinstance(dimension, int) and not isinstance(dimension, bool) and dimension > 0
    return dimension if usable else None
