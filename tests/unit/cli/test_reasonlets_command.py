"""``rankblend reasonlets``: recall, show, review, statistics, export and import."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rankblend.embedders import from_callable, wordllama
from rankblend.reasonlets import (
    Capture,
    Edge,
    Graph,
    Node,
    Outcome,
    Provenance,
    ReasonletMemory,
    ReasonletOptions,
    SqliteReasonletStore,
    SyncReasonletMemory,
)

pytest.importorskip("wordllama")

SCOPE = "tenant:acme"
QUESTION = "How do I refund an order?"
PLAIN = Graph([Node("pay", "tool", tool="payments.refund")])
CAREFUL = Graph(
    [Node("look", "tool", tool="orders.get"), *PLAIN.nodes], [Edge("look", "pay", "paid")]
)
AGENT = Provenance("support agent", tags={"model": "m"})


def capture(graph: Graph = PLAIN, question: str = QUESTION, **more: Any) -> Capture:
    return Capture(SCOPE, question, graph, Outcome(success=True), AGENT, **more)


def opened(db: Path, **options: Any) -> SyncReasonletMemory:
    store = SqliteReasonletStore.open(db)
    return SyncReasonletMemory(
        ReasonletMemory(wordllama(64), store, options=ReasonletOptions(**options))
    )


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A procedure with five runs, one judged, and a new version of it."""
    path = tmp_path / "procedures.db"
    with opened(path) as memory:
        first = memory.remember(capture())
        for worked in (True, True, True, False):
            run = memory.record_execution(
                SCOPE, first.id, outcome=Outcome(success=worked), provenance=AGENT
            )
        memory.record_feedback(
            SCOPE, run.execution, utility=1, correctness=1, reusability=1, worked=True
        )
        memory.remember(capture(CAREFUL, name="Refund, carefully", parent_id=first.id))
    return path


@pytest.fixture
def waiting(tmp_path: Path) -> Path:
    """Three procedures that wait for review."""
    path = tmp_path / "waiting.db"
    with opened(path, require_review=True) as memory:
        for number in range(3):
            memory.remember(capture(question=f"{QUESTION} Case {number}"))
    return path


@pytest.fixture
def recalled(rankblend: Callable[..., Any]) -> Callable[..., list[dict[str, Any]]]:
    def recall(db: Path, question: str = QUESTION, *more: object) -> list[dict[str, Any]]:
        done = rankblend(
            "reasonlets", "recall", question, "--db", db, "--scope", SCOPE, *more, "--json"
        )
        assert (done.code, done.err) == (0, "")
        return json.loads(done.out)

    return recall


def test_recall_when_procedures_are_similar_then_a_table_with_their_record(
    rankblend: Any, db: Path
) -> None:
    done = rankblend("reasonlets", "recall", QUESTION, "--db", db, "--scope", SCOPE)
    assert (done.code, done.err) == (0, "")
    head, first, _, second, *_ = done.out.splitlines()
    assert head.split()[:3] == ["#", "total", "similarity"]
    assert first.split()[:7] == ["1", "0.915", "1.000", "0.716*", "1.000", "1", "0"]
    assert "Refund, carefully (1.1)" in first
    assert second.split()[:7] == ["2", "0.906", "1.000", "0.688", "1.000", "5", "1"]
    assert "* starts from its parent's success rate" in done.out


def test_recall_when_json_then_everything_about_each_match(db: Path, recalled: Any) -> None:
    second, first = recalled(db)
    assert first["evidence"] == {"runs": 5, "judged_runs": 1, "uses_parent_prior": False}
    assert second["evidence"] == {"runs": 1, "judged_runs": 0, "uses_parent_prior": True}
    assert first["score"]["similarity"] == pytest.approx(1.0)
    assert first["graph"] == PLAIN.plain()
    assert first["provenance"] == {
        "source": "support agent", "run_id": None, "subject_id": None, "tags": {"model": "m"},
    }  # fmt: skip
    assert second["parent_id"] == first["id"] == second["family"]
    assert len(recalled(db, QUESTION, "--top", 1)) == 1


def test_recall_when_nothing_is_similar_enough_then_it_says_so_and_succeeds(
    rankblend: Any, db: Path, recalled: Any
) -> None:
    ask = ("reasonlets", "recall", "quantum chromodynamics", "--db", db, "--scope", SCOPE)
    done = rankblend(*ask, "--min-similarity", "0.9")
    assert (done.code, done.out.split(":")[0]) == (0, "no known procedure")
    assert recalled(db, "quantum chromodynamics", "--min-similarity", "0.9") == []
    assert recalled(db, QUESTION, "--intent", "another") == []


