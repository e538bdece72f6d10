"""Embeddings over HTTP from any server that speaks the OpenAI ``/embeddings`` format."""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType, TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from rankblend import limits
from rankblend.errors import EmbeddingError, InvalidArgumentError, MissingDependencyError

_TRY_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_LONGEST_WAIT = 60.0


class _UnavailableError(Exception):
    """The server may answer another time; ``after`` is its own wish in seconds, if it had one."""

    def __init__(self, reason: str, detail: str, after: float | None = None) -> None:
        super().__init__(detail)
        self.reason = reason
        self.after = after


class EndpointEmbedder:
    """An ``/embeddings`` endpoint; made by `openai`.

    Keeps its connections open between calls; `close` it, or use it as a context manager.

    Attributes:
        name: ``"openai:<model>"`` unless given.
        dimension: As given; None otherwise.
        model: The model asked for.
    """

    def __init__(
        self,
        *,
        name: str,
        model: str,
        dimension: int | None,
        client: Any,
        batch_size: int,
        options: Mapping[str, object],
        retry: Any,
    ) -> None:
        self.name = name
        self.model = model
        self.dimension = dimension
        self._client = client
        self._batch_size = batch_size
        self._options = MappingProxyType(dict(options))
        self._retry = retry
        self._closed = weakref.finalize(self, client.close)

    def __repr__(self) -> str:
        return f"EndpointEmbedder(name={self.name!r}, dimension={self.dimension!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; closing twice is harmless."""
        self._closed()

    def __call__(self, texts: Sequence[str], /) -> NDArray[np.float64]:
        """Embed the texts; float64, shape (n, d), as the server sent them.

        Raises:
            EmbeddingError: No usable answer after all retries: ``timeout``, ``connection``,
                ``status`` (the server refused), ``response`` (what it sent is not in the format),
                ``rows`` (another number of vectors than texts) or ``shape``. Contains neither the
                key nor a text nor anything the server wrote.
        """
        batches = [
            self._ask(list(texts[start : start + self._batch_size]))
            for start in range(0, len(texts), self._batch_size)
        ]
        if not batches:
            return np.empty((0, self.dimension or 0))
        if len({batch.shape[1] for batch in batches}) > 1:
            raise EmbeddingError(self.name, "shape", "vectors of one call have several lengths")
        return np.concatenate(batches)

    def _ask(self, texts: list[str]) -> NDArray[np.float64]:
        try:
            for attempt in self._retry():
                with attempt:
                    answer = self._post(texts)
        except _UnavailableError as error:
            raise EmbeddingError(self.name, error.reason, str(error)) from None
        return self._read(answer, len(texts))

    def _post(self, texts: list[str]) -> Any:
        httpx = _require("httpx")
        body = {**self._options, "model": self.model, "input": texts}
        try:
            response = self._client.post("embeddings", json=body)
        except httpx.TimeoutException:
            raise _UnavailableError("timeout", "the endpoint did not answer in time") from None
        except httpx.TransportError as error:
            raise _UnavailableError(
                "connection", f"the endpoint could not be reached ({type(error).__name__})"
            ) from None
        except httpx.RequestError as error:  # e.g. a body that is not what its encoding says
            raise EmbeddingError(
                self.name, "response", f"the answer cannot be read ({type(error).__name__})"
            ) from None
        if response.status_code in _TRY_AGAIN:
            raise _UnavailableError(
                "status",
                f"the endpoint answered with status {response.status_code}",
                _seconds(response.headers.get("retry-after")),
            )
        if response.status_code != 200:
            raise EmbeddingError(
                self.name, "status", f"the endpoint answered with status {response.status_code}"
            )
        try:
            return response.json()
        except ValueError:  # its message would repeat the answer, and that may repeat the texts
            raise EmbeddingError(self.name, "response", "the answer is not JSON") from None

    def _read(self, answer: Any, count: int) -> NDArray[np.float64]:
        entries = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise EmbeddingError(self.name, "response", "the answer has no list 'data' of objects")
        if len(entries) != count:
            raise EmbeddingError(self.name, "rows", f"expected {count} rows, got {len(entries)}")
        # The format numbers the vectors and promises no order; a server without numbers keeps it.
        places = [entry.get("index", place) for place, entry in enumerate(entries)]
        if any(type(place) is not int for place in places) or sorted(places) != list(range(count)):
            raise EmbeddingError(
                self.name, "response", f"expected each index from 0 to {count - 1} once"
            )
        vectors = [entries[at].get("embedding") for at in np.argsort(places)]
        if not all(_is_vector(vector) for vector in vectors):
            raise EmbeddingError(self.name, "shape", "an embedding is no list of numbers")
        if len({len(vector) for vector in vectors}) != 1:
            raise EmbeddingError(self.name, "shape", "vectors of one call have several lengths")
        try:
            return np.array(vectors, dtype=np.float64)
        except OverflowError:  # JSON integers have no bound
            raise EmbeddingError(self.name, "non-finite", "a number exceeds float64") from None


