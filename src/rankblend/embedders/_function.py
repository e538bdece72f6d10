"""Your own function as an embedder, with a name it can be recognized by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from attrs import field, frozen
from numpy.typing import NDArray

from rankblend.embedders._protocol import embedder_dimension
from rankblend.errors import InvalidArgumentError


@frozen
class FunctionEmbedder:
    """A function with a name and, where known, a dimension; made by `from_callable`."""

    function: Callable[[Sequence[str]], Any] = field(repr=False)
    name: str
    dimension: int | None = None
    model: str | None = None

    def __attrs_post_init__(self) -> None:
        problems = []
        if not callable(self.function):
            problems.append(f"function: expected a callable, got {type(self.function).__name__}")
        if not self.name.strip():
            problems.append("name: expected a text that is not blank")
        if self.dimension is not None and embedder_dimension(self) is None:
            problems.append(f"dimension: expected an integer ≥ 1 or None, got {self.dimension!r}")
        if problems:
            raise InvalidArgumentError(problems)

    def __call__(self, texts: Sequence[str], /) -> NDArray[Any]:
        """Embed the texts; shape (n, d)."""
        return self.function(texts)  # type: ignore[no-any-return]


def from_callable(
    function: Callable[[Sequence[str]], Any],
    *,
    name: str,
    dimension: int | None = None,
    model: str | None = None,
) -> FunctionEmbedder:
    """Name a function that embeds.

    Args:
        function: Takes a list of n texts, returns a real array of shape (n, d).
        name: Change it whenever the vectors change: it decides whether a memory may be reopened.
        dimension: d, where known; otherwise the first answer tells.
        model: For people.

    Raises:
        InvalidArgumentError: Not callable, a blank name, a dimension that is no integer ≥ 1.

    Example:
        >>> import numpy as np
        >>> lengths = from_callable(lambda texts: np.array([[len(t), 1.0] for t in texts]),
        ...                         name="lengths", dimension=2)
        >>> lengths(["ana"]).tolist()
        [[3.0, 1.0]]
    """
    return FunctionEmbedder(function, name, dimension, model)