def test_show_when_it_has_versions_then_steps_record_and_lineage(
    rankblend: Any, db: Path, recalled: Any
) -> None:
    second = recalled(db)[0]["id"]
    done = rankblend("reasonlets", "show", second, "--db", db, "--scope", SCOPE)
    assert (done.code, done.err) == (0, "")
    assert "1 run, 1 worked; 0 judged" in done.out
    assert "2 if paid" in done.out
    lines = [line.split() for line in done.out.splitlines()]
    assert ["1.1", "1.0", "1", "1", "0"] in [words[:5] for words in lines]
    assert sum(second in words for words in lines) == 1


def test_show_when_json_then_the_lineage_comes_with_it(
    rankblend: Any, db: Path, recalled: Any
) -> None:
    first = recalled(db)[1]["id"]
    done = rankblend("reasonlets", "show", first, "--db", db, "--scope", SCOPE, "--json")
    told = json.loads(done.out)
    assert [each["version"] for each in told["lineage"]] == ["1.0", "1.1"]
    assert told["lineage"][0]["metrics"] == told["metrics"]
    assert told["metrics"]["judged_successes"] == 1


def test_show_when_mermaid_then_nothing_but_the_flowchart(
    rankblend: Any, db: Path, recalled: Any
) -> None:
    second = recalled(db)[0]["id"]
    done = rankblend("reasonlets", "show", second, "--db", db, "--scope", SCOPE, "--mermaid")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "flowchart TD",
        '    n1["orders.get"]',
        '    n2["payments.refund"]',
        '    n1 -->|"paid"| n2',
    ]


def test_show_when_a_picture_is_asked_for_then_it_is_drawn(
    rankblend: Any, db: Path, recalled: Any, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    place = ("--db", db, "--scope", SCOPE)
    first = recalled(db)[0]["id"]
    done = rankblend("reasonlets", "show", first, *place, "--picture", tmp_path / "out.svg")
    assert (done.code, done.out) == (0, "")
    assert "payments.refund" in (tmp_path / "out.svg").read_text(encoding="utf-8")
    wrong = rankblend("reasonlets", "show", first, *place, "--picture", tmp_path / "out.gif")
    assert (wrong.code, len(wrong.errors)) == (2, 1)


def test_pending_when_pages_are_asked_then_each_goes_on_after_the_last(
    rankblend: Any, waiting: Path, recalled: Any
) -> None:
    place = ("--db", waiting, "--scope", SCOPE)
    page = rankblend("reasonlets", "pending", *place, "--limit", 2)
    assert page.out.count(QUESTION) == 2
    last = page.out.split("--after ")[1].strip()
    rest = json.loads(rankblend("reasonlets", "pending", *place, "--after", last, "--json").out)
    assert [made["name"] for made in rest] == [f"{QUESTION} Case 2"]
    assert rest[0]["status"] == "pending_review"
    assert recalled(waiting) == []


def test_review_when_decided_then_the_approved_is_recalled_and_the_rejected_gone(
    rankblend: Any, waiting: Path, recalled: Any
) -> None:
    place = ("--db", waiting, "--scope", SCOPE)
    ids = [
        each["id"] for each in json.loads(rankblend("reasonlets", "pending", *place, "--json").out)
    ]
    for _ in range(2):  # approving again changes nothing
        assert rankblend("reasonlets", "approve", ids[0], *place).code == 0
    assert rankblend("reasonlets", "reject", ids[1], *place).code == 0
    assert [each["id"] for each in recalled(waiting)] == [ids[0]]
    assert rankblend("reasonlets", "show", ids[1], *place).code == 2
    refused = rankblend("reasonlets", "reject", ids[0], *place)
    assert (refused.code, len(refused.errors)) == (2, 1)
    assert "active" in refused.err
    rankblend("reasonlets", "approve", ids[2], *place)
    assert rankblend("reasonlets", "pending", *place).out == "nothing waits for review\n"


def test_stats_when_asked_then_counts_of_the_file_or_of_one_scope(rankblend: Any, db: Path) -> None:
    told = json.loads(rankblend("reasonlets", "stats", "--db", db, "--json").out)
    assert told == {
        "active": 2, "pending": 0, "families": 1, "runs": 6, "successes": 6, "judged_runs": 1,
        "judged_successes": 1, "stored_runs": 6,
    }  # fmt: skip
    shown = rankblend("reasonlets", "stats", "--db", db).out
    assert shown.startswith("2 procedures in 1 family: 2 active, 0 waiting for review\n6 runs,")
    other = rankblend("reasonlets", "stats", "--db", db, "--scope", "tenant:other", "--json")
    assert set(json.loads(other.out).values()) == {0}


def test_export_when_imported_elsewhere_then_the_next_export_is_the_same(
    rankblend: Any, db: Path, tmp_path: Path
) -> None:
    one, two, copy = tmp_path / "one.jsonl", tmp_path / "two.jsonl", tmp_path / "copy.db"
    done = rankblend("reasonlets", "export", "--db", db, "--out", one)
    assert (done.code, done.out) == (0, "")
    assert "2 procedures written to" in done.err
    assert rankblend("reasonlets", "import", one, "--db", copy).code == 0
    assert rankblend("reasonlets", "export", "--db", copy, "--out", two).code == 0
    assert one.read_bytes() == two.read_bytes()
    again = rankblend("reasonlets", "import", one, "--db", copy)
    assert (again.code, len(again.errors)) == (2, 1)
    assert "already stored" in again.err


def test_import_when_lines_are_broken_then_each_is_one_line_and_no_file_is_made(
    rankblend: Any, tmp_path: Path, write_lines: Callable[..., Path]
) -> None:
    header = {"type": "reasonlets", "schema_version": 1}
    source = write_lines("bad.jsonl", header, "{", {"type": "reasonlet"}, {"type": "secret"})
    db = tmp_path / "new.db"
    done = rankblend("reasonlets", "import", source, "--db", db)
    assert (done.code, len(done.errors)) == (2, 3)
    assert "secret" not in done.err
    assert not db.exists()


UNKNOWN = "01900000-0000-7000-8000-000000000000"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("show", UNKNOWN, "--scope", SCOPE), "no such reasonlet in this scope"),
        (("approve", UNKNOWN, "--scope", SCOPE), "no such reasonlet in this scope"),
        (("reject", UNKNOWN, "--scope", SCOPE), "no such reasonlet in this scope"),
        (("show", UNKNOWN, "--scope", SCOPE, "--json", "--mermaid"), "expected one of them"),
        (("recall", " ", "--scope", SCOPE), "question: expected some text"),
        (("recall", "x", "--scope", "acme"), "scope: expected a root-first path"),
        (("recall", "x", "--scope", SCOPE, "--top", "51"), "top: expected an integer from 1 to 50"),
        (("recall", "x", "--scope", SCOPE, "--embedder", "none"), "so one is needed"),
        (
            ("recall", "x", "--scope", SCOPE, "--embedder", "wordllama:128"),
            "length: expected 64, got 128",
        ),
        (("pending", "--scope", SCOPE, "--limit", "0"), "limit: expected an integer from 1 to 100"),
        (("stats", "--scope", "x"), "scope: expected a root-first path"),
        (("export", "--out", "nowhere/x.jsonl"), "expected a file in an existing folder"),
    ],
)
def test_wrong_input_when_given_then_one_line_and_exit_2(
    rankblend: Any, db: Path, words: tuple[str, ...], told: str
) -> None:
    done = rankblend("reasonlets", *words, "--db", db)
    assert (done.code, done.out, len(done.errors)) == (2, "", 1)
    assert told in done.err


