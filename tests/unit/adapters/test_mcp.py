"""``rankblend mcp`` as a process of its own, asked by the official client over standard streams."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from chat_world import REPLY, remember
from mcp import Client, ClientSession, StdioServerParameters, stdio_client

from rankblend import Memory
from rankblend.adapters.mcp import MemoryTools, make_server
from rankblend.cli.app import run
from rankblend.embedders import wordllama
from rankblend.errors import CatalogCorruptError, EmbeddingError
from rankblend.reasonlets import ReasonletMemory, SqliteReasonletStore

SECRET = "planted-secret-4711"
PROGRAM = [sys.executable, "-c", "from rankblend.cli import main; main()", "mcp"]
SCOPED = ("--scope", "tenant:acme")
Ask = Callable[..., Awaitable[Any]]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A file with memories of two tenants and a procedure of one."""
    path = tmp_path / "memory.db"
    embedder = wordllama(64)

    async def learn() -> None:
        async with ReasonletMemory(embedder, SqliteReasonletStore.open(path)) as memory:
            await remember(memory, REPLY, name="refund an order")

    with Memory.open(path, embedder=embedder) as memory:
        memory.remember("Refunds over 500 need approval", scope="tenant:acme", id="policy")
        memory.remember("Ana wants a transfer", scope="tenant:acme/user:7", id="ana")
        memory.remember(f"Refunds of the other tenant: {SECRET}", scope="tenant:other", id="other")
    asyncio.run(learn())
    return path


@asynccontextmanager
async def _process(db: Path, *options: str) -> AsyncIterator[ClientSession]:
    """A session with a server that is a process of its own, and has said nothing at its end."""
    log = db.with_name("stderr.txt")
    command, *arguments = [*PROGRAM, "--db", str(db), *options]
    parameters = StdioServerParameters(command=command, args=arguments)
    with log.open("a", encoding="utf-8") as errors:
        async with (
            stdio_client(parameters, errlog=errors) as (incoming, outgoing),
            ClientSession(incoming, outgoing) as session,
        ):
            await session.initialize()
            yield session
    assert log.read_text(encoding="utf-8") == ""


@asynccontextmanager
async def _inside(db: Path, *options: str) -> AsyncIterator[Client]:
    """The client of the same library, joined to the server without a process between them."""
    embedder = wordllama(64)
    below = "--allow-below" in options
    async with ReasonletMemory(embedder, SqliteReasonletStore.open(db)) as procedures:
        with Memory.open(db, embedder=embedder) as memory:
            tools = MemoryTools(memory, procedures, "tenant:acme", allow_below=below)
            async with Client(make_server(tools)) as client:
                yield client


def _asked(
    db: Path, what: Callable[[Ask, Any], Awaitable[Any]], *options: str, server: Any = _inside
) -> Any:
    """What comes of asking a server."""

    async def main() -> Any:
        async with server(db, *(options or SCOPED)) as session:

            async def ask(tool: str, /, **arguments: Any) -> Any:
                answer = await session.call_tool(tool, arguments)
                (content,) = answer.content
                found = json.loads(content.text)
                assert answer.is_error == ("error" in found)
                return found

            return await what(ask, session)

    return asyncio.run(main())


def test_server_when_listed_then_its_tools_say_what_they_take_and_whether_they_write(
    db: Path,
) -> None:
    async def what(ask: Ask, session: ClientSession) -> Any:
        return (await session.list_tools()).tools

    tools = {tool.name: tool for tool in _asked(db, what)}
    assert list(tools) == ["recall", "remember", "explain", "find_procedure", "record_outcome"]
    writing = [name for name, tool in tools.items() if not tool.annotations.read_only_hint]
    assert writing == ["remember", "record_outcome"]
    assert tools["explain"].input_schema["required"] == ["query", "id"]
    assert all(not tool.input_schema["additionalProperties"] for tool in tools.values())


