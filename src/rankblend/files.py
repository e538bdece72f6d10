"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["whole", "write_whole"]


@contextmanager
def whole(target: str | os.PathLike[str]) -> Iterator[Path]:
    """A path to write to that takes the place of ``target`` when the block ends well.

    When it does not, whatever was at ``target`` is still there and nothing else is left. The name
    is this thread's own, so that two writers do not write into one file; the last to end stands.
    """
    final = Path(target)
    partial = final.with_name(f".{final.name}.{os.getpid()}-{threading.get_ident()}.partial")
    try:
        yield partial
        partial.replace(final)
    finally:
        partial.unlink(missing_ok=True)


def write_whole(target: str | os.PathLike[str], text: str) -> None:
    """Write a text file as UTF-8, whole or not at all.

    Raises:
        OSError: It cannot be written.
    """
    with whole(target) as partial:
        partial.write_text(text, encoding="utf-8")
