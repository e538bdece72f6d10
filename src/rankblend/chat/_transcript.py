"""From the messages of an answered question to what a procedural memory remembers of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise

from attrs import define, field, frozen

from rankblend.chat._messages import (
    Message,
    ToolCall,
    has_text,
    message_problems,
    text_of,
    tool_calls_of,
)
from rankblend.errors import NoQuestionError, NoToolCallsError
from rankblend.reasonlets import (
    Capture,
    Edge,
    Graph,
    Node,
    Outcome,
    Provenance,
    raise_invalid,
    read_scope,
)
from rankblend.relevance import Scope

ARGUMENTS = "mnemosyne.arguments"
"""Property of a node: the sorted names of the arguments of its call."""

_ERROR_FIRST = re.compile(r'\{\s*"error"\s*:')


@frozen
class CaptureDetails:
    """What a transcript does not say about itself.

    Args:
        scope: Where the capture belongs; a `Scope` or its text.
        provenance: Where it comes from.
        outcome: How the run went, as the agent sees it.
        name: For people, and shown to others of the scope; None: the question's first line.
        intent: The kind of problem; None: the extractor's, else ``unspecified``.
        parent_id: The procedure that the run followed or improved on.
    """

    scope: Scope = field(converter=read_scope)
    provenance: Provenance
    outcome: Outcome
    name: str | None = field(default=None, repr=False, kw_only=True)
    intent: str | None = field(default=None, kw_only=True)
    parent_id: str | None = field(default=None, kw_only=True)


def is_failed_result(message: Message) -> bool:
    """Whether the result of a tool call says that the call failed.

    It is flagged (``is_error`` true, or ``status`` ``"error"``), it is a JSON object whose first
    key is ``error``, or it begins with ``Error``.

    Example:
        >>> is_failed_result({"role": "tool", "content": '{"error": "no such order"}'})
        True
        >>> is_failed_result({"role": "tool", "content": '{"id": 7, "error": null}'})
        False
    """
    if message.get("is_error") is True or message.get("status") == "error":
        return True
    text = text_of(message).lstrip()
    if text.startswith("Error"):
        return True
    if not _ERROR_FIRST.match(text):  # results may be long: only what may be one is parsed
        return False
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def transcript_to_capture(
    messages: Sequence[Message],
    details: CaptureDetails,
    *,
    is_failed: Callable[[Message], bool] = is_failed_result,
    ignored_tools: Collection[str] = (),
) -> Capture:
    """Make a capture of one answered question.

    The question is the last user message with text, the answer the last assistant text after it.
    The graph is the shape of the run: a ``tool`` node for each successful call after the question,
    in order, with the names of its arguments and never their values, so that a rerun with other
    inputs has the same graph:

    - A failed call is left out. Its place stays open while it is retried: a call of the same tool in
      the very next message with calls takes it.
    - Calls made together, in one message, are sorted by tool and argument names.
    - Equal steps in a row are one step.

    Calls without a result are left out, and so are results without a call.

    Args:
        messages: In the shape of OpenAI's chat API. Of a conversation, only the last question is
            captured; for the others cut it before each user message.
        details: Scope, provenance, outcome, and optionally name, intent and parent.
        is_failed: Whether a tool message says that its call failed.
        ignored_tools: Calls of these are as if they had not been made.

    Raises:
        ReasonletValidationError: Everything that is wrong with the shape of the messages.
        NoQuestionError: No user message has text.
        NoToolCallsError: No call after the question succeeded.

    Example:
        >>> call = {"name": "orders.get", "arguments": '{"id": 7}'}
        >>> run = [
        ...     {"role": "user", "content": "Where is order 7?"},
        ...     {"role": "assistant", "tool_calls": [{"id": "c", "function": call}]},
        ...     {"role": "tool", "tool_call_id": "c", "content": "on its way"},
        ... ]
        >>> details = CaptureDetails("tenant:acme", Provenance("agent"), Outcome(success=True))
        >>> transcript_to_capture(run, details).graph.nodes[0].plain()["properties"]
        {'mnemosyne.arguments': ['id']}
    """
    problems = list(message_problems(messages))
    if not isinstance(details, CaptureDetails):
        problems.append(f"details: expected CaptureDetails, got {type(details).__name__}")
    raise_invalid(problems)
    asked = next(
        (at for at in reversed(range(len(messages))) if has_text(messages[at], "user")), None
    )
    if asked is None:
        raise NoQuestionError
    after = messages[asked + 1 :]
    graph = _graph(_steps(_trips(after, ignored_tools), is_failed))
    answers = (text_of(message) for message in reversed(after) if has_text(message, "assistant"))
    return Capture(
        details.scope,
        text_of(messages[asked]),
        graph,
        details.outcome,
        details.provenance,
        details.name,
        details.intent,
        details.parent_id,
        next(answers, None),
    )


def ends_in_unanswered_call(messages: Sequence[Message]) -> bool:
    """Whether the last thing that was said is a tool call that nobody has answered yet.

    Raises:
        ReasonletValidationError: Everything that is wrong with the shape of the messages.
    """
    raise_invalid(message_problems(messages))
    trips = _trips(messages, ())
    if not trips or len(trips[-1].results) == len(trips[-1].calls):
        return False
    return all(message.get("role") == "tool" for message in messages[trips[-1].at + 1 :])


def name_of(graph: Graph) -> str:
    """A name that repeats nothing a user said: the tools of the steps, joined by `` → ``."""
    return " → ".join(node.tool or node.type for node in graph.nodes)


@define
class _Trip:
    """The calls of one message, and the results that came for them, by position."""

    at: int
    calls: list[ToolCall]
    results: dict[int, Message] = field(factory=dict)

    def take(self, result: Message) -> bool:
        """Keep a result, when it is for a call of this message that has none."""
        for at, call in enumerate(self.calls):
            if at not in self.results and call.id == result.get("tool_call_id"):
                self.results[at] = result
                return True
        return False


def _trips(messages: Sequence[Message], ignored: Collection[str]) -> list[_Trip]:
    trips: list[_Trip] = []
    for at, message in enumerate(messages):
        if message.get("role") == "tool":
            # Some models use an id again: a result is for the latest call that waits for it.
            any(trip.take(message) for trip in reversed(trips))
        calls = [call for call in tool_calls_of(message) if call.tool not in ignored]
        if calls:
            trips.append(_Trip(at, calls))
    return trips


_Step = tuple[str, tuple[str, ...]]


def _steps(trips: Sequence[_Trip], is_failed: Callable[[Message], bool]) -> list[_Step]:
    """The tools and argument names of the successful calls, as `transcript_to_capture` orders."""
    done: list[list[_Step]] = [[] for _ in trips]
    open_places: dict[str, list[int]] = {}
    for number, trip in enumerate(trips):
        retried, open_places = open_places, {}
        for at, call in enumerate(trip.calls):
            waiting = retried.get(call.tool)
            place = waiting.pop(0) if waiting else number
            result = trip.results.get(at)
            if result is None:
                continue
            if is_failed(result):
                open_places.setdefault(call.tool, []).append(place)
            else:
                done[place].append((call.tool, call.arguments))
    steps: list[_Step] = []
    for step in (step for together in done for step in sorted(together)):
        if not steps or steps[-1] != step:
            steps.append(step)
    return steps


def _graph(steps: Sequence[_Step]) -> Graph:
    if not steps:
        raise NoToolCallsError
    nodes = [
        Node(f"step-{number}", "tool", tool=tool, properties={ARGUMENTS: list(arguments)})
        for number, (tool, arguments) in enumerate(steps, start=1)
    ]
    edges = [Edge(before.id, after.id) for before, after in pairwise(nodes)]
    return Graph(nodes, edges)
