"""The scripts in examples/ run as they are, each in an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# measure_profiles.py takes real data and minutes; tests/unit/experiment covers what it calls.
SCRIPTS = [path for path in sorted((ROOT / "examples").glob("*.py"))
           if path.name != "measure_profiles.py"]  # fmt: skip
SAYS = {
    "chat_middleware.py": "orders.get → payments.refund 1.0: 2 runs",
    "compare_profiles.py": "crewai",
    "first_ten_lines.py": "Ana prefers refunds by bank transfer",
    "langchain_agent.py": "As before.",
    "llama_index_retriever.py": "Context information is below.",
    "mcp_session.py": "recall says:",
    "openai_memory.py": "1. look_up (order)",
    "own_profile.py": "score.weights.similarity",
    "own_store.py": "liked",
    "scopes.py": "tenant:acme",
    "worked_example.py": "New version, 1.1",
}


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(
            path,
            id=path.name,
            marks=[] if path.name == "first_ten_lines.py" else [pytest.mark.slow],
        )
        for path in SCRIPTS
    ],
)
def test_example_when_run_then_it_says_what_it_is_about(script: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
        env={**os.environ, "COLUMNS": "110", "PYTHONIOENCODING": "utf-8"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert SAYS[script.name] in done.stdout


def test_examples_when_listed_then_each_is_expected() -> None:
    assert {path.name for path in SCRIPTS} == set(SAYS)
