"""The HTTP embedder against a real server in a thread."""

from __future__ import annotations

import json
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from rankblend.embedders import EndpointEmbedder, checked, identity, openai
from rankblend.errors import EmbeddingError, InvalidArgumentError, MissingDependencyError

pytest.importorskip("httpx", reason="needs the extra http")
pytest.importorskip("stamina", reason="needs the extra http")

KEY = "sk-planted-key"
SECRET = "Ana's account is 4711"

Step = Callable[["Endpoint", dict[str, Any]], tuple[int, dict[str, str], bytes]]


def vector(text: str) -> list[float]:
    return [float(len(text)), 1.0]


def good(endpoint: Endpoint, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    data = [{"index": n, "embedding": vector(text)} for n, text in enumerate(body["input"])]
    return 200, {}, json.dumps({"data": data}).encode()


def shuffled(endpoint: Endpoint, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    status, headers, content = good(endpoint, body)
    return status, headers, json.dumps({"data": json.loads(content)["data"][::-1]}).encode()


def status(code: int, **headers: str) -> Step:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda endpoint, body: (code, names, json.dumps({"error": body["input"]}).encode())


def content(value: bytes) -> Step:
    return lambda endpoint, body: (200, {}, value)


def silent(endpoint: Endpoint, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    endpoint.released.wait()
    return 200, {}, b"{}"


class Endpoint:
    """A server that answers with the next step of a script; the last one is repeated."""

    def __init__(self) -> None:
        self.script: list[Step] = [good]
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.released = threading.Event()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.bodies.append(body)
                endpoint.headers.append({k.lower(): v for k, v in self.headers.items()})
                endpoint.paths.append(self.path)
                step = endpoint.script[min(len(endpoint.bodies), len(endpoint.script)) - 1]
                code, headers, answer = step(endpoint, body)
                try:
                    self.send_response(code)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)
                except OSError:
                    self.close_connection = True  # the client has given up

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/v1"

    def close(self) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint()
    yield server
    server.close()


@pytest.fixture
def embedder(endpoint: Endpoint) -> Iterator[EndpointEmbedder]:
    with openai("mini", base_url=endpoint.url, api_key=KEY, backoff=0.0) as made:
        yield made


def test_openai_when_the_server_answers_then_rows_come_back_in_order(
    endpoint: Endpoint, embedder: EndpointEmbedder
) -> None:
    assert embedder(["a", "bbb"]).tolist() == [[1.0, 1.0], [3.0, 1.0]]
    assert endpoint.paths == ["/v1/embeddings"]
    assert endpoint.bodies == [{"model": "mini", "input": ["a", "bbb"]}]
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"


def test_openai_when_the_server_shuffles_then_rows_are_ordered_by_index(
    endpoint: Endpoint, embedder: EndpointEmbedder
) -> None:
    endpoint.script = [shuffled]
    assert embedder(["a", "bb", "ccc"])[:, 0].tolist() == [1.0, 2.0, 3.0]


def test_openai_when_there_is_no_key_then_no_header_is_sent(endpoint: Endpoint) -> None:
    with openai("mini", base_url=f"{endpoint.url}/") as embedder:
        embedder(["a"])
    assert "authorization" not in endpoint.headers[0]
    assert endpoint.paths == ["/v1/embeddings"]


def test_openai_when_there_are_many_texts_then_they_go_in_batches(endpoint: Endpoint) -> None:
    with openai("mini", base_url=endpoint.url, batch_size=2, options={"dimensions": 2}) as embedder:
        assert embedder(["a", "bb", "ccc"])[:, 0].tolist() == [1.0, 2.0, 3.0]
        assert embedder([]).shape == (0, 0)
    assert [body["input"] for body in endpoint.bodies] == [["a", "bb"], ["ccc"]]
    assert endpoint.bodies[0]["dimensions"] == 2


def test_openai_when_a_text_is_unicode_then_it_arrives_unchanged(
    endpoint: Endpoint, embedder: EndpointEmbedder
) -> None:
    texts = ["返金", "e\u0301", "😀", "שלום", "nul\x00"]
    embedder(texts)
    assert endpoint.bodies[0]["input"] == texts


@pytest.mark.parametrize("code", [408, 429, 500, 502, 503, 504])
def test_openai_when_the_server_is_busy_once_then_the_second_attempt_counts(
    endpoint: Endpoint, embedder: EndpointEmbedder, code: int
) -> None:
    endpoint.script = [status(code, Retry_After="0"), good]
    assert embedder(["a"]).tolist() == [[1.0, 1.0]]
    assert len(endpoint.bodies) == 2


def test_openai_when_retry_after_is_a_date_then_the_usual_wait_serves(
    endpoint: Endpoint, embedder: EndpointEmbedder
) -> None:
    endpoint.script = [status(503, Retry_After="Wed, 21 Oct 2026 07:28:00 GMT"), good]
    assert embedder(["a"]).shape == (1, 2)


def test_openai_when_the_server_stays_down_then_attempts_are_limited(
    endpoint: Endpoint, embedder: EndpointEmbedder
) -> None:
    endpoint.script = [status(500)]
    with pytest.raises(EmbeddingError, match="500") as caught:
        embedder([SECRET])
    assert caught.value.reason == "status"
    assert len(endpoint.bodies) == 3  # one attempt and two retries


@pytest.mark.parametrize("code", [301, 400, 401, 404, 422])
def test_openai_when_the_server_refuses_then_it_is_not_asked_again(
    endpoint: Endpoint, embedder: EndpointEmbedder, code: int
) -> None:
    endpoint.script = [status(code, Location="http://127.0.0.1:9/")]
    with pytest.raises(EmbeddingError) as caught:
        embedder([SECRET])
    assert caught.value.reason == "status"
    assert len(endpoint.bodies) == 1


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"{", "response"),
        (b"\xff\xfe", "response"),
        (b"[]", "response"),
        (b'{"data": 3}', "response"),
        (b'{"data": [3, 4]}', "response"),
        (b'{"data": []}', "rows"),
        (b'{"data": [{"index": 0, "embedding": [1]}]}', "rows"),
        (b'{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}', "response"),
        (b'{"data": [{"index": 1, "embedding": [1]}, {"index": 2, "embedding": [1]}]}', "response"),
        (b'{"data": [{"index": "0", "embedding": [1]}, {"index": 1}]}', "response"),
        (b'{"data": [{"index": true, "embedding": [1]}, {"index": 0}]}', "response"),
        (b'{"data": [{"embedding": [1]}, {"index": 1}]}', "shape"),
        (b'{"data": [{"embedding": [1]}, {"embedding": [1, 2]}]}', "shape"),
        (b'{"data": [{"embedding": "AAAA"}, {"embedding": "AAAA"}]}', "shape"),
        (b'{"data": [{"embedding": [true]}, {"embedding": [1]}]}', "shape"),
        (
            b'{"data": [{"embedding": [1' + b"0" * 400 + b']}, {"embedding": [1]}]}',
            "non-finite",
        ),
    ],
)
def test_openai_when_the_answer_is_not_in_the_format_then_the_error_names_the_reason(
    endpoint: Endpoint, embedder: EndpointEmbedder, answer: bytes, reason: str
) -> None:
    endpoint.script = [content(answer)]
    with pytest.raises(EmbeddingError) as caught:
        embedder(["a", "b"])
    assert caught.value.reason == reason
    assert len(endpoint.bodies) == 1


