"""What goes wrong elsewhere with candidates: filtered too late, deleted by halves, or doubled."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import rankblend as rb

Open = Callable[..., rb.Memory]
SCOPE, USER = "tenant:acme", "tenant:acme/user:7"


def test_limit_when_five_copies_of_one_fact_exist_then_it_takes_one_place(opened: Open) -> None:
    """Not as in MystenLabs/MemWal#682 (copies fill the limit) and NousResearch/hermes-agent#89145
    (39 to 52 % of the rows)."""
    memory = opened()
    for n in range(5):
        text = ("The refund is approved", "the  REFUND is approved")[n % 2]
        memory.remember(text, scope=SCOPE, id=f"copy{n}")
    for n in range(4):
        memory.remember(f"another refund, number {n}", scope=SCOPE, id=f"other{n}")
    found = memory.recall("refund approved", scope=SCOPE, top=5)
    assert found.ids[0] == "copy0"
    assert sorted(found.ids) == ["copy0", "other0", "other1", "other2", "other3"]


RESTATED = (
    ("The deploy happens on Tuesday morning", "The deploy happens on Friday evening"),
    ("Ana prefers bank transfer", "Ana prefers bank transfer no longer"),
    ("The limit is 500", "The limit is 5000"),
    ("Refunds need approval", "Refunds need no approval"),
)


@pytest.mark.parametrize(("one", "other"), RESTATED)
def test_facts_when_they_only_open_alike_then_both_are_shown(
    opened: Open, one: str, other: str
) -> None:
    """Not as in MystenLabs/MemWal#722: over-eager collapse; contradictions share their opening."""
    same = {one: (1, 0, 0, 0), other: (1, 0, 0, 0)}
    memory = opened(same)
    memory.remember(one, scope=SCOPE, id="one")
    memory.remember(other, scope=SCOPE, id="other")
    assert set(memory.recall(one, scope=SCOPE).ids) == {"one", "other"}


def test_summary_when_joined_to_its_source_by_a_verified_link_then_it_is_one_and_used_once(
    opened: Open,
) -> None:
    """Not as in mnemosyne-oss/mnemosyne#88: both ranked, and the use counted twice."""
    memory = opened()
    memory.remember("We talked for an hour about the refund of order 9", scope=SCOPE, id="source")
    same = rb.Link("source", kind="equivalent", verified=True)
    memory.remember("Refund of order 9", scope=SCOPE, id="summary", links=[same])
    found = memory.recall("refund order", scope=SCOPE, reinforce=True)
    assert found.ids == ("source",)
    assert found.explain("summary").verdict == "duplicate of 'source', which stands for both"
    assert [memory.get(name, scope=SCOPE).uses for name in ("source", "summary")] == [1, 0]


def test_forgotten_when_many_matched_better_then_none_of_them_takes_a_place(opened: Open) -> None:
    """Not as in rohitg00/agentmemory#632, ruvnet/ruflo#2815, ruvnet/ruflo#1122 and
    tteon/seocho#122: ghosts in the index fill the limit and the survivors are missing."""
    says = {"refund": (1, 0, 0, 0), "tea": (0.1, 1, 0, 0)}
    memory = opened(says)
    memory.remember("tea", scope=SCOPE, id="survivor")
    memory.remember_many({"text": "refund", "scope": SCOPE, "id": f"ghost{n}"} for n in range(500))
    memory.forget([f"ghost{n}" for n in range(500)], scope=SCOPE)
    found = memory.recall("refund", scope=SCOPE, profile="symfonic")
    assert found.ids == ("survivor",)
    assert found.trace.pool == 1


def test_scope_when_another_is_crowded_with_better_matches_then_nothing_of_it_takes_a_place(
    opened: Open,
) -> None:
    """Not as in mem0ai/mem0#7072 and mem0ai/mem0#6998: filtered after the top, so a user gets none."""
    says = {"refund": (1, 0, 0, 0), "tea": (0.1, 1, 0, 0)}
    memory = opened(says)
    memory.remember_many(
        {"text": "refund", "scope": f"{SCOPE}/user:{n}", "id": "m"} for n in range(100, 700)
    )
    memory.remember("tea", scope=USER, id="mine")
    for profile in ("default", "symfonic", "rrf"):
        assert memory.recall("refund", scope=USER, profile=profile).ids == ("mine",)
