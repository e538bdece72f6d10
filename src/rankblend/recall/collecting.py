"""Writing a great deal at once without Python's cyclic garbage collector looking on all the time."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["collecting_seldom"]

# Objects between two passes: writing 100,000 memories is one. Not endless, so that what the caller's
# own code (an embedder, a tokenizer, a store) leaves behind in cycles is freed some time.
_OBJECTS = 1_000_000

_lock = threading.Lock()
_blocks = 0
_usual = gc.get_threshold()


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """Have the cyclic garbage collector run seldom during a block; its setting is put back.

    A bulk write makes millions of objects that are in no cycles and needed to its end. Every pass
    of the collector looks at many of them again and frees none, a seventh of the time of the write.

    The setting is the process's: of blocks in several threads the first one changes it and the last
    one puts it back. A collector that is off stays off, and one that runs even more seldom does so.
    """
    global _blocks, _usual
    with _lock:
        if not _blocks:
            _usual = gc.get_threshold()
            if 0 < _usual[0] < _OBJECTS:
                gc.set_threshold(_OBJECTS, *_usual[1:])
        _blocks += 1
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if not _blocks:
                gc.set_threshold(*_usual)
