"""Writing memories: embedded first, then stored and shown to every store in one transaction."""

from __future__ import annotations

import gc
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from attrs import frozen

from rankblend.checks import Problems
from rankblend.embedders import Embedder, embedder_dimension, identity
from rankblend.errors import (
    EmbedderMismatchError,
    InvalidArgumentError,
    MemoryNotFoundError,
    ScopeMismatchError,
)
from rankblend.forks import guard
from rankblend.recall import _arguments as arguments
from rankblend.recall._embedding import EMBEDDER, embed_items
from rankblend.recall._items import Item
from rankblend.recall._live import LiveEngine
from rankblend.stores import Edge, Key, Record
from rankblend.stores.procedures import Entry, load

# Objects between two passes: writing 100,000 memories is one. Not endless, so that what the caller's
# own code (an embedder, a tokenizer, a store) leaves behind in cycles is freed some time.
_OBJECTS = 1_000_000

_lock = threading.Lock()
guard(sys.modules[__name__], "_lock")
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


Progress = Callable[[int], object]
_DRAFT = re.compile(r"drafts\[(\d+)\]: ")


@frozen(eq=False)
class Batch:
    """Memories and links to be written together.

    Attributes:
        items: Memories, in order; one id several times at one scope means revisions.
        edges: Links.
        embedder: Identity of what made the vectors they bring, where that is known.
        dimension: Length of the vectors, where that is known.
        procedures: With their runs; of none that is there already.
    """

    items: Sequence[Item]
    edges: Sequence[Edge] = ()
    embedder: str | None = None
    dimension: int | None = None
    procedures: Sequence[Entry] = ()

    @property
    def brings_vectors(self) -> bool:
        """Whether any memory has a vector of its own."""
        return any(item.vector is not None for item in self.items)

    def stays_as_it_is(self, embedder: Embedder | None) -> bool:
        """Whether no vector is to be made for memories that bring none.

        What was exported beside vectors without having one had none, and gets none.
        """
        if embedder is None:
            return True
        own = self.embedder is not None
        return own and (self.brings_vectors or _identity(embedder) == self.embedder)


def write(
    engine: LiveEngine,
    batch: Batch,
    embedder: Embedder | None,
    *,
    progress: Progress | None = None,
) -> list[Record]:
    """Embed what lacks a vector, then store everything in one transaction.

    Returns:
        The current record of each item's memory.

    Raises:
        InvalidArgumentError: Problems name the items; nothing is stored.
        EmbedderMismatchError: The vectors are of another embedder; nothing is stored.
        EmbeddingError: The embedder failed; nothing is stored.
        StoreError: The catalog could not be written; nothing is stored.
    """
    catalog = engine.catalog
    noted = catalog.get_meta(EMBEDDER)
    empty = noted is None and catalog.dimension is None
    _check_origin(batch, noted, embedder)
    whole = batch.stays_as_it_is(embedder)
    records, made_by = embed_items(
        catalog,
        batch.items,
        None if whole else embedder,
        dimension=batch.dimension if whole else None,
        progress=progress,
    )
    if whole and empty:
        made_by = batch.embedder
    with _named(batch.items):
        return engine.put(
            records,
            edges=batch.edges,
            embedder=made_by,
            dimension=batch.dimension if whole and empty else None,
            undated=frozenset(at for at, item in enumerate(batch.items) if not item.dated),
            also=partial(load, entries=batch.procedures) if batch.procedures else None,
        )


def owned_keys(
    engine: LiveEngine, ids: str | Iterable[str], scope: object, *, now: Callable[[], float]
) -> list[Key]:
    """The keys of memories that must all be stored at exactly this scope.

    Raises:
        InvalidArgumentError: Bad ids or scope.
        MemoryNotFoundError: An id is unknown or not visible from the scope (the same words).
        ScopeMismatchError: An id is visible from the scope but stored elsewhere.
    """
    problems = Problems()
    wanted = arguments.read_ids(problems, ids)
    where = arguments.read_scope(problems, "scope", scope)
    problems.raise_if_any()
    engine.catch_up()
    if where is None:
        return []
    others = [i for i in wanted if not engine.holds(Key(where, i))]
    if others:
        seen = engine.catalog.locate(engine.sight(where, now()), others)
        unseen = [i for i, key in zip(others, seen, strict=True) if key is None]
        if unseen:
            raise MemoryNotFoundError(unseen, str(where))
        raise ScopeMismatchError(others, str(where))
    return [Key(where, i) for i in wanted]


def _check_origin(batch: Batch, noted: str | None, embedder: Embedder | None) -> None:
    """Refuse vectors of another embedder than the memory's own."""
    if batch.embedder is None or not batch.brings_vectors:
        return
    here = noted or (None if embedder is None else _identity(embedder))
    if here is not None and here != batch.embedder:
        error = EmbedderMismatchError(here, batch.embedder)
        error.args = (
            f"the vectors to be imported were made by embedder {batch.embedder}, but this memory "
            f"is of {here}; they cannot be compared and nothing was written. Import into a new "
            "file and embed that anew with: rankblend reembed --db FILE --embedder NAME",
        )
        raise error


def _identity(embedder: Embedder) -> str:
    return identity(embedder, dimension=embedder_dimension(embedder))


@contextmanager
def _named(items: Sequence[Item]) -> Iterator[None]:
    """Problems of the catalog named as the caller knows the items."""
    try:
        yield
    except InvalidArgumentError as error:
        raise InvalidArgumentError([_renamed(each, items) for each in error.problems]) from None


def _renamed(problem: str, items: Sequence[Item]) -> str:
    place = _DRAFT.match(problem)
    return problem if place is None else items[int(place[1])].where + problem[place.end() :]
