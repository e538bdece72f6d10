"""Messages, models, memories and telemetry that the chat tests are made of."""

from __future__ import annotations

import asyncio
import json
from collections import Counter as Tally
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from attrs import define, field, frozen
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import Counter, Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rankblend.chat import CaptureDetails, transcript_to_capture
from rankblend.reasonlets import (
    Capture,
    Outcome,
    Produced,
    Provenance,
    ReasonletMatch,
    ReasonletMemory,
    Receipt,
    Status,
    VerdictSource,
)

SCOPE = "tenant:acme"
QUESTION = "How do I refund order 7?"


def user(text: Any = QUESTION) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str | None) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def call(tool: str, id: str | None = None, /, **arguments: Any) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return {"id": id or f"call-{tool}", "type": "function", "function": function}


def calls(*asked: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(asked)}


def result(id: str, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": content, **more}


def trip(*tools: str, failed: Iterable[str] = (), **arguments: Any) -> list[dict[str, Any]]:
    """Calls made together, each with its result."""
    asked = [call(tool, f"{tool}-{at}", **arguments) for at, tool in enumerate(tools)]
    results = [
        result(each["id"], "Error: no" if tool in failed else "ok")
        for tool, each in zip(tools, asked, strict=True)
    ]
    return [calls(*asked), *results]


REPLY = [*trip("orders.get", id=7), *trip("payments.refund", amount=3, id=7), said("Refunded.")]
"""What a model with its tool loop brings."""

DETAILS = CaptureDetails(SCOPE, Provenance("agent"), Outcome(success=True))


def steps(capture: Capture) -> list[str]:
    """``tool(argument, argument)`` of each step."""
    return [
        f"{node.tool}({', '.join(node.properties['mnemosyne.arguments'])})"  # type: ignore[arg-type]
        for node in capture.graph.nodes
    ]


def embed(texts: list[str]) -> list[list[float]]:
    return [[1.0, 0.0] for _ in texts]


def timeless() -> ReasonletMemory:
    """A memory for which no time passes, so that equal procedures rank in order of their ids."""
    return ReasonletMemory(embed, clock=lambda: datetime(2026, 3, 1, tzinfo=UTC))


@define
class Model:
    """A chat callable with its tool loop inside: says its replies in turn, then the last again."""

    replies: list[Any] = field(factory=lambda: [REPLY])
    asked: list[Any] = field(factory=list)
    keywords: list[dict[str, Any]] = field(factory=list)

    async def __call__(self, messages: Any, **keywords: Any) -> Any:
        self.asked.append(messages)
        self.keywords.append(keywords)
        reply = self.replies[min(len(self.asked), len(self.replies)) - 1]
        if isinstance(reply, BaseException):
            raise reply
        if callable(reply):
            reply = reply(messages, **keywords)
        return await reply if asyncio.iscoroutine(reply) else reply


async def pieces(messages: Sequence[dict[str, Any]] = tuple(REPLY)) -> AsyncIterator[Any]:
    """A stream: text letter by letter, arguments in two halves, results whole."""
    for message in messages:
        if message["role"] == "tool":
            yield message
            continue
        yield {"role": message["role"], "content": ""}
        for letter in message["content"] or "":
            yield {"content": letter}
        for index, asked in enumerate(message.get("tool_calls", ())):
            name, arguments = asked["function"]["name"], asked["function"]["arguments"]
            start, end = arguments[:3], arguments[3:]
            first = {"name": name, "arguments": ""}
            head = {"index": index, "id": asked["id"], "type": "function", "function": first}
            yield {"tool_calls": [head]}
            for piece in (start, end):
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


async def remember(
    memory: ReasonletMemory, *replies: list[dict[str, Any]], name: str | None = None
) -> list[str]:
    """Let a memory learn how each of these runs went; returns the ids."""
    ids = []
    for reply in replies:
        capture = transcript_to_capture([user("an earlier question"), *reply], DETAILS)
        if name is not None:
            capture = Capture(
                capture.scope, capture.question, capture.graph, capture.outcome,
                capture.provenance, name,
            )  # fmt: skip
        ids.append((await memory.remember(capture)).id)
    return ids


@define
class OtherMemory:
    """A memory that does what it is told on every method, and notes what it was asked."""

    does: Callable[[], Any]
    recalled: list[str] = field(factory=list)
    remembered: list[Capture] = field(factory=list)

    async def recall(self, question: str, **_: Any) -> list[ReasonletMatch]:
        self.recalled.append(question)
        answer = self.does()
        return await answer if asyncio.iscoroutine(answer) else answer

    async def remember(self, capture: Capture) -> Receipt:
        self.remembered.append(capture)
        answer = self.does()
        return await answer if asyncio.iscoroutine(answer) else answer


RECEIPT = Receipt("0", "1.0", Status.ACTIVE, Produced.CREATED, "0", VerdictSource.AGENT, True)


@define
class Captured:
    """A queue that keeps what it is offered."""

    captures: list[Capture] = field(factory=list)

    def offer(self, capture: Capture) -> bool:
        self.captures.append(capture)
        return True


@frozen
class Emitted:
    """What OpenTelemetry was told since it was last asked.

    Attributes:
        events: How often each (metric, outcome, skip reason or error type) was counted.
        spans: That ended.
        points: Every (metric, unit, tags).
        text: All of it as text.
    """

    events: Tally[tuple[str, ...]]
    spans: tuple[ReadableSpan, ...]
    points: tuple[tuple[str, str, dict[str, Any]], ...]
    text: str

    def of(self, metric: str) -> dict[tuple[str, ...], int]:
        return {event[1:]: n for event, n in self.events.items() if event[0] == metric}

    @property
    def recalls(self) -> dict[tuple[str, ...], int]:
        return self.of("mnemosyne.chat.recalls")

    @property
    def captures(self) -> dict[tuple[str, ...], int]:
        return self.of("mnemosyne.capture.queue")


@cache
def _providers() -> tuple[InMemoryMetricReader, InMemorySpanExporter]:
    delta = AggregationTemporality.DELTA
    reader = InMemoryMetricReader(preferred_temporality={Counter: delta, Histogram: delta})
    metrics.set_meter_provider(MeterProvider([reader], shutdown_on_exit=False))
    spans = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    return reader, spans


def emitted() -> Emitted:
    """What was emitted since the last time this was called."""
    reader, exporter = _providers()
    spans = exporter.get_finished_spans()
    exporter.clear()
    data = reader.get_metrics_data()
    events: Tally[tuple[str, ...]] = Tally()
    points = []
    for resource in data.resource_metrics if data is not None else ():
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for point in metric.data.data_points:
                    tags = dict(point.attributes or {})
                    points.append((metric.name, metric.unit or "", tags))
                    event = (metric.name, *(str(value) for value in tags.values()))
                    events[event] += int(getattr(point, "value", 0) or getattr(point, "count", 0))
    text = (data.to_json() if data is not None else "") + "".join(s.to_json() for s in spans)
    return Emitted(events, spans, tuple(points), text)
