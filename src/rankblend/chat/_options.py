"""The options of a chat pipeline."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from attrs import field, frozen

from rankblend.chat._messages import Message
from rankblend.chat._offer import describe_match
from rankblend.chat._transcript import is_failed_result
from rankblend.reasonlets import (
    MAX_REFERENCE,
    Checks,
    ReasonletMatch,
    read_duration,
    read_scope,
)
from rankblend.relevance import Scope


@frozen
class ChatOptions:
    """What a chat pipeline does with a call.

    Args:
        default_scope: Of calls that name none (a `Scope` or its text); None: such a call passes
            through untouched.
        recall: Recall a procedure for a new question and offer it to the model.
        capture: Hand finished calls to the capture queue.
        expose_find_procedure: Give the model a tool that looks procedures up.
        min_similarity: In [0, 1]: the cut-off of recalls; None: the memory's own.
        recall_timeout: How long a recall or a look-up is waited for (a duration, or seconds), > 0.
        source: Provenance of the captures, at most 200 code points.
        formatter: The text of the system message that offers a match.
        is_failed: Whether a tool message says that its call failed.

    Raises:
        ReasonletValidationError: All invalid options at once.
    """

    default_scope: Scope | None = field(default=None, converter=read_scope)
    recall: bool = field(default=True, kw_only=True)
    capture: bool = field(default=True, kw_only=True)
    expose_find_procedure: bool = field(default=False, kw_only=True)
    min_similarity: float | None = field(default=None, kw_only=True)
    recall_timeout: timedelta = field(
        default=timedelta(seconds=2), converter=read_duration, kw_only=True
    )
    source: str = field(default="chat", kw_only=True)
    formatter: Callable[[ReasonletMatch], str] = field(default=describe_match, kw_only=True)
    is_failed: Callable[[Message], bool] = field(default=is_failed_result, kw_only=True)

    def __attrs_post_init__(self) -> None:
        checks = Checks()
        self._check(checks)
        checks.raise_if_any()

    def _check(self, checks: Checks) -> None:
        if self.default_scope is not None:
            checks.scope("default_scope", self.default_scope)
        for name in ("recall", "capture", "expose_find_procedure"):
            checks.flag(name, getattr(self, name))
        checks.unit("min_similarity", self.min_similarity, optional=True)
        checks.duration("recall_timeout", self.recall_timeout)
        checks.text("source", self.source, limit=MAX_REFERENCE)
        for name in ("formatter", "is_failed"):
            checks.callable(name, getattr(self, name))
