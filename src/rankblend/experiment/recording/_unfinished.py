"""A recording that is being made: a folder of finished batches, so that a rerun resumes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from rankblend.errors import RecordingError
from rankblend.experiment.recording._arrow import CANDIDATES, import_pyarrow, with_memories
from rankblend.experiment.recording._manifest import Manifest
from rankblend.files import whole

if TYPE_CHECKING:
    import pyarrow as pa

MANIFEST = b"rankblend"
"""Key of the manifest in the metadata of the file."""

_OWN = re.compile(r"manifest\.json|batch-\d+\.arrow|\..+\.partial")

BLOCK = 128
"""Queries in one record batch of a finished recording: what a replay holds in memory at once."""


class Unfinished:
    """The folder beside a recording that is being made.

    Every file in it is complete: it is written under another name and renamed.

    Args:
        out: Path of the recording; the folder is that with ``.partial`` behind it.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self.folder = out.with_name(f"{out.name}.partial")

    def manifest(self) -> Manifest | None:
        """Of what is there already, or None."""
        path = self.folder / "manifest.json"
        if not path.is_file():
            return None
        return Manifest.from_json(path.read_bytes(), where=str(path))

    def begin(self, manifest: Manifest) -> None:
        """Start afresh.

        Raises:
            RecordingError: The folder holds something else than an unfinished recording.
        """
        self.discard()
        if self.folder.exists():
            raise RecordingError(
                f"{self.folder}: holds something else than an unfinished recording; move that away, "
                "or choose another path"
            )
        self.folder.mkdir(parents=True)
        _write(self.folder / "manifest.json", lambda file: file.write(manifest.to_json().encode()))

    def done(self) -> int:
        """How many batches are finished, from the first on."""
        number = 0
        while self._batch(number).is_file():
            number += 1
        return number

    def put(self, number: int, batch: pa.RecordBatch) -> None:
        """Keep a finished batch."""
        arrow = import_pyarrow()

        def write(file: IO[bytes]) -> None:
            with arrow.ipc.new_file(file, batch.schema) as writer:
                writer.write_batch(batch)

        _write(self._batch(number), write)

    def finish(self, manifest: Manifest) -> None:
        """Make the recording of all batches, in place of the folder."""
        arrow = import_pyarrow()
        memories, references = self._joined_memories()
        lists = [batch.drop_columns([CANDIDATES]) for batch in self._batches()]
        table = arrow.Table.from_batches(lists).combine_chunks()
        candidates = arrow.concat_arrays(references)
        metadata = {MANIFEST: manifest.to_json().encode()}

        def write(file: IO[bytes]) -> None:
            writer = None
            for start in range(0, table.num_rows, BLOCK):
                (rows,) = table.slice(start, BLOCK).combine_chunks().to_batches()
                # Taken, not sliced: a slice would keep the offsets of the whole.
                batch = with_memories(rows, _own(candidates.slice(start, BLOCK)), memories)
                if writer is None:
                    writer = arrow.ipc.new_file(file, batch.schema.with_metadata(metadata))
                writer.write_batch(batch)
            if writer is None:
                raise RecordingError("dataset: has no queries, so there is nothing to record")
            writer.close()

        _write(self.out, write)
        self.discard()

    def discard(self) -> None:
        """Remove the folder and what belongs in it, and nothing else."""
        with suppress(OSError):
            names = [path.name for path in self.folder.iterdir()]
            if all(map(_OWN.fullmatch, names)):
                for name in names:
                    (self.folder / name).unlink()
                self.folder.rmdir()

    def _batch(self, number: int) -> Path:
        return self.folder / f"batch-{number:06d}.arrow"

    def _batches(self) -> Iterator[Any]:
        arrow = import_pyarrow()
        for number in range(self.done()):
            path = self._batch(number)
            try:
                with arrow.ipc.open_file(str(path)) as reader:
                    yield reader.get_batch(0)
            except (OSError, arrow.ArrowInvalid) as error:
                raise RecordingError(
                    f"{path}: cannot be read; remove the folder {self.folder.name} and record again"
                ) from error

    def _joined_memories(self) -> tuple[Any, list[Any]]:
        """One table of memories for all batches, and the references of each batch into it."""
        arrow = import_pyarrow()
        number: dict[tuple[str, str], int] = {}
        new, references = [], []
        for batch in self._batches():
            lists = batch.column(CANDIDATES)
            memories = lists.values.dictionary
            scopes, ids = memories.field("scope").to_pylist(), memories.field("id").to_pylist()
            known = len(number)
            joined = np.array(
                [number.setdefault(key, len(number)) for key in zip(scopes, ids, strict=True)],
                np.int64,
            )
            fresh, first = np.unique(joined, return_index=True)
            new.append(memories.take(arrow.array(first[fresh >= known])))
            indices = lists.values.indices.to_numpy()
            values = joined[indices].astype(np.int32)
            references.append(arrow.ListArray.from_arrays(lists.offsets, arrow.array(values)))
        if not new:
            raise RecordingError("dataset: has no queries, so there is nothing to record")
        return arrow.concat_arrays(new), references


def _own(lists: Any) -> Any:
    """A list array whose offsets start at 0 and whose values are only its own."""
    arrow = import_pyarrow()
    offsets = lists.offsets.to_numpy()
    values = lists.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    return arrow.ListArray.from_arrays(arrow.array(offsets - offsets[0]), values)


def _write(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file so that it is there whole, and on the disk, or not at all."""
    with whole(path) as file:
        write(file)
