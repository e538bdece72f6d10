"""The arguments of a memory's calls: everything that is wrong, at once, before anything is done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

from rankblend.reasonlets.capture import Outcome, Provenance, id_problems, question_problems
from rankblend.reasonlets.checks import (
    MAX_INTENT,
    MAX_REFERENCE,
    bool_problems,
    read_duration,
    read_scope,
    scope_problems,
    text_problems,
    unit_problems,
)
from rankblend.reasonlets.errors import raise_invalid
from rankblend.reasonlets.options import MAX_TOP
from rankblend.reasonlets.reasonlet import Feedback
from rankblend.relevance.scope import Scope

__all__ = [
    "MAX_PAGE",
    "check_prune",
    "read_erasure",
    "read_feedback",
    "read_page",
    "read_place",
    "read_question",
    "read_run",
]

MAX_PAGE = 100


def read_question(
    question: object, scope: object, intent: object, top: object, min_similarity: object
) -> Scope:
    """The scope of a recall whose arguments are all valid.

    Raises:
        ReasonletValidationError: Everything that is wrong.
    """
    return _checked(
        scope,
        question_problems("question", question),
        text_problems("intent", intent, limit=MAX_INTENT, optional=True),
        _count_problems("top", top, 1, MAX_TOP, optional=True),
        unit_problems("min_similarity", min_similarity, optional=True),
    )


def read_run(
    scope: object,
    id: object,
    outcome: object,
    provenance: object,
    question: object,
    answer: object,
) -> Scope:
    """The scope of a run whose arguments are all valid; see `read_question`."""
    return _checked(
        scope,
        id_problems("id", id),
        _part_problems("outcome", outcome, Outcome),
        _part_problems("provenance", provenance, Provenance),
        question_problems("question", question, optional=True),
        text_problems("answer", answer, limit=None, optional=True, blank=True)
        if not isinstance(answer, str)
        else (),
    )


def read_feedback(scope: object, execution: object, feedback: Feedback) -> Scope:
    """The scope of feedback whose arguments are all valid; see `read_question`."""
    return _checked(scope, id_problems("execution", execution), feedback.validate())


def read_page(scope: object, limit: object, after: object) -> Scope:
    """The scope of a page whose arguments are all valid; see `read_question`."""
    return _checked(
        scope,
        _count_problems("limit", limit, 1, MAX_PAGE),
        id_problems("after", after, optional=True),
    )


def read_place(scope: object, id: object = "-") -> Scope:
    """The scope of a look-up by id; see `read_question`."""
    return _checked(scope, id_problems("id", id))


def read_erasure(scope: object, subject_id: object, purge: object) -> Scope:
    """The scope of an erasure whose arguments are all valid; see `read_question`."""
    return _checked(
        scope,
        text_problems("subject_id", subject_id, limit=MAX_REFERENCE),
        bool_problems("purge", purge),
    )


def check_prune(scope: object, older_than: object, keep: object) -> Scope | None:
    """The scope of a pruning whose arguments are all valid, None for all; see `read_question`."""
    problems: list[str] = []
    if older_than is None and keep is None:
        problems.append("older_than, keep: expected at least one of them")
    age = read_duration(older_than)
    if age is not None and not (isinstance(age, timedelta) and age > timedelta(0)):
        problems.append("older_than: expected a duration above 0")
    problems += _count_problems("keep", keep, 0, None, optional=True)
    if scope is None:
        raise_invalid(problems)
        return None
    return _checked(scope, problems)


def _checked(scope: object, *problems: Iterable[str]) -> Scope:
    read = read_scope(scope)
    raise_invalid([*scope_problems("scope", read), *(line for each in problems for line in each)])
    assert isinstance(read, Scope)
    return read


def _part_problems(name: str, value: object, kind: type[Outcome | Provenance]) -> Iterator[str]:
    if isinstance(value, kind):
        yield from (f"{name}.{problem}" for problem in value.validate())
    else:
        yield f"{name}: expected {kind.__name__}, got {type(value).__name__}"


def _count_problems(
    name: str, value: object, least: int, most: int | None, *, optional: bool = False
) -> Iterator[str]:
    if optional and value is None:
        return
    if type(value) is not int or value < least or (most is not None and value > most):
        span = f"from {least} to {most}" if most is not None else f"≥ {least}"
        yield f"{name}: expected an integer {span}"
