"""What goes wrong elsewhere with scopes: forgotten on read, resolved wrongly, or only a hint."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import rankblend as rb
from rankblend.errors import InvalidArgumentError

Open = Callable[..., rb.Memory]
Recipe = Callable[[str], rb.RankingProfile]
TENANT, USER, OTHER = "tenant:acme", "tenant:acme/user:7", "tenant:acme/user:8"


@pytest.mark.parametrize(
    "call",
    ["remember", "recall", "arecall", "get", "forget", "reinforce", "link", "link_many", "unlink",
     "to_networkx", "add_networkx"],
)  # fmt: skip
def test_scope_when_a_call_concerns_memories_then_it_cannot_be_left_out(call: str) -> None:
    """Not as in moorcheh-ai/memanto#1891: a missing id fans out to every tenant."""
    scope = inspect.signature(getattr(rb.Memory, call)).parameters["scope"]
    assert scope.default is inspect.Parameter.empty
    assert scope.kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("scope", [None, "", " ", [], "*", "tenant:", "tenant:*/", [None], "acme"])
def test_scope_when_it_is_empty_then_refused_and_never_everything(opened: Open, scope: Any) -> None:
    """Not as in moorcheh-ai/memanto#1891 and joshuaswarren/remnic#703: nothing falls back anywhere."""
    memory = opened()
    memory.remember("refund", scope=USER)
    with pytest.raises((InvalidArgumentError, rb.errors.InvalidScopeError)):
        memory.recall("refund", scope=scope)


def test_scope_when_written_then_reading_from_elsewhere_finds_nothing(opened: Open) -> None:
    """Not as in MervinPraison/PraisonAI#4818: the user's id is dropped on the way to the search."""
    memory = opened({})
    memory.remember("refund", scope=USER, id="a")
    memory.remember("refund", scope=OTHER, id="b")
    for profile in rb.profile_names():
        assert set(memory.recall("refund", scope=USER, profile=profile).ids) <= {"a"}
        assert set(memory.recall("refund", scope=TENANT, profile=profile).ids) == set()


def test_ancestors_when_nobody_names_them_then_they_are_seen_all_the_same(opened: Open) -> None:
    """Not as in susomejias/rembric#299: the global scope is invisible to automatic recall; as
    anthropics/claude-code#81808 and akitaonrails/ai-memory#154 ask, what is above is inherited."""
    memory = opened()
    memory.remember("refund policy of the firm", scope=TENANT, id="firm")
    memory.remember("refund wish of the user", scope=USER, id="user")
    memory.remember("refund of the project", scope="project:x", id="project")
    assert set(memory.recall("refund", scope=f"{USER}/session:9").ids) == {"firm", "user"}
    both = memory.recall("refund", scope=[f"{USER}/session:9", "project:x"])
    assert set(both.ids) == {"firm", "user", "project"}


@pytest.mark.parametrize("mode", ["off", "blend", "backfill"])
def test_scope_when_blending_is_on_or_off_then_the_same_memories_are_visible(
    opened: Open, recipe: Recipe, mode: str
) -> None:
    """Scope authorizes and never merely ranks, as dcellison/kai#517 puts it."""
    memory = opened()
    for scope in (TENANT, USER, OTHER, "tenant:acme-corp", f"{USER}/session:9"):
        memory.remember(f"refund {scope}", scope=scope, id=scope)
    profile = recipe(
        f'[score]\ncompose = "weighted_mean"\nweights = {{ keyword = 1 }}\n[scope]\nmode = "{mode}"\n'
    )
    assert set(memory.recall("refund", scope=USER, profile=profile).ids) == {TENANT, USER}


@pytest.mark.parametrize("mode", ["blend", "backfill"])
def test_discount_when_a_cosine_is_negative_then_it_promotes_nobody(
    opened: Open, recipe: Recipe, mode: str
) -> None:
    """Not as in majiayu000/harness#1778: a negative cosine times .8 is higher than before."""
    memory = opened(
        {"refund": (1, 0, 0, 0), "against": (-0.9, 0.1, 0, 0), "away": (-0.9, 0.2, 0, 0)}
    )
    memory.remember("against", scope=TENANT, id="a farther")
    memory.remember("away", scope=USER, id="b nearer")
    profile = recipe(
        f'[score]\ncompose = "weighted_mean"\nweights = {{ similarity = 1 }}\n[scope]\nmode = "{mode}"\n'
    )
    assert memory.recall("refund", scope=USER, profile=profile).ids == ("b nearer", "a farther")
