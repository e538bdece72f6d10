"""Chat messages in the shape of OpenAI's API: what they say and which tools they call.

A message is a mapping with a ``role`` (``system``, ``developer``, ``user``, ``assistant``,
``tool``), ``content`` (text, a list of parts, or None), and, by role, ``tool_calls`` or
``tool_call_id``. Nothing here keeps the value of an argument.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from attrs import frozen

from rankblend.embedders import is_blank
from rankblend.reasonlets import ReasonletValidationError

Message = Mapping[str, Any]

_SYSTEM_ROLES = frozenset({"system", "developer"})


@frozen
class ToolCall:
    """A call a model asked for.

    Attributes:
        id: What its result answers to.
        tool: The tool's name.
        arguments: The names of its arguments, sorted; empty when they are no JSON object.
    """

    id: str
    tool: str
    arguments: tuple[str, ...]


def text_of(message: Message) -> str:
    """What a message says: its text parts on lines of their own; empty when it has none.

    Example:
        >>> text_of({"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image"}]})
        'Hi'
    """
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not _is_list(content):
        return ""
    texts = (
        part.get("text") if isinstance(part, Mapping) and part.get("type") == "text" else part
        for part in content
    )
    return "\n".join(text for text in texts if isinstance(text, str))


def has_text(message: Message, role: str) -> bool:
    """Whether it is a message of this role that says something."""
    return message.get("role") == role and not is_blank(text_of(message))


def new_question(messages: object) -> str | None:
    """The question of a call that asks one: its last message is a user's and has text.

    Anything else, a list that ends in tool results above all, continues an earlier question.
    """
    if not _is_list(messages) or not messages:
        return None
    last = messages[-1]
    return text_of(last) if isinstance(last, Mapping) and has_text(last, "user") else None


def leading_system_messages(messages: Sequence[Message]) -> int:
    """How many messages there are before the first that is neither system nor developer."""
    for at, message in enumerate(messages):
        if message.get("role") not in _SYSTEM_ROLES:
            return at
    return len(messages)


def tool_calls_of(message: Message) -> tuple[ToolCall, ...]:
    """The tool calls of a valid message, in its order."""
    calls = message.get("tool_calls") or ()
    return tuple(_call(call) for call in calls) if message.get("role") == "assistant" else ()


def read_messages(messages: object) -> tuple[Message, ...]:
    """Messages as a chat callable takes and returns them: one message, or several.

    Raises:
        ReasonletValidationError: It is neither.
    """
    if isinstance(messages, Mapping):
        return (messages,)
    if not _is_list(messages):
        kind = type(messages).__name__
        raise ReasonletValidationError([f"messages: expected one or several, got {kind}"])
    return tuple(messages)


def message_problems(messages: object) -> Iterator[str]:
    """What is wrong with the shape of messages: where and what was expected, never a value."""
    if not _is_list(messages):
        yield f"messages: expected a sequence of messages, got {type(messages).__name__}"
        return
    for at, message in enumerate(messages):
        where = f"messages[{at}]"
        if not isinstance(message, Mapping):
            yield f"{where}: expected a mapping, got {type(message).__name__}"
            continue
        yield from _text_problems(f"{where}.role", message.get("role"))
        content = message.get("content")
        if content is not None and not isinstance(content, str) and not _is_list(content):
            kind = type(content).__name__
            yield f"{where}.content: expected text, a list of parts or None, got {kind}"
        if message.get("role") == "tool":
            yield from _text_problems(f"{where}.tool_call_id", message.get("tool_call_id"))
        elif message.get("role") == "assistant":
            yield from _call_problems(f"{where}.tool_calls", message.get("tool_calls"))


def _call_problems(where: str, calls: object) -> Iterator[str]:
    if calls is None:
        return
    if not _is_list(calls):
        yield f"{where}: expected a list of calls or None, got {type(calls).__name__}"
        return
    for at, call in enumerate(calls):
        if not isinstance(call, Mapping):
            yield f"{where}[{at}]: expected a mapping, got {type(call).__name__}"
            continue
        yield from _text_problems(f"{where}[{at}].id", call.get("id"))
        kind = _kind(call)
        asked = call.get(kind)
        if not isinstance(asked, Mapping):
            yield f"{where}[{at}].{kind}: expected a mapping, got {type(asked).__name__}"
        else:
            yield from _text_problems(f"{where}[{at}].{kind}.name", asked.get("name"))


def _text_problems(where: str, value: object) -> Iterable[str]:
    if not isinstance(value, str):
        yield f"{where}: expected text, got {type(value).__name__}"


def _call(call: Mapping[str, Any]) -> ToolCall:
    asked = call[_kind(call)]
    return ToolCall(call["id"], asked["name"], _argument_names(asked.get("arguments")))


def _kind(call: Mapping[str, Any]) -> str:
    """A custom tool takes free text: it has an input and no arguments."""
    return "custom" if call.get("type") == "custom" else "function"


def _argument_names(arguments: object) -> tuple[str, ...]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return ()
    if not isinstance(arguments, Mapping):
        return ()
    return tuple(sorted(name for name in arguments if isinstance(name, str)))


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)
