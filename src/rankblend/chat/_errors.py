"""Why a transcript cannot be remembered: codes of the procedural memory, without its words."""

from __future__ import annotations

from rankblend.reasonlets import ReasonletError


class TranscriptError(ReasonletError, ValueError):
    """A transcript holds no procedure; nothing is wrong with it."""


class NoQuestionError(TranscriptError):
    """No message of a user has text."""

    code = "no_question"

    def __init__(self) -> None:
        super().__init__("the transcript has no user message with text")


class NoToolCallsError(TranscriptError):
    """No tool call after the question succeeded."""

    code = "no_tool_calls"

    def __init__(self) -> None:
        super().__init__("the transcript has no successful tool call after the question")
