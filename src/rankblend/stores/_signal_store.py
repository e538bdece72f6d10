"""Your own signals as a store: a function from ids to values in [0, 1]."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rankblend.errors import InvalidArgumentError, MemoryContractError
from rankblend.relevance import Evidence, checked_signal, is_identifier, register_evidence
from rankblend.stores._protocol import Observation, Reason, StoreQuery


@runtime_checkable
class SupportsPresent(Protocol):
    """What has signals: ``present()`` gives those that are present, by name."""

    def present(self) -> Mapping[str, float]:
        """The present signals."""
        ...


Signals = SupportsPresent | Mapping[str, float | None]


class SignalStore:
    """A store that proposes nothing and observes what a function says about memories.

    The function is given ids and answers ``{id: RelevanceSignals}`` (or plain mappings of names to
    values). It may leave ids out (absent, reason ``unknown``) and signals out (absent, ``not
    applicable``); what it says about ids it was not asked about is ignored. Each id is asked for
    once a call.

    It holds no memories, so it knows no scopes: a recall shows it only ids that are visible to the
    query, and a function that is told an id cannot tell two memories of one id at two scopes apart.
    Where that matters, write a store.

    Args:
        name: An identifier, unique among the stores of one memory.
        function: From a sequence of ids to signals by id. What it says about one id must not depend
            on the others. What it raises passes through.
        emits: The signals it may give, at least one. They are registered as evidence of unit
            ``signal``: in [0, 1], used with the curve ``identity``.

    Raises:
        InvalidArgumentError: A name that is no identifier, no or repeated signals, or a signal
            whose name already stands for evidence with another unit, e.g. ``cosine``.

    Example:
        >>> store = SignalStore("votes", lambda ids: {"n1": {"liked": 0.9}}, emits=("liked",))
        >>> from rankblend.relevance import Scope
        >>> query = StoreQuery("refunds?", (Scope.parse("tenant:acme"),))
        >>> store.observe(query, ["n1", "n2"]).columns["liked"].tolist()
        [0.9, nan]
    """

    def __init__(
        self,
        name: str,
        function: Callable[[Sequence[str]], Mapping[str, Signals]],
        *,
        emits: Sequence[str],
    ) -> None:
        problems = []
        if not is_identifier(name):
            problems.append("name: expected letters, digits and _ (ASCII)")
        if not callable(function):
            problems.append(f"function: expected a callable, got {type(function).__name__}")
        if isinstance(emits, str):
            problems.append("emits: expected a sequence of names, got one name; put it in a tuple")
        elif not emits or len(set(emits)) != len(emits):
            problems.append("emits: expected at least one name, each once")
        elif not all(map(is_identifier, emits)):
            problems.append("emits: expected names of letters, digits and _ (ASCII)")
        if problems:
            raise InvalidArgumentError(problems)
        self.name = name
        self.emits: tuple[str, ...] = tuple(emits)
        self._function = function
        for signal in self.emits:
            register_evidence(Evidence(signal, "signal", 0.0, 1.0, meaning=f"signal of {name}"))

    def propose(
        self,
        query: StoreQuery,  # noqa: ARG002  (the contract names them; a function has no use for them)
        limit: int,  # noqa: ARG002
        *,
        level: int | None = None,  # noqa: ARG002
    ) -> Sequence[str]:
        """Nothing: it knows memories only by being asked."""
        return ()

    def observe(
        self,
        query: StoreQuery,  # noqa: ARG002
        ids: Sequence[str],
    ) -> Observation:
        """The function's values; float64, shape (n,), NaN where it has none.

        Raises:
            MemoryContractError: The function gave no mapping, or a signal that is not in ``emits``.
            InvalidSignalError: A value that is neither None nor a finite real in [0, 1].
        """
        asked = tuple(dict.fromkeys(ids))
        said = self._ask(asked) if asked else {}
        columns = {signal: np.full(len(ids), np.nan) for signal in self.emits}
        held = np.array([memory in said for memory in ids], dtype=np.bool_)
        for row, memory in enumerate(ids):
            for signal, value in said.get(memory, {}).items():
                columns[signal][row] = value
        return Observation(columns, {s: _reasons(column, held) for s, column in columns.items()})

    def close(self) -> None:
        """Nothing to release."""

    def _ask(self, ids: tuple[str, ...]) -> dict[str, dict[str, float]]:
        answer = self._function(ids)
        if not isinstance(answer, Mapping):
            raise MemoryContractError(
                f"store {self.name!r}: expected a mapping of ids to signals, "
                f"got {type(answer).__name__}"
            )
        return {memory: self._signals(answer[memory]) for memory in ids if memory in answer}

    def _signals(self, given: object) -> dict[str, float]:
        named = given.present() if isinstance(given, SupportsPresent) else given
        if not isinstance(named, Mapping):
            raise MemoryContractError(
                f"store {self.name!r}: expected RelevanceSignals or a mapping of names to values, "
                f"got {type(given).__name__}"
            )
        extra = [str(signal) for signal in named if signal not in self.emits]
        if extra:
            raise MemoryContractError(
                f"store {self.name!r}: emits {', '.join(self.emits)}, but gave "
                f"{', '.join(extra[:5])}; list it in emits"
            )
        return {
            signal: checked_signal(signal, value)
            for signal, value in named.items()
            if value is not None
        }


def _reasons(column: NDArray[np.float64], held: NDArray[np.bool_]) -> NDArray[np.int8]:
    absent = np.where(held, Reason.NOT_APPLICABLE, Reason.UNKNOWN)
    return np.where(np.isnan(column), absent, Reason.PRESENT).astype(np.int8)
