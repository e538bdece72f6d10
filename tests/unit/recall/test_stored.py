"""Single memories after they were written: get, forget, reinforce, link, export and reading back."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rankblend as rb
from rankblend.errors import InvalidArgumentError, MemoryNotFoundError, ScopeMismatchError
from rankblend.recall import read_lines

Open = Callable[..., rb.Memory]
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TENANT, USER, OTHER = "tenant:acme", "tenant:acme/user:7", "tenant:acme/user:8"


# get


def test_get_when_the_id_is_unknown_or_invisible_then_the_words_are_the_same(
    memory: rb.Memory,
) -> None:
    memory.remember("private to user 8", scope=OTHER, id="a")
    words = []
    for identifier in ("a", "b"):
        with pytest.raises(MemoryNotFoundError) as missing:
            memory.get(identifier, scope=USER)
        assert missing.value.ids == (identifier,)
        words.append(str(missing.value).replace(identifier, "?", 1))
    assert words[0] == words[1] == f"'?': not visible from '{USER}' or unknown"


@pytest.mark.parametrize("call", ["get", "forget", "reinforce"])
def test_calls_by_id_when_the_id_is_no_text_then_they_are_refused(
    memory: rb.Memory, call: str
) -> None:
    for identifier in ([[]], 5, None):
        with pytest.raises(InvalidArgumentError, match="expected"):
            getattr(memory, call)(identifier, scope=USER)


@pytest.mark.parametrize("call", ["get", "forget", "reinforce"])
def test_calls_by_id_when_the_scope_is_bad_then_they_are_refused(
    memory: rb.Memory, call: str
) -> None:
    with pytest.raises(InvalidArgumentError, match="scope: level 2: id is blank"):
        getattr(memory, call)("a", scope="tenant:acme/user: ")


def test_get_when_it_is_expired_or_tip_only_then_only_its_own_scope_gets_it(
    memory: rb.Memory,
) -> None:
    memory.remember("old", scope=TENANT, id="old", expires="2026-01-01T00:00:00+00:00")
    memory.remember("draft", scope=TENANT, id="draft", layer="working")
    for identifier in ("old", "draft"):
        assert memory.get(identifier, scope=TENANT).id == identifier
        for call in (memory.get, memory.forget, memory.reinforce):
            with pytest.raises(MemoryNotFoundError):
                call(identifier, scope=USER)


def test_get_when_it_is_plain_then_it_is_json(memory: rb.Memory) -> None:
    memory.remember("tea", scope=USER, id="tea", links=["ana"], metadata={"a": [1, None]})
    plain = json.loads(json.dumps(memory.get("tea", scope=USER).plain()))
    assert (plain["id"], plain["scope"], plain["at"]) == ("tea", USER, NOW.isoformat())
    assert plain["links"] == [
        {"target": "ana", "kind": "related", "weight": 1.0, "verified": False}
    ]
    assert plain["metadata"] == {"a": [1, None]}
    assert plain["expires"] is None


# forget


def test_forget_when_it_is_done_then_the_memory_is_gone_from_every_answer(
    memory: rb.Memory,
) -> None:
    memory.remember("green tea at four", scope=USER, id="tea", vector=[1, 0], links=["Ana"])
    memory.remember("green tea at five", scope=USER, id="tea", at="2026-04-01T00:00:00+00:00")
    memory.remember("Ana likes coffee", scope=USER, id="coffee", links=["Ana"])
    assert memory.forget("tea", scope=USER) == 1
    assert len(memory) == 1
    for query in ("green tea", "", "Ana"):
        assert "tea" not in memory.recall(query, scope=USER, seeds=["tea"]).ids
    past = memory.recall("green tea", scope=USER, as_of="2026-03-15T00:00:00+00:00")
    assert "tea" not in past.ids
    with pytest.raises(MemoryNotFoundError):
        memory.get("tea", scope=USER)
    gone = memory.recall("green tea", scope=USER).explain("tea")
    assert gone.verdict == "not visible to this query or unknown"


def test_forget_when_it_is_written_again_then_it_is_a_new_memory(memory: rb.Memory) -> None:
    memory.remember("tea at four", scope=USER, id="tea", at="2026-01-01T00:00:00+00:00")
    memory.reinforce("tea", scope=USER)
    memory.forget("tea", scope=USER)
    memory.remember("tea at five", scope=USER, id="tea")
    stored = memory.get("tea", scope=USER)
    assert (stored.created, stored.uses) == (NOW, 0)
    assert memory.recall("tea", scope=USER, as_of="2026-01-15T00:00:00+00:00").ids == ()


def test_forget_when_the_memory_was_linked_then_its_links_go_with_it(memory: rb.Memory) -> None:
    memory.remember("refund asked for", scope=USER, id="a")
    memory.remember("arrived broken", scope=USER, id="b")
    memory.remember("refund again", scope=USER, id="c")
    memory.link("a", "b", scope=USER)
    memory.link("c", "a", scope=USER, kind="equivalent", verified=True)
    assert set(memory.recall("refund", scope=USER).ids) == {"a", "b"}
    memory.forget("a", scope=USER)
    memory.remember("refund asked for", scope=USER, id="a")
    # It is another memory: neither the way to b nor the equivalence with c is there any more.
    assert set(memory.recall("refund", scope=USER).ids) == {"a", "c"}


def test_forget_when_one_of_many_is_unknown_then_none_is_forgotten(memory: rb.Memory) -> None:
    memory.remember("tea", scope=USER, id="tea")
    with pytest.raises(MemoryNotFoundError) as missing:
        memory.forget(["tea", "x", "y"], scope=USER)
    assert missing.value.ids == ("x", "y")
    assert len(memory) == 1


def test_forget_when_ids_repeat_or_are_none_then_each_counts_once(memory: rb.Memory) -> None:
    memory.remember("tea", scope=USER, id="tea")
    assert memory.forget([], scope=USER) == 0
    assert memory.forget(["tea", "tea"], scope=USER) == 1


@pytest.mark.parametrize("call", ["forget", "reinforce"])
def test_writes_when_the_memory_is_an_ancestors_then_the_scopes_do_not_match(
    memory: rb.Memory, call: str
) -> None:
    memory.remember("the tenant's", scope=TENANT, id="a")
    memory.remember("the user's", scope=USER, id="b")
    with pytest.raises(ScopeMismatchError, match="stored at another scope") as refused:
        getattr(memory, call)(["b", "a"], scope=USER)
    assert refused.value.ids == ("a",)
    assert len(memory) == 2
    assert memory.get("b", scope=USER).uses == 0


def test_forget_when_the_same_id_is_at_the_scope_and_above_then_only_the_own_goes(
    memory: rb.Memory,
) -> None:
    memory.remember("the tenant's", scope=TENANT, id="a")
    memory.remember("the user's", scope=USER, id="a")
    assert memory.forget("a", scope=USER) == 1
    assert memory.get("a", scope=USER).text == "the tenant's"


# reinforce


def test_reinforce_when_called_then_uses_and_time_are_counted(opened: Open) -> None:
    times = iter([NOW, NOW + timedelta(days=1), NOW + timedelta(days=2)])
    memory = opened(clock=lambda: next(times))
    memory.remember("tea", scope=USER, id="tea")
    assert memory.reinforce("tea", scope=USER) == 1
    assert memory.reinforce(["tea"], scope=USER) == 1
    stored = memory.get("tea", scope=USER)
    assert (stored.uses, stored.used) == (2, NOW + timedelta(days=2))


def test_recall_when_it_only_reads_then_no_use_is_counted(memory: rb.Memory) -> None:
    memory.remember("tea", scope=USER, id="tea")
    result = memory.recall("tea", scope=USER)
    result.explain("tea")
    str(result.explain(0))
    result.compare(memory.recall("tea", scope=USER, profile="symfonic"))
    memory.recall("", scope=USER)
    memory.recall("tea", scope=USER, as_of=NOW)
    memory.get("tea", scope=USER)
    assert memory.get("tea", scope=USER).uses == 0


def test_recall_when_it_reinforces_then_only_what_is_shown_and_stored_at_a_query_scope_counts(
    memory: rb.Memory,
) -> None:
    memory.remember("tea of the tenant", scope=TENANT, id="tenant")
    memory.remember("tea of user 7", scope=USER, id="user")
    memory.remember("tea of user 8", scope=OTHER, id="other")
    memory.remember("more tea with much more milk, of user 7", scope=USER, id="unshown")
    memory.remember("tea of a session", scope=f"{USER}/session:1", id="session")
    result = memory.recall("tea", scope=[USER, OTHER], top=3, reinforce=True)
    assert sorted(result.ids) == ["other", "tenant", "user"]
    uses = {
        identifier: memory.get(identifier, scope=scope).uses
        for identifier, scope in (
            ("tenant", TENANT), ("user", USER), ("other", OTHER), ("unshown", USER),
            ("session", f"{USER}/session:1"),
        )
    }  # fmt: skip
    assert uses == {"tenant": 0, "user": 1, "other": 1, "unshown": 0, "session": 0}


def test_recall_when_it_reinforces_then_the_use_counts_at_the_time_of_asking(
    memory: rb.Memory,
) -> None:
    memory.remember("tea", scope=USER, id="tea", at="2026-01-01T00:00:00+00:00")
    later = NOW + timedelta(days=3)
    memory.recall("tea", scope=USER, now=later, reinforce=True)
    assert memory.get("tea", scope=USER).used == later
    memory.recall("tea", scope=USER, as_of=NOW, now=later + timedelta(days=1), reinforce=True)
    stored = memory.get("tea", scope=USER)
    assert (stored.uses, stored.used) == (2, later + timedelta(days=1))


# link


def test_link_when_it_joins_two_memories_then_proximity_flows_and_unlink_stops_it(
    memory: rb.Memory,
) -> None:
    memory.remember("Ana asked for a refund", scope=USER, id="a")
    memory.remember("order twelve arrived broken", scope=USER, id="b")
    assert memory.recall("refund", scope=USER).ids == ("a",)
    memory.link("a", "b", scope=USER)
    linked = memory.recall("refund", scope=USER)
    assert set(linked.ids) == {"a", "b"}
    assert next(m for m in linked if m.memory.id == "b").signals.proximity == 1.0
    assert memory.unlink("a", "b", scope=USER) == 1
    assert memory.unlink("a", "b", scope=USER) == 0
    assert memory.recall("refund", scope=USER).ids == ("a",)


def test_link_when_written_at_another_users_scope_then_it_is_not_walked(memory: rb.Memory) -> None:
    memory.remember("Ana asked for a refund", scope=TENANT, id="a")
    memory.remember("order twelve arrived broken", scope=TENANT, id="b")
    memory.link("a", "b", scope=OTHER)
    assert memory.recall("refund", scope=USER).ids == ("a",)
    assert set(memory.recall("refund", scope=OTHER).ids) == {"a", "b"}


BAD_LINKS: dict[str, Any] = {
    "links: expected a sequence of mappings": None,
    "links[0]: expected a mapping with source and target": [{"source": "a"}],
    "links[0].strength: no such property": [{"source": "a", "target": "b", "strength": 1}],
    "links[0].source: expected some text": [{"source": " ", "target": "b"}],
    "links[0].target: expected text, got int": [{"source": "a", "target": 5}],
    "links[0].kind: expected some text": [{"source": "a", "target": "b", "kind": ""}],
    "links[0].weight: expected a number in (0, 1], got 0": [
        {"source": "a", "target": "b", "weight": 0}
    ],
    "links[0].weight: expected a number": [{"source": "a", "target": "b", "weight": None}],
    "links[0].weight: expected a number in (0, 1], got 2": [
        {"source": "a", "target": "b", "weight": 2}
    ],
    "links[0].verified: expected True or False": [{"source": "a", "target": "b", "verified": 1}],
}


@pytest.mark.parametrize("problem", BAD_LINKS)
def test_link_many_when_a_link_is_bad_then_it_is_named_and_none_is_made(
    memory: rb.Memory, problem: str
) -> None:
    good = [{"source": "Ana", "target": "tea"}]
    memory.remember("Ana", scope=USER, id="a", links=["Ana"])
    memory.remember("drink", scope=USER, id="b", links=["tea"])
    links = BAD_LINKS[problem]
    with pytest.raises(InvalidArgumentError) as refused:
        memory.link_many(links if links is None else links + good, scope=USER)
    assert refused.value.problems[0].startswith(problem)
    assert "b" not in memory.recall("Ana", scope=USER).ids
    memory.link_many(good, scope=USER)
    assert "b" in memory.recall("Ana", scope=USER).ids


# export and reading back


def written(memory: rb.Memory) -> None:
    memory.remember(
        "tea at four", scope=USER, id="tea", at="2026-01-01T00:00:00+00:00", vector=[3, 4],
        salience=0.4, layer="procedural", key="drink", links=["Ana", rb.Link("x", "about", 0.5)],
    )  # fmt: skip
    memory.remember(
        "tea at five\u2028😀 \x1f", scope=USER, id="tea", at="2026-02-01T00:00:00.123456+00:00",
        vector=[0.1, 0.7], review="flagged", maturity="settled", certainty="inferred",
        confidence=0.1, expires="2027-01-01T00:00:00+00:00", metadata={"a": {"b": [1, "ü"]}},
    )  # fmt: skip
    memory.remember("the tenant's café", scope=TENANT, id="tea")
    memory.remember("a session's", scope="tenant:a%2Fb%3A%25/user:7", id="s", expires=datetime.max.replace(tzinfo=UTC))  # fmt: skip
    memory.reinforce("tea", scope=USER)
    memory.link("tea", "Ana", scope=USER, kind="equivalent", verified=True)
    memory.link("Ana", "Bea", scope=TENANT, weight=0.25)


def restored(path: Path, memory: rb.Memory) -> None:
    memories, links = read_lines(path)
    memory.remember_many(memories)
    for link in links:
        memory.link_many(
            [{k: v for k, v in link.items() if k != "scope"}], scope=str(link["scope"])
        )


def test_export_when_read_into_another_memory_then_it_exports_the_same_bytes(
    memory: rb.Memory, opened: Open, tmp_path: Path
) -> None:
    written(memory)
    lines = memory.export(tmp_path / "a.jsonl")
    # a header, two revisions of the user's, one each of the tenant's and the session's, two links
    assert lines == 1 + 2 + 1 + 1 + 2
    copy = opened()
    restored(tmp_path / "a.jsonl", copy)
    copy.export(tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert [p.name for p in tmp_path.iterdir() if "partial" in p.name] == []


def test_export_when_read_into_another_memory_then_every_recall_is_the_same(
    memory: rb.Memory, opened: Open, tmp_path: Path
) -> None:
    written(memory)
    memory.export(tmp_path / "a.jsonl")
    copy = opened()
    restored(tmp_path / "a.jsonl", copy)
    for profile in rb.profile_names():
        for as_of in (None, "2026-01-15T00:00:00+00:00"):
            asked: dict[str, Any] = {"scope": USER, "profile": profile, "as_of": as_of}
            here, there = memory.recall("tea five", **asked), copy.recall("tea five", **asked)
            assert here.plain() == there.plain()


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(vector=st.lists(st.floats(-1, 1, width=32), min_size=2, max_size=9).filter(any))
def test_export_when_a_vector_is_written_and_read_back_then_no_bit_changes(
    tmp_path: Path, vector: list[float]
) -> None:
    with rb.Memory.open(":memory:") as memory:
        memory.remember("tea", scope=USER, id="tea", vector=vector)
        memory.export(tmp_path / "a.jsonl")
        copied = read_lines(tmp_path / "a.jsonl")[0]
    with rb.Memory.open(":memory:") as copy:
        copy.remember_many(copied)
        copy.export(tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_export_when_the_file_is_there_then_it_is_replaced_as_a_whole(
    memory: rb.Memory, tmp_path: Path
) -> None:
    out = tmp_path / "a.jsonl"
    out.write_text("something longer than an empty export, from another time\n" * 20)
    assert memory.export(out) == 1
    assert json.loads(out.read_text()) == {"type": "rankblend", "format": 1}


def test_read_lines_when_lines_are_wrong_then_all_are_named_with_their_numbers(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"text": "a"}\n\n{oops\n[1]\n{"type": "dream"}\n{"type": "rankblend", "format": 9}\n'
    )
    with pytest.raises(InvalidArgumentError) as refused:
        read_lines(path)
    numbers = [
        problem.removeprefix(f"{path}:").partition(":")[0] for problem in refused.value.problems
    ]
    assert numbers == ["3", "4", "5", "6"]


def test_read_lines_when_very_many_lines_are_wrong_then_the_first_twenty_are_told(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("[\n" * 50)
    with pytest.raises(InvalidArgumentError) as refused:
        read_lines(path)
    assert len(refused.value.problems) == 21
    assert refused.value.problems[-1] == "… and 30 more"


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_read_lines_when_the_file_cannot_be_read_then_it_is_named(
    tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "a.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        read_lines(path)


def test_read_lines_when_a_vector_is_damaged_then_writing_it_is_refused(
    memory: rb.Memory, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"text": "tea", "scope": USER, "vector": {"f32": "!!"}}))
    with pytest.raises(InvalidArgumentError, match=r"items\[0\].vector"):
        memory.remember_many(read_lines(path)[0])
