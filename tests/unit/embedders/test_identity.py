"""Who made a file's vectors: recognized in another process, or asked for a name; never guessed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankblend as rb
from rankblend.embedders import from_callable, identity
from rankblend.errors import EmbedderMismatchError, EmbedderWarning, InvalidArgumentError
from rankblend.reasonlets import ReasonletMemory, SqliteReasonletStore
from rankblend.stores.catalog import Catalog

SCOPE = "tenant:acme"


class Model:
    """Two of these embed differently, and so do their methods."""

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def encode(self, texts: Sequence[str]) -> Any:
        return np.tile(np.eye(2)[self.axis], (len(texts), 1))

    def __call__(self, texts: Sequence[str]) -> Any:
        return self.encode(texts)

    @classmethod
    def any(cls, texts: Sequence[str]) -> Any:
        return cls(0)(texts)


def first(texts: Sequence[str]) -> Any:
    return Model(0).encode(texts)


def inner() -> Callable[..., Any]:
    def first(texts: Sequence[str]) -> Any:
        return Model(1).encode(texts)

    return first


UNNAMED = {
    "bound method": Model(0).encode,
    "class method": Model.any,
    "object": Model(0),
    "lambda": lambda texts: first(texts),
    "partial": partial(first),
    "inner function": inner(),
}


@pytest.mark.parametrize("kind", sorted(UNNAMED))
def test_embedder_when_a_file_could_not_recognize_it_then_a_name_is_asked_for(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "m.db"
    with pytest.raises(InvalidArgumentError, match="from_callable"):
        rb.Memory.open(path, embedder=UNNAMED[kind])
    with rb.Memory.open(path) as memory, pytest.raises(InvalidArgumentError, match="from_callable"):
        memory.reembed(UNNAMED[kind])
    store = SqliteReasonletStore.open(tmp_path / "p.db")
    with pytest.raises(rb.errors.RankblendError, match="from_callable"):
        ReasonletMemory(UNNAMED[kind], store)
    # In memory nothing is reopened, so nothing has to be recognized.
    with rb.Memory.open(":memory:", embedder=UNNAMED[kind]) as memory:
        memory.remember("tea", scope=SCOPE)
        assert memory.recall("tea", scope=SCOPE)[0].signals.present()["similarity"] == 1.0


def test_embedder_when_two_have_one_name_for_their_function_then_neither_is_taken_for_the_other(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.db"
    a, b = (from_callable(Model(axis).encode, name=f"model {axis}") for axis in (0, 1))
    with rb.Memory.open(path, embedder=a) as memory:
        memory.remember("tea", scope=SCOPE)
    with pytest.raises(EmbedderMismatchError) as refused:
        rb.Memory.open(path, embedder=b)
    assert (refused.value.stored, refused.value.given) == ("model 0/2", "model 1/2")
    with rb.Memory.open(path, embedder=a) as memory:
        assert memory.recall("tea", scope=SCOPE)[0].signals.present()["similarity"] == 1.0


def test_identity_when_a_function_can_be_imported_then_it_says_from_where_in_any_process(
    tmp_path: Path,
) -> None:
    text = "def encode(texts):\n    return [[1.0, 0.0]] * len(texts)\n"
    for name in ("mine", "theirs"):
        (tmp_path / f"{name}.py").write_text(text)
    code = (
        "import mine, theirs; from rankblend.embedders import identity; "
        "print(identity(mine.encode), identity(theirs.encode))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert said == {"mine.encode/2 theirs.encode/2\n"}


def test_embedder_when_it_is_a_function_of_a_script_then_a_name_is_asked_for(
    tmp_path: Path,
) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import rankblend as rb\n"
        "def encode(texts):\n    return [[1.0, 0.0]] * len(texts)\n"
        "try:\n    rb.Memory.open('m.db', embedder=encode)\n"
        "except rb.errors.RankblendError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "from_callable" in done.stdout


def earlier(path: Path, noted: str) -> None:
    """A file as it is migrated: the embedder noted by the name of its function only."""
    with rb.Memory.open(path, embedder=from_callable(first, name=noted)) as memory:
        memory.remember("tea", scope=SCOPE)
    with Catalog.open(path) as catalog:
        catalog.set_meta("embedder_unsure", f"{noted}/2")


def test_embedder_when_an_earlier_version_noted_its_kind_then_a_warning_says_how_to_note_it(
    tmp_path: Path,
) -> None:
    path, name = tmp_path / "m.db", f"{__name__}.first"
    earlier(path, "first")
    with pytest.warns(EmbedderWarning, match=f"rankblend relabel {name} --db FILE"):
        memory = rb.Memory.open(path, embedder=first)
    with memory:
        memory.remember("coffee", scope=SCOPE)  # noted as before until somebody says otherwise
        assert memory.recall("tea", scope=SCOPE)[0].signals.present()["similarity"] == 1.0
        memory.relabel(name)
        memory.remember("milk", scope=SCOPE)
    with rb.Memory.open(path, embedder=first) as memory:  # a warning would fail
        assert memory.recall("tea", scope=SCOPE)[0].signals.present()["similarity"] == 1.0
    with Catalog.open(path) as catalog:
        assert catalog.get_meta("embedder") == identity(first) == f"{name}/2"


def test_embedder_when_an_earlier_version_noted_another_or_another_length_then_it_is_refused(
    tmp_path: Path,
) -> None:
    earlier(tmp_path / "a.db", "second")
    with pytest.raises(EmbedderMismatchError):
        rb.Memory.open(tmp_path / "a.db", embedder=first)
    earlier(tmp_path / "b.db", "first")
    wide = from_callable(lambda texts: np.ones((len(texts), 3)), name="wide", dimension=3)
    with pytest.raises(EmbedderMismatchError):
        rb.Memory.open(tmp_path / "b.db", embedder=wide)


def test_relabel_when_there_is_nothing_to_rename_or_no_name_then_it_is_refused() -> None:
    with rb.Memory.open(":memory:") as memory:
        with pytest.raises(InvalidArgumentError, match="no embedder"):
            memory.relabel("mine")
        for name in ("", " ", 3):
            with pytest.raises(InvalidArgumentError, match="name"):
                memory.relabel(name)  # type: ignore[arg-type]