@pytest.mark.parametrize("server", [_process, _inside])
def test_memory_when_remembered_recalled_and_explained_then_it_is_in_the_file(
    db: Path, server: Any
) -> None:
    async def what(ask: Ask, session: ClientSession) -> Any:
        made = await ask("remember", text="Refunds take 3 days", id="days", salience=0.5,
                         links=["policy"], metadata={"page": 1}, layer=None)  # fmt: skip
        found = await ask("recall", query="how long do refunds take", top=2)
        absent = await ask("explain", query="refunds", id="other")
        return made, found, await ask("explain", query="refunds", id="days"), absent

    made, found, shown, absent = _asked(db, what, server=server)
    assert made == {"id": "days"}
    assert [each["id"] for each in found["matches"]] == ["days", "policy"]
    assert found["degraded"] is False
    first = found["matches"][0]
    assert (first["text"], first["metadata"]) == ("Refunds take 3 days", {"page": 1})
    assert {"similarity", "keyword"} <= first["signals"].keys()
    assert shown["shown"] is True
    assert sum(row["contribution"] or 0 for row in shown["rows"] if row["depth"] == 0) == (
        pytest.approx(shown["score"])
    )
    # Another tenant's and one that never was are absent in the same words.
    assert absent["shown"] is False
    assert "not visible" in absent["verdict"]
    with Memory.open(db, embedder=wordllama(64)) as memory:
        assert memory.get("days", scope="tenant:acme").salience == 0.5


@pytest.mark.parametrize("server", [_process, _inside])
def test_procedure_when_found_and_its_outcome_recorded_then_it_counts(
    db: Path, server: Any
) -> None:
    async def what(ask: Ask, session: ClientSession) -> Any:
        question = "an earlier question"
        (before,) = (await ask("find_procedure", question=question))["procedures"]
        receipt = await ask(
            "record_outcome", procedure=before["id"], success=False, score=0.2, seconds=1.5
        )
        (after,) = (await ask("find_procedure", question=question))["procedures"]
        return before, receipt, after

    before, receipt, after = _asked(db, what, server=server)
    assert before["name"] == "refund an order"
    assert before["steps"][0] == {"tool": "orders.get", "arguments": ["id"]}
    assert receipt["procedure"] == before["id"]
    assert (before["runs"], after["runs"]) == (1, 2)
    assert after["success_rate"] < before["success_rate"]


ESCAPES = [
    "tenant:other",  # a kind twice
    "../tenant:other",
    "user:7/../../tenant:other",
    "/tenant:other",
    "",
    "user",
    "user:7/",
]


@pytest.mark.parametrize("server", [pytest.param(_process, marks=pytest.mark.slow), _inside])
def test_client_when_it_names_other_scopes_then_it_sees_and_writes_nothing_there(
    db: Path, server: Any
) -> None:
    async def fixed(ask: Ask, session: ClientSession) -> Any:
        refused = [await ask("recall", query="refunds", below="user:7")]
        refused.append(await ask("recall", query="refunds", scope="tenant:other"))
        refused.append(await ask("remember", text="mine", scope="tenant:other"))
        return refused, await ask("recall", query=f"refunds other tenant {SECRET} Ana")

    refused, found = _asked(db, fixed, server=server)
    assert [each["error"] for each in refused] == ["validation"] * 3
    # Neither the other tenant's nor what lies below.
    assert [each["id"] for each in found["matches"]] == ["policy"]

    async def bounded(ask: Ask, session: ClientSession) -> Any:
        refused = [await ask("recall", query="refunds", below=below) for below in ESCAPES]
        written = await ask("remember", text="Ana moved", id="moved", below="user:7")
        return refused, written, await ask("recall", query="Ana transfer", below="user:7")

    refused, written, found = _asked(db, bounded, *SCOPED, "--allow-below", server=server)
    assert [each["error"] for each in refused] == ["validation"] * len(ESCAPES)
    assert written == {"id": "moved"}
    assert {each["id"] for each in found["matches"]} == {"ana", "moved", "policy"}
    with Memory.open(db, embedder=wordllama(64)) as memory:
        assert str(memory.get("moved", scope="tenant:acme/user:7").scope) == "tenant:acme/user:7"
        assert memory.recall("moved mine", scope="tenant:other").ids == ("other",)


