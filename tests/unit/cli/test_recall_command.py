"""``rankblend recall``: tables, explanations, comparisons, JSON, and every kind of wrong input."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rankblend.profiles import load_profile
from rankblend.recall import Memory
from rankblend.testing import hashed_embedder

USER, TENANT = "tenant:acme/user:7", "tenant:acme"
QUESTION = "how do we refund Ana?"


def test_recall_then_memories_are_ranked_with_bars_layer_and_distance(
    rankblend: Any, notes: Path
) -> None:
    done = rankblend("recall", QUESTION, "--db", notes, "--scope", USER)
    assert done.code == 0
    heading, first, second, *_ = done.out.splitlines()
    names = heading.split()
    assert (names[:2], names[-3:]) == (["#", "score"], ["layer", "up", "memory"])
    assert set(names[2:-3]) == load_profile("default").signals_scored
    assert re.match(r"1 +0\.\d{3} .*semantic +[01] +\w", first)
    assert "Ana prefers refunds by bank transfer" in done.out
    assert {first.split("semantic")[1].split()[0], second.split("semantic")[1].split()[0]} == {
        "0",
        "1",
    }
    start = heading.index("similarity")
    assert first[start : start + len("similarity")].strip() == ""  # no vectors: a gap, not a track


def test_recall_when_a_signal_is_zero_then_the_track_is_empty_and_when_tiny_a_sliver_shows() -> (
    None
):
    from rankblend.cli.table import signal_bar

    assert signal_bar(None).plain == "      "
    assert signal_bar(0.0).plain == "······"
    assert signal_bar(0.0001).plain == "▏·····"
    assert signal_bar(0.5).plain == "███···"
    assert signal_bar(1.0).plain == "██████"
    assert {len(signal_bar(n / 999, width=4).plain) for n in range(1000)} == {4}


def test_recall_when_the_terminal_is_narrow_then_no_line_is_longer_and_memories_stay_readable(
    rankblend: Any, notes: Path, width: Callable[[int], None]
) -> None:
    width(80)
    done = rankblend("recall", QUESTION, "--db", notes, "--scope", USER, "--explain")
    assert done.code == 0
    assert all(len(line) <= 80 for line in done.out.splitlines())
    assert "Ana prefers refunds" in done.out


def test_recall_when_the_profile_has_more_signals_than_columns_then_the_rest_is_named(
    rankblend: Any, notes: Path, width: Callable[[int], None]
) -> None:
    width(60)
    done = rankblend(
        "recall", QUESTION, "--db", notes, "--scope", USER, "--profile", "relevance-baseline"
    )
    assert done.code == 0
    assert "no room for " in done.out
    assert "maturity" in done.out
    assert all(len(line) <= 60 for line in done.out.splitlines())


def test_recall_when_blending_then_the_rank_score_stands_beside_the_score(
    rankblend: Any, notes: Path, write_lines: Any
) -> None:
    mine = write_lines("blend.toml", 'extends = ["default"]', "[scope]", 'mode = "blend"')
    done = rankblend("recall", "refunds", "--db", notes, "--scope", USER, "--profile", mine)
    assert "rank score" in done.out.splitlines()[0]
    tenant = next(line for line in done.out.splitlines() if "Refunds over 500" in line)
    score, rank_score = map(float, tenant.split()[1:3])
    assert rank_score == pytest.approx(score / 2, abs=0.0006)  # one level, half-life one level


def test_recall_when_explained_then_the_last_column_adds_up(rankblend: Any, notes: Path) -> None:
    done = rankblend("recall", QUESTION, "--db", notes, "--scope", USER, "--explain")
    assert done.code == 0
    lines = done.out.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("p1: rank 1 of"))
    end = next(n for n, line in enumerate(lines) if line.startswith("score"))
    rows = [line for line in lines[start:end] if not line.startswith(" ")]  # not those of nodes
    added = [float(found) for line in rows for found in re.findall(r"\+(0\.\d+)", line)]
    assert len(added) >= 2
    assert sum(added) == pytest.approx(float(lines[end].split()[-1]), abs=0.0002)
    assert load_profile("default").hash[:12] in done.out


@pytest.mark.parametrize("identifier", ["nobody", "p1"])
def test_recall_when_an_id_is_invisible_or_unknown_then_the_words_are_the_same(
    rankblend: Any, notes: Path, identifier: str
) -> None:
    done = rankblend("recall", QUESTION, "--db", notes, "--scope", TENANT, "--id", identifier)
    assert done.code == 0
    assert done.out.rstrip().endswith(f"{identifier}: not visible to this query or unknown")


def test_recall_when_an_id_is_given_then_it_is_explained_without_asking_twice(
    rankblend: Any, notes: Path
) -> None:
    done = rankblend("recall", QUESTION, "--db", notes, "--scope", USER, "--id", "p2")
    assert re.search(r"^p2: rank \d of \d$", done.out, re.MULTILINE)


def test_recall_when_compared_then_moves_have_arrows_and_both_names(
    rankblend: Any, notes: Path
) -> None:
    done = rankblend("recall", QUESTION, "--db", notes, "--scope", USER, "--compare", "crewai")
    assert done.code == 0
    table = done.out.split("\n\n")[1]
    assert table.split()[:2] == ["default", "crewai"]
    assert any(arrow in table for arrow in ("▲", "▼", "=", "new", "out"))


def test_recall_when_json_then_nothing_else_is_on_standard_output(
    program: Any, notes: Path
) -> None:
    done = program(
        "recall",
        QUESTION,
        "--db",
        notes,
        "--scope",
        USER,
        "--json",
        "--explain",
        "--compare",
        "rrf",
    )
    assert (done.code, done.err) == (0, "")
    document = json.loads(done.out)
    assert document["profile_hash"] == load_profile("default").hash
    first = document["matches"][0]
    assert first["memory"]["id"] == "p1"
    assert sum(first["contributions"].values()) == pytest.approx(first["score"], abs=1e-12)
    assert document["explanation"]["id"] == "p1"
    assert document["comparison"]["after"]["profile"] == "rrf"
    assert document["trace"]["scopes"] == [USER]


def test_recall_when_json_and_nothing_is_found_then_it_is_an_empty_list(
    rankblend: Any, notes: Path
) -> None:
    done = rankblend("recall", "refund", "--db", notes, "--scope", "tenant:other", "--json")
    assert done.code == 0
    assert json.loads(done.out)["matches"] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--scope", "tenant:other"], "nothing found: no store proposed"),
        (["--scope", "tenant:acme-corp"], "nothing found: no store proposed"),
        (["--scope", TENANT, "--top", "0"], "nothing shown: --top 0"),
        (["--scope", TENANT, "--profile", "mnemosyne"], "nothing found"),
    ],
)
def test_recall_when_nothing_is_shown_then_the_reason_is_true(
    rankblend: Any, notes: Path, arguments: list[str], said: str
) -> None:
    done = rankblend("recall", "refund", "--db", notes, *arguments)
    assert done.code == 0
    assert done.out.startswith(said)


def test_recall_when_all_are_under_a_floor_then_it_says_how_many_there_were(
    rankblend: Any, notes: Path, write_lines: Any
) -> None:
    mine = write_lines(
        "floor.toml", 'extends = ["default"]', "[floors]", "keyword = { min = 0.99 }"
    )
    done = rankblend("recall", "refunds", "--db", notes, "--scope", TENANT, "--profile", mine)
    assert re.fullmatch(r"nothing found: none of \d candidates passed the floors\n", done.out)


def test_recall_when_the_query_is_blank_then_it_is_a_cold_start(
    rankblend: Any, notes: Path
) -> None:
    done = rankblend("recall", "", "--db", notes, "--scope", USER)
    assert done.code == 0
    assert len(done.out.splitlines()) == 4  # the heading and all three


def test_recall_when_several_scopes_are_named_then_their_union_is_asked(
    rankblend: Any, notes: Path
) -> None:
    done = rankblend(
        "recall", "", "--db", notes, "--scope", "tenant:other", "--scope", TENANT
    )  # fmt: skip
    assert done.code == 0
    assert "Refunds over 500" in done.out


def test_recall_when_as_of_names_no_zone_then_it_is_read_as_utc(
    rankblend: Any, write_lines: Any, tmp_path: Path
) -> None:
    source = write_lines(
        "tea.jsonl",
        {"id": "m", "scope": "t:a", "text": "tea at four", "at": "2026-01-01T00:00:00+00:00"},
        {"id": "m", "scope": "t:a", "text": "tea at five", "at": "2026-02-01T00:00:00+00:00"},
    )
    db = tmp_path / "tea.db"
    assert rankblend("ingest", source, "--db", db, "--embedder", "none").code == 0
    for moment, said in (("2026-01-31", "four"), ("2026-02-01", "five"),
                         ("2026-02-01T00:30:00+01:00", "four")):  # fmt: skip
        done = rankblend("recall", "tea", "--db", db, "--scope", "t:a", "--as-of", moment)
        assert done.code == 0
        assert f"tea at {said}" in done.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--scope", "acme"], "expected kind:id"),
        (["--scope", "tenant:"], "id is blank"),
        (["--scope", TENANT, "--reach", "below"], "reach: expected 'ancestors' or 'subtree'"),
        (["--scope", TENANT, "--top", "-1"], "top: expected an integer from 0 to 1,000,000"),
        (["--scope", TENANT, "--weight", "keyword"], "--weight: expected name=number"),
        (["--scope", TENANT, "--weight", "keyword=much"], "--weight: expected name=number"),
        (["--scope", TENANT, "--weight", "salience=-1"], "score.weights.salience"),
        (["--scope", TENANT, "--weight", "similarty=1"], 'did you mean "similarity"?'),
        (["--scope", TENANT, "--as-of", "yesterday"], "as_of: expected ISO 8601"),
        (["--scope", TENANT, "--profile", "crewia"], 'unknown profile "crewia": did you mean "crewai"?'),
        (["--scope", TENANT, "--compare", "crewia"], 'did you mean "crewai"?'),
        (["--scope", TENANT, "--profile", "nowhere.toml"], "there is no such file"),
        (["--scope", TENANT, "--embedder", "word2vec"], "--embedder: expected"),
    ],
)  # fmt: skip
def test_recall_when_an_argument_is_wrong_then_one_line_says_so_and_the_exit_code_is_2(
    rankblend: Any, notes: Path, arguments: list[str], said: str
) -> None:
    done = rankblend("recall", "refund", "--db", notes, *arguments)
    assert (done.code, done.out) == (2, "")
    assert len(done.errors) == 1
    assert said in done.errors[0]


def test_recall_when_a_profile_has_four_mistakes_then_there_are_four_lines_with_paths(
    rankblend: Any, notes: Path, write_lines: Any
) -> None:
    mine = write_lines(
        "four.toml",
        "[signals.cue]",
        'evidence = "cosin"',
        'curve = "clip"',
        "[score]",
        'compose = "weighted_mean"',
        'weights = { cue = "high" }',
        "[scope]",
        'mode = "of"',
        "[select]",
        "top = -3",
    )
    done = rankblend("recall", "x", "--db", notes, "--scope", TENANT, "--profile", mine)
    assert (done.code, done.out) == (2, "")
    assert [line.split(": ")[1] for line in sorted(done.errors)] == [
        "scope.mode",
        "score.weights.cue",
        "select.top",
        "signals.cue.evidence",
    ]
    assert 'did you mean "cosine"?' in done.err


def test_recall_when_an_error_holds_brackets_then_they_are_not_read_as_styles(
    rankblend: Any, notes: Path
) -> None:
    done = rankblend("recall", "x", "--db", notes, "--scope", TENANT, "--profile", "[bold]x.toml")
    assert done.code == 2
    assert "[bold]x.toml" in done.err


def test_recall_when_texts_look_like_markup_then_they_are_shown_as_they_are(
    rankblend: Any, write_lines: Any, tmp_path: Path
) -> None:
    odd = {"text": "see [/b] the [red]thing :bug:", "scope": "t:a", "layer": "[b]"}
    source = write_lines("odd.jsonl", {**odd, "id": "x[/]"})
    db = tmp_path / "odd.db"
    assert rankblend("ingest", source, "--db", db, "--embedder", "none").code == 0
    done = rankblend(
        "recall", "thing", "--db", db, "--scope", "t:a", "--explain", "--compare", "crewai"
    )
    assert done.code == 0
    assert done.out.count("see [/b] the [red]thing :bug:") == 2
    assert "x[/]: rank 1 of 1" in done.out
    assert "[b]" in done.out


def test_recall_when_the_file_is_missing_then_the_exit_code_is_2_and_none_is_made(
    rankblend: Any, tmp_path: Path
) -> None:
    db = tmp_path / "none.db"
    done = rankblend("recall", "x", "--db", db, "--scope", TENANT)
    assert done.code == 2
    assert "no such file" in done.errors[0]
    assert "rankblend ingest" in done.errors[0]
    assert not db.exists()


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 100])
def test_recall_when_the_file_is_no_catalog_then_the_exit_code_is_1_and_it_is_left_alone(
    program: Any, tmp_path: Path, content: bytes
) -> None:
    db = tmp_path / "corrupt.db"
    db.write_bytes(content)
    done = program("recall", "x", "--db", db, "--scope", TENANT)
    assert (done.code, done.out) == (1, "")
    assert len(done.err.splitlines()) == 1
    assert "is not a readable catalog" in done.err
    assert db.read_bytes() == content


def test_recall_when_the_file_has_another_embedder_then_it_says_how_to_go_on(
    rankblend: Any, tmp_path: Path
) -> None:
    db = tmp_path / "hashed.db"
    with Memory.open(db, embedder=hashed_embedder(16)) as memory:
        memory.remember("Refunds over 500 need approval", scope=TENANT, id="p2")
    done = rankblend("recall", "refunds", "--db", db, "--scope", TENANT)
    assert done.code == 2
    assert "hashed/16" in done.errors[0]
    assert "--embedder none" in done.errors[0]
    done = rankblend("recall", "refunds", "--db", db, "--scope", TENANT, "--embedder", "wordllama")
    assert done.code == 1
    assert "rankblend reembed" in done.errors[0]
    done = rankblend("recall", "refunds", "--db", db, "--scope", TENANT, "--embedder", "none")
    assert done.code == 0
    assert "Refunds over 500" in done.out


def test_recall_when_debugging_is_asked_for_then_the_error_is_raised(
    program: Any, tmp_path: Path
) -> None:
    arguments = ("recall", "x", "--db", tmp_path / "none.db", "--scope", TENANT)
    assert "Traceback" not in program(*arguments).err
    assert "Traceback" in program(*arguments, env={"RANKBLEND_DEBUG": "1"}).err


@pytest.mark.slow
def test_recall_when_the_embedder_is_down_then_a_line_says_so_and_strict_fails(
    rankblend: Any, notes: Path
) -> None:
    # Nothing listens on port 9 of this machine; the client tries three times.
    down = ("--embedder", "http:model@http://127.0.0.1:9/v1")
    done = rankblend("recall", "refunds", "--db", notes, "--scope", TENANT, *down)
    assert done.code == 0
    assert "Refunds over 500" in done.out
    assert done.err.startswith("degraded: store 'embedder' failed (EmbeddingError) during embed")
    done = rankblend("recall", "refunds", "--db", notes, "--scope", TENANT, *down, "--strict")
    assert (done.code, done.out) == (1, "")
    assert len(done.errors) == 1
    assert "failed during embed" in done.errors[0]
