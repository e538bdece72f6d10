"""docs/telemetry.md against what is emitted, and OpenTelemetry not being there."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_world import (
    DETAILS,
    QUESTION,
    REPLY,
    SCOPE,
    Emitted,
    Model,
    OtherMemory,
    call,
    calls,
    embed,
    remember,
    said,
    user,
)
from opentelemetry.trace import StatusCode

from rankblend import telemetry
from rankblend.chat import CaptureQueue, ChatOptions, ReasonletChat, transcript_to_capture
from rankblend.errors import CODES
from rankblend.reasonlets import (
    GuardVerdict,
    InMemoryReasonletStore,
    Judgement,
    ReasonletMemory,
    ReasonletUnavailableError,
)
from rankblend.telemetry import EventCounter, Operation

Row = tuple[str, str, str, str]  # kind and unit, name, tag, value
PAGE = Path(__file__).resolve().parents[3] / "docs" / "telemetry.md"
CLASS, NUMBER, AS_SPAN = "*class name*", "*number*", "*as the span*"
CAPTURE = transcript_to_capture([user(), *REPLY], DETAILS)


class Coded(Exception):
    """Carries a code of ours."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def raising(error: BaseException) -> Callable[..., Any]:
    def does(*_: Any, **__: Any) -> Any:
        raise error

    return does


class BrokenStore(InMemoryReasonletStore):
    def __init__(self, search: Callable[..., Any]) -> None:
        super().__init__()
        self._search = search

    async def search(self, search: Any) -> Any:
        found = self._search(search)
        return await found if asyncio.iscoroutine(found) else found


async def attempt(call: Any) -> None:
    try:
        await call
    except Exception as error:  # noqa: F841
        return


async def cancelled(start: Callable[[Callable[..., Any]], Any]) -> None:
    """Cancel what `start` begins as soon as the part it is given was asked."""
    asked = asyncio.Event()

    async def hangs(*_: Any, **__: Any) -> Any:
        asked.set()
        await asyncio.Event().wait()

    running = asyncio.ensure_future(start(hangs))
    await asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def recalls() -> None:
    memory = ReasonletMemory(embed)
    await remember(memory, REPLY)
    await memory.recall(QUESTION, scope=SCOPE)
    await attempt(memory.recall(None, scope=SCOPE))  # type: ignore[arg-type]
    faults = [*(raising(Coded(code)) for code in CODES), raising(OSError()), lambda _: ["x"]]
    for fault in faults:
        await attempt(ReasonletMemory(embed, BrokenStore(fault)).recall(QUESTION, scope=SCOPE))
    clockless = ReasonletMemory(embed, clock=raising(OSError()))
    await attempt(clockless.recall(QUESTION, scope=SCOPE))
    await cancelled(lambda part: ReasonletMemory(part).recall(QUESTION, scope=SCOPE))


async def advice() -> None:
    parts: dict[str, list[Callable[..., Any]]] = {
        "evaluator": [
            lambda q, a: Judgement(success=True),
            raising(OSError()),
            raising(ReasonletUnavailableError("evaluator")),
            lambda q, a: None,
        ],
        "guard": [
            lambda capture: GuardVerdict.allow(),
            lambda capture: GuardVerdict.block("x"),
            raising(OSError()),
            lambda capture: None,
        ],
    }
    for name, answers in parts.items():
        for answer in answers:
            await attempt(ReasonletMemory(embed, **{name: answer}).remember(CAPTURE))  # type: ignore[arg-type]
        await cancelled(lambda part, n=name: ReasonletMemory(embed, **{n: part}).remember(CAPTURE))


async def chats() -> None:
    memory = ReasonletMemory(embed)
    async with CaptureQueue(memory) as queue:
        pending, nothing = [calls(call("a"))], said("No")
        for messages, reply, scope in (
            ([user()], REPLY, None),  # no_scope
            ([user()], REPLY, SCOPE),  # empty, remembered
            ([user(), said("So")], nothing, SCOPE),  # continuation, no_tool_calls
            ([said("So")], nothing, SCOPE),  # no_question
            ([user()], pending, SCOPE),  # pending_tool_calls
            ([user()], 7, SCOPE),  # exception
        ):
            await ReasonletChat(Model([reply]), memory, queue=queue)(messages, scope=scope)
        await queue.join()
        await ReasonletChat(Model(), memory, queue=queue)([user()], scope=SCOPE)  # injected
    queue.offer(CAPTURE)  # dropped_shutdown
    faults = [
        *(raising(Coded(code)) for code in CODES),
        raising(OSError()),
        raising(TimeoutError()),
    ]
    for fault in faults:
        broken = OtherMemory(fault)
        async with CaptureQueue(broken, capacity=1) as small:
            chat = ReasonletChat(Model(), broken, queue=small, options=ChatOptions(SCOPE))
            await asyncio.gather(chat([user()]), chat([user()]))  # dropped_full
    options = ChatOptions(SCOPE, capture=False, recall_timeout=0.001)
    hanging = OtherMemory(asyncio.Event().wait)
    await ReasonletChat(Model(), hanging, options=options)([user()])  # timeout


