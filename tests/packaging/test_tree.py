"""The source tree: sizes, names, `__all__`, layers of dependencies, nothing that belongs elsewhere."""

from __future__ import annotations

import ast
import importlib
import io
import pkgutil
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rankblend

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "rankblend"
FILES = sorted(SOURCE.rglob("*.py"))
BANNED = {"utils", "helpers", "common", "base", "misc", "core", "manager", "handler"}
MOST_LINES = 400  # of code: no docstrings, comments or blank lines
# Import name → distribution, where the two differ.
DISTRIBUTIONS = {
    "Stemmer": "pystemmer",
    "attr": "attrs",
    "faiss": "faiss-cpu",
    "ir_measures": "ir-measures",
    "langchain_core": "langchain-core",
    "llama_index": "llama-index-core",
    "opentelemetry": "opentelemetry-api",
    "sentence_transformers": "sentence-transformers",
    "stop_words": "stop-words",
    "tomli_w": "tomli-w",
}


def code_lines(text: str) -> int:
    """Lines with code on them: no docstrings, comments or blank lines."""
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in silent | {tokenize.ENDMARKER}
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(text)):
        kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            lines -= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return len(lines)


def modules() -> Iterator[str]:
    yield "rankblend"
    for found in pkgutil.walk_packages(rankblend.__path__, "rankblend."):
        yield found.name


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    declared: dict[str, Any] = document["project"]
    return declared


def _requirements(lines: list[str]) -> set[str]:
    return {re.split(r"[^A-Za-z0-9._-]", line)[0].lower() for line in lines}


def test_files_when_they_are_source_then_they_are_short_and_well_named() -> None:
    lines = {path: code_lines(path.read_text(encoding="utf-8")) for path in FILES}
    long = {_named(path): count for path, count in lines.items() if count > MOST_LINES}
    assert long == {}
    banned = [path for path in FILES if BANNED & {path.stem, *path.relative_to(SOURCE).parts}]
    assert banned == []


def test_modules_when_imported_then_their_names_are_listed_sorted_and_there() -> None:
    for name in modules():
        module = importlib.import_module(name)
        listed = getattr(module, "__all__", None)
        if listed is None:
            # A package may only hold others together; the version is read by the build, too; what
            # has an underscore is seen through the door of its package only.
            private = name.rpartition(".")[2].startswith("_")
            assert private or hasattr(module, "__path__") or name == "rankblend.version", name
            continue
        assert list(listed) == sorted(listed, key=_as_ruff_sorts), name
        assert len(set(listed)) == len(listed), name
        lost = [public for public in listed if not hasattr(module, public)]
        assert lost == [], name


def _named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _as_ruff_sorts(name: str) -> tuple[int, list[Any]]:
    kind = 0 if name.isupper() else 1 if name.lstrip("_")[:1].isupper() else 2
    return kind, [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def test_files_when_they_import_then_absolutely_and_with_annotations_postponed() -> None:
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        nodes = list(ast.walk(ast.parse(text)))
        assert not [n for n in nodes if isinstance(n, ast.ImportFrom) and n.level], path
        if any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in nodes):
            assert "from __future__ import annotations" in text, path


def _third_party() -> dict[str, set[str]]:
    """Distribution → the files that import it, statically or by name."""
    found: dict[str, set[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Call) and node.args:
                function = getattr(node.func, "attr", getattr(node.func, "id", ""))
                first = node.args[0]
                if function in ("import_module", "_require") and isinstance(first, ast.Constant):
                    names = [str(first.value)]
            for name in names:
                top = name.partition(".")[0]
                if top and top != "rankblend" and top not in sys.stdlib_module_names:
                    distribution = DISTRIBUTIONS.get(top, top).lower()
                    found.setdefault(distribution, set()).add(path.name)
    return found


def test_imports_when_they_are_third_party_then_a_dependency_or_an_extra_brings_them(
    project: dict[str, Any],
) -> None:
    extras = project["optional-dependencies"]
    for_users = [extra for extra in extras if extra not in ("all", "test", "check", "bench")]
    declared = _requirements(project["dependencies"]).union(
        *(_requirements(extras[extra]) for extra in for_users)
    )
    missing = {name: files for name, files in _third_party().items() if name not in declared}
    assert missing == {}


def test_dependencies_when_declared_then_something_imports_them(project: dict[str, Any]) -> None:
    unused = _requirements(project["dependencies"]) - set(_third_party())
    assert unused == set()


def test_extras_when_an_error_names_one_then_it_exists_and_all_brings_it(
    project: dict[str, Any],
) -> None:
    extras = project["optional-dependencies"]
    named = set()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_error = isinstance(node, ast.Call) and (
                getattr(node.func, "id", "") == "MissingDependencyError"
            )
            if is_error and len(node.args) == 3 and isinstance(node.args[1], ast.Constant):
                named.add(str(node.args[1].value))
    assert named
    assert named <= extras.keys()
    inside = set(re.findall(r"[\w-]+", extras["all"][0].partition("[")[2]))
    # PyTorch and other frameworks are not brought unasked.
    assert named - inside <= {"sentence-transformers", "openai", "langchain", "llama-index"}


def test_version_when_read_then_it_is_written_in_one_place(project: dict[str, Any]) -> None:
    assert project["dynamic"] == ["version"]
    assert "version" not in project
    literal = f'"{rankblend.__version__}"'
    places = [path.name for path in FILES if literal in path.read_text(encoding="utf-8")]
    assert places == ["version.py"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {rankblend.__version__}" in changelog


def test_tree_when_searched_then_it_names_no_place_on_somebodys_machine() -> None:
    # Put together here so that this file does not name one itself.
    places = re.compile("|".join(f"/{folder}/" for folder in ("work", "root", "home", "Users")))
    kinds = {".py", ".md", ".toml", ".txt", ".jsonl", ".json", ".cfg", ".yml", ""}
    found = []
    for top in ("src", "tests", "docs", "examples", "benchmarks", ".ci"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.is_file() and path.suffix in kinds and "__pycache__" not in path.parts:
                text = path.read_text(encoding="utf-8", errors="replace")
                found += [str(path.relative_to(ROOT))] if places.search(text) else []
    for path in sorted(ROOT.glob("*")):  # .git is a file where this is one work tree of several
        if path.is_file() and path.suffix in kinds and path.name != ".git":
            text = path.read_text(encoding="utf-8", errors="replace")
            found += [path.name] if places.search(text) else []
    assert found == []


def test_examples_when_counted_then_each_is_under_eighty_lines_or_just_so() -> None:
    for path in sorted((ROOT / "examples").glob("*.py")):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 80, path.name
