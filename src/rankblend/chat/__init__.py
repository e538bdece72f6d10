"""A procedural memory in a chat pipeline: recall before the model answers, capture after.

>>> import asyncio
>>> from rankblend.chat import CaptureQueue, ChatOptions, ReasonletChat
>>> from rankblend.reasonlets import ReasonletMemory
>>> async def answer(messages):  # with its tool loop inside
...     call = {"name": "orders.get", "arguments": '{"id": 7}'}
...     return [
...         {"role": "assistant", "tool_calls": [{"id": "c", "function": call}]},
...         {"role": "tool", "tool_call_id": "c", "content": "shipped"},
...         {"role": "assistant", "content": "It has left."},
...     ]
>>> async def main():
...     async with ReasonletMemory(lambda texts: [[1.0, 0.0] for _ in texts]) as memory:
...         async with CaptureQueue(memory) as queue:
...             options = ChatOptions(default_scope="tenant:acme")
...             chat = ReasonletChat(answer, memory, queue=queue, options=options)
...             await chat([{"role": "user", "content": "Where is order 7?"}])
...         matches = await memory.recall("Where is order 9?", scope="tenant:acme")
...         return matches[0].reasonlet.name
>>> asyncio.run(main())
'orders.get'
"""

from __future__ import annotations

from rankblend.chat._exchange import Exchange
from rankblend.chat._find_procedure import FindProcedure
from rankblend.chat._judge import ChatEvaluator
from rankblend.chat._messages import Message, leading_system_messages
from rankblend.chat._middleware import ReasonletChat
from rankblend.chat._offer import describe_match, matches_as_json, plain_match
from rankblend.chat._options import ChatOptions
from rankblend.chat._pipeline import ChatPipeline, is_bypassed
from rankblend.chat._provided import SupportsOffer, SupportsRecall
from rankblend.chat._queue import CaptureQueue
from rankblend.chat._streaming import ObservedStream, StreamedReply
from rankblend.chat._transcript import CaptureDetails, is_failed_result, transcript_to_capture
from rankblend.errors import NoQuestionError, NoToolCallsError, TranscriptError

__all__ = [
    "CaptureDetails",
    "CaptureQueue",
    "ChatEvaluator",
    "ChatOptions",
    "ChatPipeline",
    "Exchange",
    "FindProcedure",
    "Message",
    "NoQuestionError",
    "NoToolCallsError",
    "ObservedStream",
    "ReasonletChat",
    "StreamedReply",
    "TranscriptError",
    "describe_match",
    "is_failed_result",
    "matches_as_json",
    "transcript_to_capture",
]