@pytest.fixture
def everything(emitted: Callable[[], Emitted]) -> Emitted:
    async def main() -> None:
        await recalls()
        await advice()
        await chats()

    asyncio.run(main())
    return emitted()


def _value(tag: str, value: object) -> str:
    if isinstance(value, int):
        return NUMBER
    return CLASS if tag == "error.type" and value not in CODES else f"`{value}`"


def _told(emitted: Emitted) -> Iterator[Row]:
    for span in emitted.spans:
        for tag, value in (span.attributes or {}).items():
            yield "Span", span.name, tag, _value(tag, value)
    for name, unit, tags in emitted.points:
        kind = "Counter" if name in COUNTERS else "Histogram"
        if not tags:
            yield f"{kind} {unit}", name, "", ""
        for tag, value in tags.items():
            of_span = kind == "Histogram" and tag in ("outcome", "error.type")
            yield f"{kind} {unit}", name, tag, AS_SPAN if of_span else _value(tag, value)


COUNTERS = ("mnemosyne.chat.recalls", "mnemosyne.capture.queue")


def _page() -> Iterator[Row]:
    text = PAGE.read_text(encoding="utf-8")
    for section in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        name = section[1 : section.index("`", 1)]
        kind = re.search(r"^(Span|Counter|Histogram)(?:, unit `(.+?)`)?\.", section, re.MULTILINE)
        assert kind is not None, name
        what = " ".join(part for part in kind.groups() if part)
        rows = re.findall(r"^\| `(.+?)` \| (.+?) \|", section, re.MULTILINE)
        yield from ((what, name, tag, value) for tag, value in rows)
        if not rows:
            yield what, name, "", ""


def test_page_when_compared_with_what_is_emitted_then_every_name_tag_and_value_is_there(
    everything: Emitted,
) -> None:
    assert sorted(set(_told(everything)) - set(_page())) == []
    assert sorted(set(_page()) - set(_told(everything))) == []


def test_durations_when_recorded_then_their_tags_are_those_of_the_spans(
    everything: Emitted,
) -> None:
    spans = {
        (f"{span.name}.duration", (span.attributes or {}).get("outcome"),
         (span.attributes or {}).get("error.type"))
        for span in everything.spans
    }  # fmt: skip
    points = {
        (name, tags.get("outcome"), tags.get("error.type"))
        for name, _, tags in everything.points
        if name.endswith(".duration")
    }
    assert spans == points


def test_spans_when_they_end_in_an_error_then_their_status_says_so_without_words(
    everything: Emitted,
) -> None:
    for span in everything.spans:
        failed = "error.type" in (span.attributes or {})
        assert span.status.status_code is (StatusCode.ERROR if failed else StatusCode.UNSET)
        assert span.status.description is None
        assert span.events == ()


def test_scope_when_anything_is_emitted_then_it_is_the_librarys_name(everything: Emitted) -> None:
    assert {span.instrumentation_scope.name for span in everything.spans} == {"rankblend"}


def test_recall_when_it_ends_then_candidates_and_returned_are_counted(
    emitted: Callable[[], Emitted],
) -> None:
    async def main() -> None:
        memory = ReasonletMemory(embed)
        await remember(memory, REPLY, REPLY, REPLY)
        await memory.recall(QUESTION, scope=SCOPE, top=2)

    asyncio.run(main())
    (span,) = emitted().spans
    assert dict(span.attributes or {}) == {
        "outcome": "success",
        "mnemosyne.recall.candidates": 3,
        "mnemosyne.recall.returned": 2,
    }


def test_everything_when_opentelemetry_is_not_installed_then_it_works_and_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    telemetry._opentelemetry.cache_clear()
    try:
        EventCounter("name", "{unit}", "What.").add("outcome", error_type="x")
        operation = Operation("name", "What.", lambda error: ("exception", "x"))
        with operation.observe() as observed:
            observed.counts["size"] = 1
        with pytest.raises(OSError, match="passes"), operation.observe():
            raise OSError("passes")
    finally:
        telemetry._opentelemetry.cache_clear()
