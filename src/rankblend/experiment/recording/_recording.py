"""An opened recording."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from rankblend.caches import Lru
from rankblend.errors import RecordingError
from rankblend.experiment.measures import Judgments
from rankblend.experiment.recording._arrow import BLOCK, CANDIDATES, MANIFEST, import_pyarrow
from rankblend.experiment.recording._block import Block, Memories
from rankblend.experiment.recording._manifest import Manifest
from rankblend.experiment.recording._query import RecordedQuery
from rankblend.files import hold

_BLOCKS = 16  # blocks, some two thousand queries


class Recording:
    """A file of queries with everything known about their candidates; see `record`.

    The file is mapped, not loaded: blocks of queries are read when they are asked for, so a
    recording may be larger than the machine's memory. A sequence of `RecordedQuery`. It can be
    pickled: the copy opens the same file.

    Attributes:
        path: The file.
        manifest: What it says about itself.
    """

    def __init__(self, path: Path, manifest: Manifest, reader: Any) -> None:
        self.path = path
        self.manifest = manifest
        self._reader = reader
        self._memories: Memories | None = None
        self._blocks: Lru[int, Block] = Lru(_BLOCKS)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Recording:
        """Open a recording.

        Raises:
            RecordingError: There is no such file, or it is no recording, damaged or of another
                version.
            MissingDependencyError: pyarrow is not installed (extra ``experiments``).
        """
        arrow = import_pyarrow()
        where = Path(path)
        try:
            if where.exists() and not where.is_file():  # a pipe would be waited for
                raise OSError
            reader = arrow.ipc.open_file(arrow.memory_map(str(where)))
            metadata = reader.schema.metadata or {}
        except (OSError, arrow.ArrowInvalid) as error:
            reason = "there is no such file" if not where.exists() else "it cannot be read"
            raise RecordingError(
                f"{where}: expected a recording made by rankblend record; {reason}"
            ) from error
        if MANIFEST not in metadata:
            raise RecordingError(f"{where}: is an Arrow file, but no recording of rankblend")
        manifest = Manifest.from_json(metadata[MANIFEST], where=str(where))
        recording = cls(where, manifest, reader)
        hold(recording, where)
        return recording

    def __reduce__(self) -> tuple[Any, ...]:
        return Recording.open, (self.path,)

    def __len__(self) -> int:
        return self.manifest.queries

    def __repr__(self) -> str:
        return f"<Recording: {self.manifest.dataset}, {len(self)} queries>"

    def __getitem__(self, index: int) -> RecordedQuery:
        if not -len(self) <= index < len(self):
            raise IndexError(f"query {index} of {len(self)}")
        number, within = divmod(index % len(self), BLOCK)
        return RecordedQuery(self.block(number), within)

    def __iter__(self) -> Iterator[RecordedQuery]:
        for block in self.blocks():
            for number in range(len(block)):
                yield RecordedQuery(block, number)

    @property
    def block_count(self) -> int:
        """How many blocks it has."""
        return -(-len(self) // BLOCK)

    def block(self, number: int) -> Block:
        """A block of queries; the ones asked for last are kept, with what was worked out on them.

        Raises:
            RecordingError: The file is damaged.
        """
        return self._blocks.get(number, lambda: self._read(number))

    def _read(self, number: int) -> Block:
        arrow = import_pyarrow()
        try:
            batch = self._reader.get_batch(number)
            if self._memories is None:
                self._memories = Memories(batch.column(CANDIDATES).values.dictionary)
        except (OSError, KeyError, arrow.ArrowInvalid) as error:
            raise RecordingError(f"{self.path}: is damaged; record it again") from error
        return Block(self.manifest, batch, self._memories, number * BLOCK)

    def blocks(self) -> Iterator[Block]:
        """All blocks, one after the other."""
        return map(self.block, range(self.block_count))

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Ids of the queries."""
        return tuple(name for block in self.blocks() for name in block.ids)

    @cached_property
    def clusters(self) -> tuple[str, ...]:
        """The cluster of each."""
        return tuple(name for block in self.blocks() for name in block.texts("cluster"))

    @cached_property
    def families(self) -> tuple[str, ...]:
        """The family of each."""
        return tuple(name for block in self.blocks() for name in block.texts("family"))

    @cached_property
    def judgments(self) -> Judgments:
        """Of all queries."""
        return Judgments(
            self.ids, tuple(grades for block in self.blocks() for grades in block.judgments.grades)
        )

    @cached_property
    def query_hash(self) -> str:
        """SHA-256 of the ids and judgments of the queries, as 64 hex digits: what a ledger counts by."""
        digest = hashlib.sha256()
        for name, grades in zip(self.judgments.queries, self.judgments.grades, strict=True):
            digest.update(json.dumps([name, dict(grades)], sort_keys=True).encode())
        return digest.hexdigest()
