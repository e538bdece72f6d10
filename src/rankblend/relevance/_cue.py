"""How much of a cue occurs in a text."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rankblend.errors import InvalidArgumentError
from rankblend.kernels.text import tokens


def cue_overlap(
    cue: str, text: str, *, tokenizer: Callable[[str], Iterable[str]] = tokens
) -> float:
    """The share of the cue's distinct tokens that the text has: |cue ∩ text| / |cue|.

    Repeats and the length of the text do not matter. A cue without tokens (blank, or only
    punctuation) is satisfied by everything: 1.0, so that other signals decide on a cold start.

    Args:
        cue: What is asked.
        text: What the memory says.
        tokenizer: From a text to its tokens.

    Returns:
        In [0, 1].

    Example:
        >>> cue_overlap("alpha beta gamma delta", "Delta!")
        0.25
    """
    for name, given in (("cue", cue), ("text", text)):
        if not isinstance(given, str):
            raise InvalidArgumentError(f"{name}: expected text, got {type(given).__name__}")
    wanted = frozenset(tokenizer(cue))
    if not wanted:
        return 1.0
    return len(wanted.intersection(tokenizer(text))) / len(wanted)
