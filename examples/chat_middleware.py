"""A procedural memory around a chat: the second time it knows how it went the first time.

    python examples/chat_middleware.py

The model is a stand-in that answers without a network; with a real one, `answer` is your tool loop.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from rankblend.chat import CaptureQueue, ChatOptions, Message, ReasonletChat
from rankblend.reasonlets import ReasonletMemory

ORDERS = {"7": {"id": "7", "paid": 30}, "9": {"id": "9", "paid": 12}}
TOOLS = {
    "orders.get": lambda order: ORDERS[order],
    "payments.refund": lambda order, amount: {"refunded": amount, "order": order},
}


def model(messages: Sequence[Message]) -> Message:
    """Looks the order up, refunds it, says so: the next step by what is there already."""
    question = next(m["content"] for m in reversed(messages) if m["role"] == "user")
    number = question.rstrip("?").split()[-1]
    done = [m for m in messages if m["role"] == "tool"]
    if not done:
        return calling("orders.get", order=number)
    if len(done) == 1:
        return calling(
            "payments.refund", order=number, amount=json.loads(done[0]["content"])["paid"]
        )
    return {"role": "assistant", "content": f"Order {number} is refunded."}


def calling(tool: str, **arguments: Any) -> Message:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    call = {"id": f"call of {tool}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


async def answer(messages: Sequence[Message]) -> list[Message]:
    """The tool loop; everything that is new, the calls and their results included."""
    for offered in (m["content"] for m in messages if m["role"] == "system"):
        print(offered)
    new: list[Message] = []
    while not new or new[-1]["role"] == "tool":
        new.append(model([*messages, *new]))
        for call in new[-1].get("tool_calls", ()):
            function = call["function"]
            done = TOOLS[function["name"]](**json.loads(function["arguments"]))
            new.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(done)})
    return new


def embed(texts: list[str]) -> list[list[float]]:
    """Two questions are alike when they share words; use a real model, see rankblend.embedders."""
    words = ["refund", "order", "cancel", "invoice"]
    return [[float(word in text) for word in words] for text in texts]


async def main() -> None:
    async with ReasonletMemory(embed) as memory, CaptureQueue(memory) as queue:
        options = ChatOptions(default_scope="tenant:acme", source="shop")
        chat = ReasonletChat(answer, memory, queue=queue, options=options)
        for number in ("7", "9"):
            new = await chat([{"role": "user", "content": f"Please refund order {number}"}])
            print(f"> {new[-1]['content']}")
            await queue.join()  # only so that the next call knows it; a program just goes on
        (match,) = await memory.recall("refund order 8", scope="tenant:acme")
        print(f"{match.reasonlet.name} {match.reasonlet.version}: {match.evidence.runs} runs")


if __name__ == "__main__":
    asyncio.run(main())
