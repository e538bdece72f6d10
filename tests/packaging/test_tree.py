"""The source tree: sizes, names, `__all__`, layers of dependencies, nothing that belongs elsewhere."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rankblend

sys.path.insert(0, str(Path(__file__).parent))
house = importlib.import_module("house")
sys.path.pop(0)

ROOT = house.ROOT
SOURCE = house.SOURCE
SIZES = house.sizes()
FILES = sorted(SIZES)
MODULES = {house.name_of(path): path for path in FILES}
BANNED = {"utils", "helpers", "common", "base", "misc", "core", "manager", "handler"}
# What several modules are called, and why they may be: a name says one thing wherever it stands.
SHARED_NAMES = {
    "blend": "the value, and its kernel",
    "cache": "what a store keeps on disk of itself",
    "canonical": "canonical JSON, and what a profile writes in it",
    "catalog": "what the package is for",
    "compare": "two rankings side by side, and the command that does it for profiles",
    "checks": "the checks of all input, and what a procedure adds to them",
    "curves": "curves as data, and their kernels",
    "demo": "the command that shows it",
    "edges": "links between memories: in the file, and in the graph",
    "embedding": "vectors of memories, and the kit's embedder",
    "evidence": "what a score rests on; the command shows a reranker's",
    "fit": "the command that does it",
    "gate": "what lets nothing bad through",
    "graph": "nodes and edges: of a procedure, and of memories",
    "kernels": "pure functions on arrays",
    "mcp": "the command that serves it",
    "memory": "what is asked: for memories, and for procedures",
    "options": "what may be chosen: of a chat, a memory, a command",
    "pipeline": "step by step: a recall, and a chat call",
    "portable": "as JSON lines, in and out",
    "procedures": "procedures as they are stored, and as evidence",
    "profiles": "the command that shows them",
    "protocol": "what a third party's part must do",
    "question": "one question: to a memory, and to the keywords",
    "reasonlets": "the command that shows them, and their kit",
    "recall": "the command that does it",
    "record": "the command that makes a recording, and the record of a memory",
    "recording": "what the package is for",
    "release": "the command that does it",
    "replay": "what the package is for, and the command that does it",
    "report": "what the package is for",
    "schema": "tables in SQLite",
    "store": "the store of each store package",
    "stores": "the kit for them",
    "tables": "plain tables: of a profile, a replay, a graph",
    "view": "what one moment shows: of the catalog, and of the graph",
    "weights": "of signals: as values, and learned",
}
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


def test_house_when_measured_then_it_keeps_to_its_budget() -> None:
    """``make house`` prints what is where."""
    long = {_named(path): size for path, size in SIZES.items()
            if size.code_lines > house.MOST_IN_A_FILE}  # fmt: skip
    assert long == {}
    assert len(SIZES) <= house.MOST_FILES
    assert sum(size.code_lines for size in SIZES.values()) <= house.MOST_CODE_LINES


def test_sizes_when_counted_then_what_explains_the_code_is_not() -> None:
    text = (
        '"""Module."""\n\nimport os  # why\n\n\ndef f(\n    x: int,\n) -> str:\n'
        '    """Docstring\n\n    of three lines."""\n    # why\n    return """a\n\n    b"""\n'
    )
    # import, three lines of the signature, three of the text that is returned
    assert house.size_of(text) == (1, 1 + 3 + 3, 3)


def test_files_when_named_then_no_name_is_banned_or_means_two_things() -> None:
    banned = [path for path in FILES if BANNED & {path.stem, *path.relative_to(SOURCE).parts}]
    assert banned == []
    called: dict[str, list[str]] = {}
    for name in MODULES:
        called.setdefault(name.rpartition(".")[2].lstrip("_"), []).append(name)
    shared = {name for name, modules in called.items() if len(modules) > 1}
    assert shared - SHARED_NAMES.keys() == set(), "one name, two meanings; or say why above"
    assert SHARED_NAMES.keys() - shared == set(), "no longer shared"


def test_modules_when_their_package_is_looked_into_then_none_is_hidden_by_another_name() -> None:
    hidden = []
    for name in modules():
        importlib.import_module(name)
    for name in MODULES:
        package, _, last = name.rpartition(".")
        if package and getattr(sys.modules[package], last, None) is not sys.modules[name]:
            hidden.append(name)
    assert hidden == []


def test_imports_when_followed_then_there_is_no_circle_of_files() -> None:
    """Late imports count, too; what is imported for annotations alone does not."""
    names = set(MODULES)
    waiting = {name: set(house.imports_of(path, names)) - {name} for name, path in MODULES.items()}
    while free := {name for name, needed in waiting.items() if not needed}:
        waiting = {name: needed - free for name, needed in waiting.items() if name not in free}
    assert waiting == {}


def test_imports_when_a_module_has_an_underscore_then_only_its_package_sees_it() -> None:
    names = set(MODULES)
    found = []
    for name, path in MODULES.items():
        for imported in house.imports_of(path, names):
            package, _, last = imported.rpartition(".")
            if last.startswith("_") and not f"{name}.".startswith(f"{package}."):
                found.append(f"{name} imports {imported}")
    assert found == []


def test_doors_when_a_package_has_inner_modules_then_a_contract_guards_them() -> None:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = document["tool"]["importlinter"]["contracts"]
    guarded = {
        each.removesuffix(".*").rpartition("._")[0] or each.removesuffix(".*")
        for contract in contracts
        if contract["type"] == "protected"
        for each in contract["protected_modules"]
    }
    inner = {name.rpartition("._")[0] for name in MODULES if "._" in name}
    # The package itself has one, which Python's own machinery asks for.
    assert inner - guarded - {"rankblend"} == {"rankblend.adapters", "rankblend.testing"} & inner


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
