"""Messages of Anthropic's SDK, as a chat pipeline reads them."""

from __future__ import annotations

from typing import Any

import anthropic
from chat_world import DETAILS, steps

from rankblend.adapters.anthropic import plain_messages
from rankblend.chat import transcript_to_capture


def _answer(*content: dict[str, Any]) -> anthropic.types.Message:
    return anthropic.types.Message.model_validate(
        {
            "id": "m", "type": "message", "role": "assistant", "model": "claude", "content": content,
            "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    )  # fmt: skip


def _use(tool: str, /, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"use-{tool}", "name": tool, "input": arguments}


def _result(tool: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"use-{tool}", "content": content, **more}


def test_conversation_when_captured_then_calls_results_and_failures_are_read() -> None:
    text = [{"type": "text", "text": "paid"}]
    conversation = [
        {"role": "user", "content": "Refund order 7"},
        _answer({"type": "text", "text": "I look."}, _use("look_up", order=7), _use("guess")),
        {
            "role": "user",
            "content": [_result("look_up", text), _result("guess", "no", is_error=True)],
        },
        _answer(_use("refund", order=7, amount=3)),
        {"role": "user", "content": [_result("refund", "done")]},
        _answer({"type": "text", "text": "Refunded."}),
    ]
    capture = transcript_to_capture(plain_messages(conversation), DETAILS)
    assert steps(capture) == ["look_up(order)", "refund(amount, order)"]
    assert (capture.question, capture.answer) == ("Refund order 7", "Refunded.")


def test_message_when_it_answers_and_asks_then_the_results_come_before_the_text() -> None:
    said = {"role": "user", "content": [_result("a", None), {"type": "text", "text": "And b?"}]}
    first, second = plain_messages([said])
    assert (first["role"], first["content"], first["is_error"]) == ("tool", "", False)
    assert second == {"role": "user", "content": "And b?"}


def test_message_when_it_has_neither_text_nor_calls_then_it_is_left_out() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "http://x"}}
    assert plain_messages([{"role": "user", "content": [image]}]) == []
