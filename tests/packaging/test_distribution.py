"""What is installed: contents of the wheel, metadata, and how little an import loads."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from importlib import metadata, resources
from importlib.util import find_spec
from pathlib import Path

import pytest

import rankblend
from rankblend.profiles import profile_names

ROOT = Path(__file__).resolve().parents[2]
# Each would cost a newcomer's `import rankblend` tenths of a second.
HEAVY = ("faiss", "networkx", "scipy.stats", "scipy.sparse", "rich", "typer", "numpy", "pytest")


def test_package_when_installed_then_its_data_came_along() -> None:
    package = resources.files("rankblend")
    assert (package / "py.typed").is_file()
    presets = {file.name for file in (package / "profiles" / "presets").iterdir()}
    assert {f"{name}.toml" for name in profile_names()} <= presets
    assert {file.name for file in (package / "demo").iterdir()} >= {
        "imported.jsonl", "memories.jsonl",
    }  # fmt: skip


def test_package_when_installed_then_its_metadata_tells_the_command_and_the_licence() -> None:
    found = metadata.distribution("rankblend")
    commands = {point.name: point.value for point in found.entry_points}
    assert commands["rankblend"] == "rankblend.cli:main"
    assert found.version == rankblend.__version__
    assert found.metadata["License-Expression"] == "Apache-2.0"
    assert found.metadata["Requires-Python"] == ">=3.11"


def test_import_when_the_process_is_fresh_then_nothing_heavy_is_loaded() -> None:
    code = f"import sys, rankblend; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_names_when_asked_for_in_a_fresh_process_then_all_resolve() -> None:
    code = "import rankblend; print(len([getattr(rankblend, n) for n in rankblend.__all__]))"
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:rankblend", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert int(done.stdout) == len(rankblend.__all__)
    assert set(rankblend.__all__) <= set(dir(rankblend))


def test_name_when_unknown_then_it_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Memories'"):
        _ = rankblend.Memories


@pytest.mark.slow
def test_wheel_when_built_then_it_holds_the_package_and_nothing_else(tmp_path: Path) -> None:
    if find_spec("hatchling") is None:
        pytest.skip("needs hatchling, which builds the wheel")
    # As a build tool calls it, in a process of its own: it works in the folder of the project.
    code = (
        "import sys; from hatchling.build import build_wheel, build_sdist; "
        "print(build_wheel(sys.argv[1])); print(build_sdist(sys.argv[1]))"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"rankblend-{rankblend.__version__}-py3-none-any.whl"
    names = set(zipfile.ZipFile(wheel).namelist())
    assert "rankblend/py.typed" in names
    assert {f"rankblend/profiles/presets/{name}.toml" for name in profile_names()} <= names
    assert {"rankblend/demo/memories.jsonl", "rankblend/demo/imported.jsonl"} <= names
    source = {
        f"rankblend/{path.relative_to(ROOT / 'src' / 'rankblend').as_posix()}"
        for path in (ROOT / "src" / "rankblend").rglob("*.py")
    }
    assert source <= names
    assert {name.split("/")[0] for name in names} == {
        "rankblend",
        f"rankblend-{rankblend.__version__}.dist-info",
    }
    assert not [name for name in names if "__pycache__" in name or name.endswith(".db")]
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert len(list(tmp_path.glob("*.tar.gz"))) == 1
