"""What a door says when the library behind it is not installed, and what is loaded when it is."""

from __future__ import annotations

import json
import subprocess
import sys

# In a process of its own, where some libraries cannot be imported.
MISSING = """
import importlib, json, sys
said = {}
for library, door in (("openai", "openai"), ("langchain", "langchain"), ("mcp", "mcp"),
                      ("llama_index", "llama_index")):
    sys.modules[library] = None
    try:
        importlib.import_module(f"rankblend.adapters.{door}")
    except ImportError as error:
        said[door] = [type(error).__name__, str(error)]
from rankblend.cli.app import run
try:
    run(["mcp", "--db", ":memory:", "--scope", "tenant:acme", "--embedder", "none"])
except SystemExit as ended:
    said["exit"] = ended.code
print(json.dumps(said))
"""
LOADED = """
import json, sys
import rankblend.adapters.anthropic, rankblend.chat
from rankblend.cli import commands
libraries = ("openai", "anthropic", "langchain", "langchain_core", "llama_index", "mcp", "pydantic")
print(json.dumps([each for each in libraries if each in sys.modules]))
"""


def _printed(code: str) -> tuple[object, str]:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return json.loads(done.stdout), done.stderr


def test_door_when_its_library_is_missing_then_the_error_names_the_extra() -> None:
    said, errors = _printed(MISSING)
    start = "pip install 'rankblend"
    assert said == {
        "openai": [
            "MissingDependencyError", f"the OpenAI client needs openai: {start}[openai]'",
        ],
        "langchain": [
            "MissingDependencyError", f"the LangChain adapter needs langchain: {start}[langchain]'",
        ],
        "mcp": ["MissingDependencyError", f"the MCP server needs mcp: {start}[mcp]'"],
        "llama_index": [
            "MissingDependencyError",
            f"the LlamaIndex retriever needs llama-index-core: {start}[llama-index]'",
        ],
        "exit": 2,
    }  # fmt: skip
    assert f"{start}[mcp]'" in errors


def test_command_line_and_chat_when_loaded_then_no_door_is_opened() -> None:
    assert _printed(LOADED) == ([], "")
