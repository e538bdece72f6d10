"""Recordings as Arrow: what is gathered becomes record batches, and batches become a file.

Until it is whole a recording is a folder of finished batches, so that a rerun resumes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import MissingDependencyError, RecordingError
from rankblend.experiment.recording._gather import MemoryRow, Row
from rankblend.experiment.recording._manifest import Manifest
from rankblend.files import whole
from rankblend.recall import StoredMemory
from rankblend.stores import Key

if TYPE_CHECKING:
    import pyarrow as pa

MANIFEST = b"rankblend"
"""Key of the manifest in the metadata of the file."""

_OWN = re.compile(r"manifest\.json|batch-\d+\.arrow|\..+\.partial")

BLOCK = 128
"""Queries in one record batch of a finished recording: what a replay holds in memory at once."""

CANDIDATES = "candidates"


def import_pyarrow() -> Any:
    """pyarrow, with its IPC part.

    Raises:
        MissingDependencyError: It is not installed (extra ``experiments``).
    """
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError:
        raise MissingDependencyError("pyarrow", "experiments", "recording") from None
    return pyarrow


def rows_to_batch(rows: Sequence[Row], look_up: Callable[[Key], StoredMemory]) -> pa.RecordBatch:
    """Some queries as one record batch.

    Args:
        rows: The queries, at least one.
        look_up: A memory as it is stored, for its times and links.
    """
    arrow = import_pyarrow()
    standing: dict[Key, MemoryRow] = {}
    for row in rows:
        for memory in row.memories:
            standing.setdefault(memory.key, memory)
    number = {key: position for position, key in enumerate(standing)}
    columns: dict[str, Any] = {
        "id": arrow.array([row.query.id for row in rows], arrow.string()),
        "scope": arrow.array([str(row.query.scope) for row in rows], arrow.string()),
        "family": arrow.array([row.query.family for row in rows], arrow.string()),
        "cluster": arrow.array([row.query.cluster for row in rows], arrow.string()),
        "now": arrow.array([row.now for row in rows], arrow.float64()),
        "blank": arrow.array([row.blank for row in rows], arrow.bool_()),
        "judged": arrow.array([list(row.query.relevant) for row in rows],
                              arrow.list_(arrow.string())),
        "grades": list_column([np.array(list(row.query.relevant.values()), np.float64)
                               for row in rows], np.float64),
        "distance": list_column([row.distance for row in rows], np.int32),
        "verified": list_column([row.verified for row in rows], np.int32),
    }  # fmt: skip
    for name in rows[0].proposed:
        columns[name] = list_column([row.proposed[name] for row in rows], np.int32)
    for name in rows[0].values:
        columns[f"value:{name}"] = list_column([row.values[name] for row in rows], np.float64)
        columns[f"reason:{name}"] = list_column([row.reasons[name] for row in rows], np.int8)
    batch = arrow.RecordBatch.from_pydict(columns)
    references = list_column(
        [np.array([number[memory.key] for memory in row.memories], np.int32) for row in rows],
        np.int32,
    )
    return with_memories(batch, references, _memories(arrow, list(standing.values()), look_up))


def with_memories(batch: pa.RecordBatch, references: Any, memories: Any) -> pa.RecordBatch:
    """A batch with its column of candidates: references, int32, into a table of memories."""
    arrow = import_pyarrow()
    coded = arrow.DictionaryArray.from_arrays(references.values, memories)
    return batch.append_column(CANDIDATES, arrow.ListArray.from_arrays(references.offsets, coded))


def list_column(rows: Sequence[NDArray[Any]], dtype: type[np.generic]) -> Any:
    """One list a row, as an Arrow array of this type."""
    arrow = import_pyarrow()
    offsets = np.zeros(len(rows) + 1, np.int32)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    values = np.concatenate([np.empty(0, dtype), *rows]).astype(dtype, copy=False)
    return arrow.ListArray.from_arrays(arrow.array(offsets), arrow.array(values))


def _memories(
    arrow: Any, standing: Sequence[MemoryRow], look_up: Callable[[Key], StoredMemory]
) -> Any:
    stored = [look_up(memory.key) for memory in standing]
    link = arrow.struct([("target", arrow.string()), ("kind", arrow.string()),
                         ("weight", arrow.float64()), ("verified", arrow.bool_())])  # fmt: skip
    fields = {
        "scope": arrow.array([str(memory.key.scope) for memory in standing], arrow.string()),
        "id": arrow.array([memory.key.id for memory in standing], arrow.string()),
        "layer": arrow.array([memory.layer for memory in standing], arrow.string()),
        "digest": arrow.array([memory.digest for memory in standing], arrow.int64()),
        "tokens": arrow.array([memory.tokens for memory in standing], arrow.int64()),
        "vector": list_column([memory.vector for memory in standing], np.float32),
        "created": _seconds(arrow, (one.created for one in stored)),
        "at": _seconds(arrow, (one.at for one in stored)),
        "used": _seconds(arrow, (one.used for one in stored)),
        "links": arrow.array(
            [
                [
                    {"target": to.target, "kind": to.kind, "weight": to.weight,
                     "verified": to.verified}
                    for to in one.links
                ]
                for one in stored
            ],
            arrow.list_(link),
        ),
    }  # fmt: skip
    return arrow.StructArray.from_arrays(list(fields.values()), list(fields))


def _seconds(arrow: Any, times: Iterable[Any]) -> Any:
    return arrow.array(
        [None if time is None else time.timestamp() for time in times], arrow.float64()
    )


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
