"""Messages of LangChain in the shape a chat pipeline reads."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

__all__ = ["plain_message", "role_of"]

_ROLES = ((HumanMessage, "user"), (SystemMessage, "system"), (ToolMessage, "tool"))


def plain_message(message: AnyMessage | BaseMessage) -> dict[str, Any]:
    """What a pipeline reads of a message: role, text, and the calls or the result in it.

    Example:
        >>> plain_message(ToolMessage("no such order", tool_call_id="c", status="error"))["status"]
        'error'
    """
    plain: dict[str, Any] = {"role": role_of(message), "content": str(message.text)}
    if isinstance(message, ToolMessage):
        plain |= {"tool_call_id": message.tool_call_id, "status": message.status}
    elif isinstance(message, AIMessage) and message.tool_calls:
        plain["tool_calls"] = [
            {
                "id": call["id"] or "",
                "type": "function",
                "function": {"name": call["name"], "arguments": call["args"]},
            }
            for call in message.tool_calls
        ]
    return plain


def role_of(message: BaseMessage) -> str:
    """Its role in the shape a pipeline reads."""
    if isinstance(message, AIMessage):
        return "assistant"
    if isinstance(message, ChatMessage):
        return message.role
    return next((role for kind, role in _ROLES if isinstance(message, kind)), message.type)