def test_call_when_wrong_then_a_typed_error_says_what_to_do_and_repeats_nothing(db: Path) -> None:
    async def what(ask: Ask, session: ClientSession) -> Any:
        return [
            await ask("recall", query=7),
            await ask("recall", **{SECRET: 1}, query="q"),
            await ask("recall", query="q", top=-1),
            await ask("recall", query="q", top=True),
            await ask("remember"),
            await ask("remember", text="x", salience=4711.0),
            await ask("remember", text="x", layer=SECRET * 20),
            await ask("remember", text="x", links=["a", 4711]),
            await ask("find_procedure", question=" "),
            await ask("record_outcome", procedure=SECRET, success=True),
            await ask("record_outcome", procedure=SECRET, success=True, seconds=1e300),
            await ask("record_outcome", procedure=SECRET, success=True, score=4711),
            await ask("no_such_tool"),
        ]

    answers = _asked(db, what)
    assert [each["error"] for each in answers] == [
        *["validation"] * 9, "not_found", *["validation"] * 3,
    ]  # fmt: skip
    assert answers[0]["problems"] == ["query: expected string"]
    assert answers[4]["problems"] == ["text: required"]
    assert answers[5]["problems"] == ["salience: expected None or a number in [0, 1]"]
    assert answers[7]["problems"] == ["links: expected array of strings"]
    assert answers[9]["message"] == "no such reasonlet in this scope"
    assert "4711" not in json.dumps(answers)


@pytest.mark.slow
def test_server_when_it_has_no_embedder_then_procedures_are_unavailable_and_the_rest_works(
    tmp_path: Path,
) -> None:
    async def what(ask: Ask, session: ClientSession) -> Any:
        await ask("remember", text="Refunds take 3 days", id="days")
        found = await ask("recall", query="refunds")
        return found, await ask("find_procedure", question="refunds")

    found, procedures = _asked(
        tmp_path / "new.db", what, *SCOPED, "--embedder", "none", server=_process
    )
    assert [each["id"] for each in found["matches"]] == ["days"]
    assert procedures == {"error": "unavailable", "message": "the embedder is unavailable"}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (CatalogCorruptError(f"/secret/{SECRET}"), "unavailable"),
        (EmbeddingError("http", "status", SECRET), "unavailable"),
        (RuntimeError(SECRET), "internal"),
    ],
)
def test_tool_when_something_inside_fails_then_only_its_type_is_told(
    error: Exception, kind: str
) -> None:
    with Memory.open(":memory:") as memory:
        tools = MemoryTools(memory, None, "tenant:acme")
        tool = tools.tools()[0]

        async def fail(*_: object) -> Any:
            raise error

        answer, worked = asyncio.run(tools.call(evolve(tool, call=fail), {"query": "q"}))
    assert (worked, answer) == (False, {"error": kind, "type": type(error).__name__})


@pytest.mark.slow
def test_server_when_its_input_ends_then_it_closes_the_file_and_ends(db: Path) -> None:
    done = subprocess.run(
        [*PROGRAM, "--db", str(db), *SCOPED],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not db.with_name(f"{db.name}-wal").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "--scope: required"),
        (["--scope", "no scope"], "expected kind:id"),
        ([*SCOPED, "--min-similarity", "2"], "min_similarity"),
        ([*SCOPED, "--profile", "defualt"], 'did you mean "default"?'),
        ([*SCOPED, "--embedder", "nobody"], "--embedder: expected"),
    ],
)
def test_command_when_started_wrongly_then_it_says_so_and_ends(
    tmp_path: Path, options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(["mcp", "--db", str(tmp_path / "m.db"), *options])
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert says in said.err