def test_openai_when_the_body_belies_its_encoding_then_it_is_a_bad_answer(
    endpoint: Endpoint, embedder: EndpointEmbedder
) -> None:
    endpoint.script = [lambda server, body: (200, {"Content-Encoding": "gzip"}, b"not gzip")]
    with pytest.raises(EmbeddingError) as caught:
        embedder(["a"])
    assert caught.value.reason == "response"


def test_openai_when_an_answer_holds_nan_then_the_gate_refuses_it(
    endpoint: Endpoint, embedder: EndpointEmbedder
) -> None:
    endpoint.script = [content(b'{"data": [{"embedding": [NaN, 1.0]}]}')]
    with pytest.raises(EmbeddingError) as caught:
        checked(embedder, ["a"])
    assert caught.value.reason == "non-finite"


def test_openai_when_the_server_is_silent_then_it_times_out(endpoint: Endpoint) -> None:
    endpoint.script = [silent]
    with (
        openai("mini", base_url=endpoint.url, timeout=0.1, max_retries=0) as embedder,
        pytest.raises(EmbeddingError) as caught,
    ):
        embedder([SECRET])
    assert caught.value.reason == "timeout"


def test_openai_when_nobody_listens_then_it_says_so(endpoint: Endpoint) -> None:
    url = endpoint.url
    endpoint.close()
    with (
        openai("mini", base_url=url, max_retries=1, backoff=0.0) as embedder,
        pytest.raises(EmbeddingError) as caught,
    ):
        embedder(["a"])
    assert caught.value.reason == "connection"


def test_openai_when_anything_fails_then_neither_key_nor_text_is_shown(
    endpoint: Endpoint, embedder: EndpointEmbedder, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    shown = [repr(embedder), str(vars(embedder))]
    for step in (status(500), status(400), content(SECRET.encode()), content(b'{"data": []}')):
        endpoint.script = [step]
        with pytest.raises(EmbeddingError) as caught:
            checked(embedder, [SECRET])
        shown.append("".join(traceback.format_exception(caught.value)))
    shown += [f"{record.getMessage()} {vars(record)}" for record in caplog.records]
    assert not [text for text in shown if KEY in text or SECRET in text]


def test_openai_when_closed_twice_then_nothing_happens(embedder: EndpointEmbedder) -> None:
    embedder.close()
    embedder.close()


def test_openai_identity_names_model_and_dimension(endpoint: Endpoint) -> None:
    with openai("mini", base_url=endpoint.url, dimension=2) as embedder:
        assert identity(embedder) == "openai:mini/2"
        assert endpoint.bodies == []
    with openai("mini", base_url=endpoint.url, name="ours") as embedder:
        assert identity(embedder) == "ours/2"


def test_openai_when_arguments_are_invalid_then_all_are_named_and_the_key_is_not() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        openai(
            " ",
            base_url="http://user:pass@host/v1",
            api_key=f"{KEY}\n",
            dimension=0,
            timeout=0.0,
            max_retries=-1,
            backoff=-1.0,
            batch_size=0,
        )
    names = [problem.partition(":")[0] for problem in caught.value.problems]
    assert names == [
        "model",
        "base_url",
        "api_key",
        "dimension",
        "max_retries",
        "batch_size",
        "timeout",
        "backoff",
    ]
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("url", ["", "localhost:11434", "ftp://host", "http://", "http://[::1"])
def test_openai_when_the_address_is_none_then_it_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgumentError, match="base_url"):
        openai("mini", base_url=url)


@pytest.mark.parametrize("package", ["httpx", "stamina"])
def test_openai_when_a_package_is_missing_then_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=r"rankblend\[http\]"):
        openai("mini", base_url="http://localhost/v1")
