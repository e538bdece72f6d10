"""docs/reference.md lists what the modules list, and docs/presets.md the presets there are.

``RANKBLEND_DOCS=write`` adds what is missing, with the first sentence of its docstring, and drops
what is gone; what is there stays as it was written.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
from pathlib import Path

import pytest

from rankblend.profiles import profile_names

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference.md"
_SECTION = re.compile(r"^## (rankblend[\w.]*)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\| `(\w+)` \| (.+) \|$", re.MULTILINE)
# Names that most users import are on the page; the rest of the modules are for those who read them.
EXPECTED = {
    "rankblend.adapters.anthropic", "rankblend.adapters.langchain", "rankblend.adapters.llama_index",
    "rankblend.adapters.mcp", "rankblend.adapters.openai",
    "rankblend", "rankblend.chat", "rankblend.demo", "rankblend.embedders", "rankblend.errors",
    "rankblend.experiment.datasets", "rankblend.experiment.evaluate",
    "rankblend.experiment.inference", "rankblend.profiles", "rankblend.reasonlets",
    "rankblend.recall", "rankblend.relevance", "rankblend.stores", "rankblend.stores.catalog",
    "rankblend.stores.graph", "rankblend.stores.keywords", "rankblend.stores.vectors",
    "rankblend.testing",
}  # fmt: skip


def _sections() -> dict[str, str]:
    return dict(_SECTION.findall(PAGE.read_text(encoding="utf-8")))


def _first_sentence(module: str, name: str) -> str:
    text = inspect.getdoc(getattr(importlib.import_module(module), name)) or name
    first = re.split(r"(?<=[.!?])\s", text.split("\n\n")[0].replace("\n", " "))[0]
    return first.replace("``", "`").replace("|", "\\|")


def test_reference_when_its_modules_are_listed_then_they_are_the_public_ones() -> None:
    assert set(_sections()) == EXPECTED


@pytest.mark.parametrize("module", sorted(EXPECTED))
def test_reference_when_a_module_is_listed_then_with_exactly_its_names(module: str) -> None:
    rows = dict(_ROW.findall(_sections()[module]))
    names = list(importlib.import_module(module).__all__)
    if list(rows) != names and os.environ.get("RANKBLEND_DOCS") == "write":
        section = _sections()[module]
        lines = [
            f"| `{name}` | {rows.get(name) or _first_sentence(module, name)} |" for name in names
        ]
        head = section.partition("|---|---|\n")[0]
        page = PAGE.read_text(encoding="utf-8")
        new = f"{head}|---|---|\n" + "\n".join(lines) + "\n\n"
        PAGE.write_text(page.replace(section, new).rstrip() + "\n", encoding="utf-8")
        return
    assert list(rows) == names
    for name, line in rows.items():
        assert line[-1] in ".…" or line.endswith(")"), f"{module}.{name}: one sentence"
        assert len(line) <= 140, f"{module}.{name}"


def test_presets_when_documented_then_each_has_a_section_and_no_other() -> None:
    page = (ROOT / "docs" / "presets.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^### (.+)$", page, re.MULTILINE)) == set(profile_names())
