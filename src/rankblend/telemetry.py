"""Spans and metrics through the OpenTelemetry API where it is installed; nothing anywhere else.

Only the API is used: which spans and metrics are kept, and where they go, is for the program to
say. What is emitted are names, outcomes, class names of exceptions, durations and counts; an
exception is never recorded with its message or its traceback, which may hold what a user said.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any

from attrs import define, field, frozen

from rankblend.version import __version__

__all__ = ["ERROR_TYPE", "OUTCOME", "SKIP_REASON", "EventCounter", "Observation", "Operation"]

OUTCOME = "outcome"
SKIP_REASON = "mnemosyne.skip_reason"
ERROR_TYPE = "error.type"

_LIBRARY = "rankblend"


@cache
def _opentelemetry() -> Any:
    """The tracer, the meter and the span status of a failure; None without the API."""
    try:
        from opentelemetry import metrics, trace
    except ImportError:
        return None
    return (
        trace.get_tracer(_LIBRARY, __version__),
        metrics.get_meter(_LIBRARY, __version__),
        trace.Status(trace.StatusCode.ERROR),
    )


def _tags(outcome: str, skip_reason: str | None, error_type: str | None) -> dict[str, str]:
    found = {OUTCOME: outcome, SKIP_REASON: skip_reason, ERROR_TYPE: error_type}
    return {name: value for name, value in found.items() if value is not None}


@frozen(slots=False)
class EventCounter:
    """A metric that counts events by how they ended.

    Args:
        name: Of the metric.
        unit: In braces, as OpenTelemetry writes what is counted.
        description: One sentence.
    """

    name: str
    unit: str
    description: str

    def add(
        self, outcome: str, *, skip_reason: str | None = None, error_type: str | None = None
    ) -> None:
        """Count one event."""
        if self._counter is not None:
            self._counter.add(1, _tags(outcome, skip_reason, error_type))

    @cached_property
    def _counter(self) -> Any:
        api = _opentelemetry()
        return api and api[1].create_counter(self.name, self.unit, self.description)


@define
class Observation:
    """What is told about an operation while it runs.

    Attributes:
        outcome: How it ended, when it raises nothing.
        error_type: What went wrong, when it raises nothing and still something did.
        counts: Sizes by the names the operation declared.
    """

    outcome: str = "success"
    error_type: str | None = None
    counts: dict[str, int] = field(factory=dict)


@frozen(slots=False)
class Operation:
    """A span and a histogram of durations for something that takes time.

    Args:
        name: Of the span; the metrics are called after it, ``<name>.duration`` in seconds.
        description: One sentence.
        explain: Outcome and error type of an exception it raised.
        counts: Name and description of sizes that it tells: an attribute of the span, and a
            histogram ``<name>.<count>``.
        unit: Of these counts, in braces.
    """

    name: str
    description: str
    explain: Callable[[Exception], tuple[str, str]]
    counts: tuple[tuple[str, str], ...] = ()
    unit: str = "{item}"

    @contextmanager
    def observe(self) -> Iterator[Observation]:
        """Span and measure what happens inside; exceptions pass."""
        observation = Observation()
        api = _opentelemetry()
        if api is None:
            yield observation
            return
        tracer, _, failed = api
        start = time.perf_counter()
        with tracer.start_as_current_span(
            self.name, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield observation
            except Exception as error:
                observation.outcome, observation.error_type = self.explain(error)
                raise
            except asyncio.CancelledError:
                observation.outcome = "cancelled"
                raise
            finally:
                tags = _tags(observation.outcome, None, observation.error_type)
                self._duration.record(time.perf_counter() - start, tags)
                for name, count in observation.counts.items():
                    self._sizes[name].record(count)
                    span.set_attribute(f"{self.name}.{name}", count)
                span.set_attributes(tags)
                if observation.error_type is not None:
                    span.set_status(failed)

    @cached_property
    def _duration(self) -> Any:
        meter = _opentelemetry()[1]
        return meter.create_histogram(f"{self.name}.duration", "s", self.description)

    @cached_property
    def _sizes(self) -> dict[str, Any]:
        meter = _opentelemetry()[1]
        return {
            name: meter.create_histogram(f"{self.name}.{name}", self.unit, description)
            for name, description in self.counts
        }
