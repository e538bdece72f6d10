"""What a procedural memory adds to a chat call, with 10,000 procedures in it, warm.

The model answers at once, so a call takes as long as what is put around it. The reference is the
memory's own recall, or the time-out where the memory hangs.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import numpy as np
import pytest

from rankblend.chat import (
    CaptureDetails,
    CaptureQueue,
    ChatOptions,
    FindProcedure,
    ReasonletChat,
    transcript_to_capture,
)
from rankblend.reasonlets import (
    InMemoryReasonletStore,
    Outcome,
    Provenance,
    ReasonletMemory,
    SqliteReasonletStore,
)

N, D, SCOPE = 10_000, 384, "tenant:bench"
QUESTION = "How do I refund question 77?"
HANG = timedelta(milliseconds=50)
ASKED = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": QUESTION}]


def reply(*tools):
    new = []
    for at, tool in enumerate(tools):
        function = {"name": tool, "arguments": '{"id": 7, "sum": 3}'}
        new += [
            {"role": "assistant", "tool_calls": [{"id": f"c{at}", "function": function}]},
            {"role": "tool", "tool_call_id": f"c{at}", "content": "x" * 2_000},
        ]
    return [*new, {"role": "assistant", "content": "Done."}]


REPLY = reply("users.get", "orders.get", "payments.get", "payments.refund", "mail.send")


def embed(texts):
    seeds = [sum(map(ord, text)) for text in texts]
    base = np.random.default_rng(0).normal(size=D)
    return np.array([base + 0.3 * np.random.default_rng(seed).normal(size=D) for seed in seeds])


class Nowhere:
    """Takes captures and keeps none."""

    def offer(self, capture):
        return True


async def model(messages, tools=()):
    return REPLY


@pytest.fixture(scope="module")
def loop():
    made = asyncio.new_event_loop()
    yield made
    made.close()


@pytest.fixture(scope="module", params=["in memory", "SQLite"])
def memory(request, loop, tmp_path_factory):
    """Each procedure with another question, one in ten with another graph."""
    path = tmp_path_factory.mktemp("chat") / "procedures.db"
    made = ReasonletMemory(
        embed,
        InMemoryReasonletStore()
        if request.param == "in memory"
        else SqliteReasonletStore.open(path),
    )
    details = CaptureDetails(SCOPE, Provenance("bench"), Outcome(success=True))

    async def fill():
        for n in range(N):
            asked = [{"role": "user", "content": f"question {n}"}]
            run = reply(f"tool-{n % 1_000}", "orders.get", "mail.send")
            await made.remember(transcript_to_capture([*asked, *run], details))

    loop.run_until_complete(fill())
    made.name = request.param
    yield made
    loop.run_until_complete(made.aclose())


def timed(benchmark, loop, call, rounds=200):
    return benchmark.pedantic(
        lambda: loop.run_until_complete(call()), rounds=rounds, warmup_rounds=10
    )


def group(memory):
    return f"a chat call, {N:,} procedures × {D} {memory.name}"


def test_reference_recall(benchmark, memory, loop):
    """`ReasonletMemory.recall`, top 1."""
    benchmark.group = group(memory)
    benchmark.extra_info["reference"] = True
    assert timed(benchmark, loop, lambda: memory.recall(QUESTION, scope=SCOPE, top=1))


def test_recall_only(benchmark, memory, loop):
    """`ReasonletChat` with a recall that injects a procedure of three steps."""
    benchmark.group = group(memory)
    benchmark.extra_info["target"] = "<= 1.5 x + 1 ms"
    chosen = ChatOptions(SCOPE, capture=False)
    chat = ReasonletChat(model, memory, options=chosen)
    assert timed(benchmark, loop, lambda: chat(ASKED)) is REPLY


def test_recall_and_capture(benchmark, memory, loop):
    """The same, with the exchange of five tool calls offered to a queue that keeps nothing."""
    benchmark.group = group(memory)
    benchmark.extra_info["target"] = "<= 1.5 x + 1 ms"

    chosen = ChatOptions(SCOPE, expose_find_procedure=True)
    chat = ReasonletChat(model, memory, queue=Nowhere(), options=chosen)
    assert timed(benchmark, loop, lambda: chat(ASKED)) is REPLY


def test_continuation(benchmark, memory, loop):
    """A call that continues a question: no recall, the exchange captured."""
    benchmark.group = group(memory)
    benchmark.extra_info["target"] = "<= 1 x"

    chat = ReasonletChat(model, memory, queue=Nowhere(), options=ChatOptions(SCOPE))
    assert timed(benchmark, loop, lambda: chat([*ASKED, *REPLY[:2]])) is REPLY


def test_find_procedure(benchmark, memory, loop):
    """A look-up of the model: the three best, as JSON."""
    benchmark.group = group(memory)
    benchmark.extra_info["target"] = "<= 1.5 x + 1 ms"
    tool = FindProcedure(memory, SCOPE)
    assert timed(benchmark, loop, lambda: tool(QUESTION)).startswith("[{")


def test_reference_time_out(benchmark, loop):
    """`asyncio.sleep` for the time-out."""
    benchmark.group = f"a chat call, the memory hangs, time-out {HANG.total_seconds() * 1e3:.0f} ms"
    benchmark.extra_info["reference"] = True
    timed(benchmark, loop, lambda: asyncio.sleep(HANG.total_seconds()), rounds=20)


def test_hanging_memory(benchmark, loop):
    """`ReasonletChat` around a memory that hangs and ignores being cancelled."""
    benchmark.group = f"a chat call, the memory hangs, time-out {HANG.total_seconds() * 1e3:.0f} ms"
    benchmark.extra_info["target"] = "<= 1 x + 5 ms"
    over = asyncio.Event()

    class Hanging:
        async def recall(self, question, **how):
            while not over.is_set():
                try:
                    await over.wait()
                except asyncio.CancelledError:
                    continue

        async def remember(self, capture):
            raise NotImplementedError

    async def let_go():
        over.set()
        await asyncio.sleep(0)

    chat = ReasonletChat(
        model, Hanging(), queue=CaptureQueue(Hanging()),
        options=ChatOptions(SCOPE, recall_timeout=HANG),
    )  # fmt: skip
    asked = [*ASKED[:1], {"role": "user", "content": QUESTION}]
    assert timed(benchmark, loop, lambda: chat(asked), rounds=20) is REPLY
    loop.run_until_complete(let_go())


@pytest.mark.parametrize("tools", [5, 50])
def test_transcript(benchmark, tools):
    """`transcript_to_capture` of as many calls as told, results of 2,000 characters."""
    benchmark.group = f"a transcript of {tools} tool calls"
    details = CaptureDetails(SCOPE, Provenance("bench"), Outcome(success=True))
    messages = [*ASKED, *reply(*(f"tool-{n}" for n in range(tools)))]
    benchmark.pedantic(transcript_to_capture, args=(messages, details), rounds=100, warmup_rounds=5)
