"""One chat call from the memory's side: what is offered before it, what is remembered after it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from attrs import define, evolve, field, frozen

from rankblend.chat._find_procedure import FIND_PROCEDURE, FindProcedure
from rankblend.chat._messages import Message, read_messages
from rankblend.chat._options import ChatOptions
from rankblend.chat._provided import Provided, SupportsOffer
from rankblend.chat._transcript import (
    CaptureDetails,
    ends_in_unanswered_call,
    name_of,
    transcript_to_capture,
)
from rankblend.errors import TranscriptError
from rankblend.reasonlets import Graph, Outcome, Provenance, ReasonletMatch
from rankblend.relevance import Scope
from rankblend.telemetry import EventCounter

RECALLS = EventCounter(
    "mnemosyne.chat.recalls", "{call}", "Chat calls by what came of recalling a procedure for them."
)
CAPTURES = EventCounter(
    "mnemosyne.capture.queue", "{capture}", "Finished chat calls by what came of remembering them."
)


@define(eq=False)
class Exchange:
    """What the memory does about one chat call.

    Attributes:
        messages: What the model is to be sent: the caller's own object, or a copy of it with one
            system message more.
        tool: ``find_procedure`` for the tools of the call; None when it gets none from here.
        injected: The match that was offered, or None.
        recorder: Captures the call; None when it is not to be captured.
        looked_up: What each look-up of the model found, in order.
    """

    messages: Any = field(repr=False)
    tool: FindProcedure | None = None
    injected: ReasonletMatch | None = None
    recorder: Recorder | None = None
    looked_up: list[Sequence[ReasonletMatch]] = field(factory=list, repr=False)

    def finish(self, response: Iterable[Message], *, duration: timedelta) -> None:
        """Hand a call that ended well to the capture queue. It never raises and never waits.

        Args:
            response: The messages that the call brought: tool calls, their results, the answer.
                They are read here, so that what goes wrong with it is counted, too.
            duration: How long the call took.
        """
        if self.recorder is None:
            return
        try:
            self.recorder.record(
                response, duration, injected=self.injected, looked_up=self.looked_up
            )
        except TranscriptError as error:
            CAPTURES.add("skipped", skip_reason=error.code)
        except Exception as error:
            CAPTURES.add("exception", error_type=type(error).__name__)


@frozen(eq=False)
class Recorder:
    """Makes a capture of a finished call and offers it to the queue.

    Attributes:
        queue: Takes the captures.
        options: Of the pipeline.
        scope: Of the call.
        subject_id: Whom it is about, or None.
        request: The messages that the call came with, as they were then.
    """

    queue: Provided[SupportsOffer]
    options: ChatOptions
    scope: Scope
    subject_id: str | None
    request: object = field(repr=False)

    def record(
        self,
        response: Iterable[Message],
        duration: timedelta,
        *,
        injected: ReasonletMatch | None,
        looked_up: Sequence[Sequence[ReasonletMatch]],
    ) -> None:
        """Capture the call, unless it ends in a tool call that nobody has answered.

        Raises:
            TranscriptError: It holds no procedure.
            Exception: It cannot be read, or the queue cannot be had.
        """
        transcript = (*read_messages(self.request), *response)
        if ends_in_unanswered_call(transcript):
            CAPTURES.add("skipped", skip_reason="pending_tool_calls")
            return
        provenance = Provenance(self.options.source, subject_id=self.subject_id)
        capture = transcript_to_capture(
            transcript,
            CaptureDetails(self.scope, provenance, Outcome(success=True, duration=duration)),
            is_failed=self.options.is_failed,
            ignored_tools=(FIND_PROCEDURE,),
        )
        parent = self._parent(capture.graph, injected, looked_up)
        name = name_of(capture.graph)
        self.queue.get().offer(evolve(capture, name=name, parent_id=parent))

    def _parent(
        self,
        graph: Graph,
        injected: ReasonletMatch | None,
        looked_up: Sequence[Sequence[ReasonletMatch]],
    ) -> str | None:
        """What was injected, else what was looked up and followed, else what was found first.

        A memory that blends scopes may offer what belongs to another one; that is no parent here.
        """
        offered = [] if injected is None else [injected]
        found = [match for matches in looked_up for match in matches]
        followed = [match for match in found if match.reasonlet.graph.is_same_procedure(graph)]
        candidates = (match.reasonlet for match in (*offered, *followed, *found))
        return next((each.id for each in candidates if each.scope == self.scope), None)
