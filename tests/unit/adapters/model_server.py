"""A server that answers OpenAI's chat completions over HTTP with what it is told to say."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


class ModelServer:
    """Says its messages in turn, then the last again.

    One that is an int is an HTTP status; a stream of one with ``breaks`` does so after its first word.

    Attributes:
        messages: What to say.
        requests: The bodies that came.
    """

    def __init__(self) -> None:
        self.messages: list[Any] = [{"role": "assistant", "content": "Refunded."}]
        self.requests: list[dict[str, Any]] = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                request = json.loads(self.rfile.read(length))
                said = model.messages[min(len(model.requests), len(model.messages) - 1)]
                model.requests.append(request)
                if isinstance(said, int):
                    self._answer(said, "application/json", b'{"error": {"message": "no"}}')
                elif request.get("stream"):
                    chunks = list(_chunks(said))
                    if "breaks" in said:
                        chunks[2:] = [{"error": {"message": "no"}}]
                    events = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
                    body = "".join([*events, "data: [DONE]\n\n"]).encode()
                    self._answer(200, "text/event-stream", body)
                else:
                    self._answer(200, "application/json", json.dumps(_completion(said)).encode())

            def _answer(self, status: int, kind: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nothing is printed."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def arguments(self) -> dict[str, Any]:
        """For a client of OpenAI's SDK."""
        url = f"http://127.0.0.1:{self._server.server_port}/v1"
        return {"base_url": url, "api_key": "planted-key", "max_retries": 0}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _completion(message: dict[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return {**_HEAD, "object": "chat.completion", "choices": [choice]}


_HEAD = {"id": "c", "created": 0, "model": "m"}


def _chunks(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": letter} for letter in message.get("content") or ""]
    for index, call in enumerate(message.get("tool_calls", ())):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        head = {"name": name, "arguments": ""}
        deltas.append({"tool_calls": [{**call, "index": index, "function": head}]})
        for piece in (arguments[:4], arguments[4:]):
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    for delta in deltas:
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        yield {**_HEAD, "object": "chat.completion.chunk", "choices": [choice]}
    yield {**_HEAD, "object": "chat.completion.chunk", "choices": []}  # as with include_usage
