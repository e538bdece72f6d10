"""Anthropic's SDK: its messages in the shape a chat pipeline and `transcript_to_capture` read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rankblend.chat import Message

__all__ = ["plain_messages"]


def plain_messages(messages: Iterable[Any]) -> list[Message]:
    """What a pipeline reads of the messages of a conversation, or of the SDK's ``Message`` objects.

    Text stays, a ``tool_use`` block becomes a tool call, and a ``tool_result`` block a tool message
    of its own, before the text of the user message it came in. Other blocks are left out.

    Example:
        >>> call = {"type": "tool_use", "id": "c", "name": "orders.get", "input": {"id": 7}}
        >>> plain_messages([{"role": "assistant", "content": [call]}])[0]["tool_calls"][0]["id"]
        'c'
    """
    return [plain for message in messages for plain in _plain(_mapping(message))]


def _plain(message: Mapping[str, Any]) -> Iterator[Message]:
    content = message["content"]
    if isinstance(content, str):
        yield {"role": message["role"], "content": content}
        return
    blocks = [_mapping(block) for block in content]
    for block in blocks:
        if block["type"] == "tool_result":
            yield {
                "role": "tool",
                "tool_call_id": block["tool_use_id"],
                "content": _text(block.get("content") or ""),
                "is_error": block.get("is_error") is True,
            }
    text = _text(blocks)
    calls = [
        {
            "id": block["id"],
            "type": "function",
            "function": {"name": block["name"], "arguments": block["input"]},
        }
        for block in blocks
        if block["type"] == "tool_use"
    ]
    if calls:
        yield {"role": message["role"], "content": text, "tool_calls": calls}
    elif text:
        yield {"role": message["role"], "content": text}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = map(_mapping, content)
    return "\n".join(block["text"] for block in blocks if block["type"] == "text")


def _mapping(value: Any) -> Mapping[str, Any]:
    """A mapping as it is; an object of the SDK as the mapping it stands for."""
    if isinstance(value, Mapping):
        return value
    dumped: Mapping[str, Any] = value.model_dump(mode="json")
    return dumped