def openai(
    model: str,
    *,
    base_url: str,
    api_key: str | None = None,
    dimension: int | None = None,
    timeout: float = 30.0,
    max_retries: int = 2,
    backoff: float = 0.5,
    batch_size: int = 64,
    options: Mapping[str, object] | None = None,
    name: str | None = None,
) -> EndpointEmbedder:
    """Any server with an OpenAI-compatible ``/embeddings`` endpoint: OpenAI, Ollama, vLLM, ….

    How to get it: ``pip install 'rankblend[http]'``.

    Args:
        model: Sent as ``model``.
        base_url: Up to, without, ``/embeddings``, e.g. ``"http://localhost:11434/v1"``.
        api_key: Sent as bearer token, to ``base_url`` only (redirects are not followed). Never read
            from the environment, never shown.
        dimension: The d expected. To *ask* for one, set it in ``options`` as well.
        timeout: Seconds to wait for a connection, and then for any next piece of the answer; > 0.
        max_retries: Further attempts after a time-out, a lost connection, 408, 409, 425, 429, 500,
            502, 503 or 504; ≥ 0. Waits what ``Retry-After`` says in seconds (at most 60), else
            about ``backoff`` doubled each time, with jitter.
        backoff: Seconds before the first retry; ≥ 0.
        batch_size: Texts a request; > 0.
        options: Further fields of each request, e.g. ``{"dimensions": 256}``.
        name: What the embedder is called; part of a memory's identity.

    Raises:
        InvalidArgumentError: An argument outside its range; all problems at once.
        MissingDependencyError: httpx or stamina is not installed.
    """
    problems = []
    if not model.strip():
        problems.append("model: expected the name of a model")
    if not _is_address(base_url):
        problems.append("base_url: expected an http or https address without a user or password")
    # The key itself is in no message, here or where a client library would object to it.
    if api_key is not None and not (api_key.isascii() and api_key.isprintable() and api_key):
        problems.append("api_key: expected visible ASCII characters only")
    numbers = {"dimension": dimension, "max_retries": max_retries, "batch_size": batch_size}
    if dimension is None:
        del numbers["dimension"]
    problems += limits.beyond(**numbers)
    if not 0 < timeout < float("inf"):
        problems.append(f"timeout: expected seconds > 0, got {timeout}")
    if not 0 <= backoff < float("inf"):
        problems.append(f"backoff: expected seconds ≥ 0, got {backoff}")
    if problems:
        raise InvalidArgumentError(problems)
    httpx, stamina = _require("httpx"), _require("stamina")
    client = httpx.Client(
        base_url=base_url.rstrip("/") + "/",
        headers={} if api_key is None else {"Authorization": f"Bearer {api_key}"},
        timeout=timeout,
        follow_redirects=False,
    )
    retry = partial(
        stamina.retry_context,
        on=_wait,
        attempts=max_retries + 1,
        timeout=None,
        wait_initial=backoff,
        wait_jitter=backoff,
        wait_max=_LONGEST_WAIT,
    )
    return EndpointEmbedder(
        name=name if name is not None else f"openai:{model}",
        model=model,
        dimension=dimension,
        client=client,
        batch_size=batch_size,
        options=options or {},
        retry=retry,
    )


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    # A password in an address ends up in the logs of every client library.
    return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc


def _wait(error: Exception) -> bool | float:
    """How long to wait before trying again: seconds, True for the usual time, False for never."""
    if not isinstance(error, _UnavailableError):
        return False
    return True if error.after is None else error.after


def _seconds(header: str | None) -> float | None:
    # Retry-After may also be a date; that needs a clock and the usual waiting time serves as well.
    if header is None or not header.isascii() or not header.isdigit():
        return None
    return min(float(header), _LONGEST_WAIT)


def _is_vector(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(number, int | float) and not isinstance(number, bool) for number in value
    )


def _require(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError:
        raise MissingDependencyError(package, "http", "an embedder over HTTP") from None