@pytest.mark.parametrize(
    "words",
    [("recall", "x", "--scope", SCOPE), ("pending", "--scope", SCOPE), ("stats",),
     ("show", UNKNOWN, "--scope", SCOPE), ("export", "--out", "x.jsonl")],
)  # fmt: skip
def test_file_when_there_is_none_then_one_line_and_none_is_made(
    rankblend: Any, tmp_path: Path, words: tuple[str, ...]
) -> None:
    missing = tmp_path / "missing.db"
    done = rankblend("reasonlets", *words, "--db", missing)
    assert (done.code, len(done.errors)) == (2, 1)
    assert not missing.exists()


def test_file_when_it_is_something_else_then_exit_1_and_it_stays(
    rankblend: Any, tmp_path: Path
) -> None:
    other = tmp_path / "other.db"
    other.write_text("not a database\n", encoding="utf-8")
    done = rankblend("reasonlets", "stats", "--db", other)
    assert (done.code, len(done.errors)) == (1, 1)
    assert other.read_text(encoding="utf-8") == "not a database\n"


def test_recall_when_no_built_in_embedder_has_that_length_then_one_line_asks_for_it(
    rankblend: Any, tmp_path: Path
) -> None:
    path = tmp_path / "two.db"
    store = SqliteReasonletStore.open(path)
    embed = from_callable(lambda texts: [[1.0, 0.0]] * len(texts), name="two")
    with SyncReasonletMemory(ReasonletMemory(embed, store)) as m:
        m.remember(capture())
    done = rankblend("reasonlets", "recall", "x", "--db", path, "--scope", SCOPE)
    assert (done.code, len(done.errors)) == (2, 1)
    assert "vectors of 2 numbers" in done.err


def test_names_when_they_hold_steering_characters_or_markup_then_they_are_shown_as_such(
    rankblend: Any, tmp_path: Path, recalled: Any
) -> None:
    path = tmp_path / "hostile.db"
    hostile = "[red]\x1b[31m stop"
    with opened(path) as memory:
        memory.remember(capture(Graph([Node("a", "tool", name=hostile)]), hostile))
    place = ("--db", path, "--scope", SCOPE)
    (found,) = recalled(path, hostile)
    for words in (("recall", hostile), ("show", found["id"]), ("show", found["id"], "--mermaid")):
        out = rankblend("reasonlets", *words, *place).out
        assert "[red]" in out
        assert "\x1b" not in out
