"""OpenAI's client with a procedural memory; the model is a server on this machine that plays one.

    python examples/openai_memory.py

The first question is answered by two tool calls, which are captured; for the second, the model is
offered that procedure before it answers.
"""

from __future__ import annotations

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from openai import AsyncOpenAI

from rankblend.adapters.openai import AsyncReasonletOpenAI
from rankblend.chat import CaptureQueue, ChatOptions
from rankblend.reasonlets import ReasonletMemory

TOOLS = {"look_up": "paid", "refund": "done"}


class Model(BaseHTTPRequestHandler):
    """Calls the tools one after the other, then answers with all it was told by the system."""

    def do_POST(self) -> None:
        """Answer one chat completion."""
        messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
        done = sum(message["role"] == "tool" for message in messages)
        told = [message["content"] for message in messages if message["role"] == "system"]
        said: dict[str, Any] = {"role": "assistant", "content": "\n".join(["Refunded.", *told])}
        if done < len(TOOLS) and not told:
            function = {"name": list(TOOLS)[done], "arguments": '{"order": 7}'}
            call = {"id": f"call-{done}", "type": "function", "function": function}
            said = {"role": "assistant", "tool_calls": [call]}
        choice = {"index": 0, "finish_reason": "stop", "message": said}
        answer = {"id": "1", "created": 0, "model": "m", "object": "chat.completion"}
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps({**answer, "choices": [choice]}).encode())

    def log_message(self, *_: object) -> None:
        """Says nothing."""


async def chat(client: Any, question: str) -> str:
    """An ordinary tool loop: nothing in it knows of the memory."""
    messages: list[Any] = [{"role": "user", "content": question}]
    while True:
        completion = await client.chat.completions.create(model="m", messages=messages)
        message = completion.choices[0].message
        messages.append(message)
        for call in message.tool_calls or ():
            result = TOOLS[call.function.name]
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        if not message.tool_calls:
            return str(message.content)


async def main(url: str) -> None:
    options = ChatOptions(default_scope="tenant:acme")
    memory = ReasonletMemory(lambda texts: [[1.0, 0.0] for _ in texts])
    plain = AsyncOpenAI(base_url=url, api_key="-")
    async with memory, CaptureQueue(memory) as queue, plain:
        client = AsyncReasonletOpenAI(plain, memory, queue=queue, options=options)
        print(await chat(client, "Please refund order 7"))
        await queue.join()
        print(await chat(client, "Please refund order 9"))


if __name__ == "__main__":
    with HTTPServer(("127.0.0.1", 0), Model) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        asyncio.run(main(f"http://127.0.0.1:{server.server_port}/v1"))
        server.shutdown()
