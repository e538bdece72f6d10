"""From a transcript to a capture: one test a rule."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chat_world import (
    DETAILS,
    QUESTION,
    REPLY,
    call,
    calls,
    result,
    said,
    steps,
    trip,
    user,
)

from rankblend.chat import NoQuestionError, NoToolCallsError, transcript_to_capture
from rankblend.chat._transcript import ends_in_unanswered_call, name_of
from rankblend.reasonlets import ReasonletValidationError


def shape(*messages: dict[str, Any]) -> list[str]:
    return steps(transcript_to_capture([user(), *messages], DETAILS))


def test_question_when_there_are_several_then_it_is_the_last_user_message_with_text() -> None:
    picture = user([{"type": "image_url", "image_url": {"url": "data:"}}])
    asked = user([{"type": "text", "text": "Refund"}, {"type": "text", "text": "order 7"}])
    messages = [user("an earlier one"), *trip("old"), asked, picture, user("  \n"), *trip("new")]
    capture = transcript_to_capture(messages, DETAILS)
    assert capture.question == "Refund\norder 7"
    assert steps(capture) == ["new()"]


def test_answer_when_there_are_several_then_it_is_the_last_assistant_text_after_the_question() -> (
    None
):
    messages = [said("Hello"), user(), said("One moment"), *trip("a"), said("Done"), said(None)]
    assert transcript_to_capture(messages, DETAILS).answer == "Done"


def test_answer_when_there_is_no_text_after_the_question_then_there_is_none() -> None:
    assert transcript_to_capture([said("Hi"), user(), *trip("a")], DETAILS).answer is None


def test_graph_when_calls_succeed_then_one_tool_node_each_in_order_with_edges_between() -> None:
    capture = transcript_to_capture([user(), *REPLY], DETAILS)
    assert capture.graph.plain() == {
        "schema_version": 1,
        "nodes": [
            {
                "id": "step-1",
                "type": "tool",
                "tool": "orders.get",
                "properties": {"mnemosyne.arguments": ["id"]},
            },
            {
                "id": "step-2",
                "type": "tool",
                "tool": "payments.refund",
                "properties": {"mnemosyne.arguments": ["amount", "id"]},
            },
        ],
        "edges": [{"from": "step-1", "to": "step-2"}],
    }
    assert capture.validate() == ()


def test_graph_when_a_run_is_repeated_with_other_inputs_then_it_is_the_same() -> None:
    def run(order: int) -> str:
        reply = [*trip("get", id=order), *trip("pay", sum=order * 2, id=order), said(str(order))]
        return transcript_to_capture([user(f"order {order}"), *reply], DETAILS).graph.digest

    assert run(1) == run(2)
    assert run(1) != transcript_to_capture([user(), *trip("get", number=1)], DETAILS).graph.digest


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (result("x", "ok", is_error=True), "flagged"),
        (result("x", "ok", status="error"), "flagged as LangChain does"),
        (result("x", '{"error": "no such order"}'), "only key"),
        (result("x", ' {\n "error" : null, "id": 7}'), "first key"),
        (result("x", "Error: no such order"), "begins with it"),
        (result("x", [{"type": "text", "text": "Errors occurred"}]), "in a part"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_failed_call_when_its_result_says_so_then_it_is_left_out(
    answer: dict[str, Any], why: str
) -> None:
    assert shape(calls(call("bad", "x")), answer, *trip("good")) == ["good()"]


@pytest.mark.parametrize(
    "answer",
    [
        result("x", '{"id": 7, "error": null}'),
        result("x", '{"error": broken'),
        result("x", '["error"]'),
        result("x", '{"errors": []}'),
        result("x", "No Error"),
        result("x", "error"),
        result("x", "", is_error=False, status="success"),
        result("x", None),
    ],
    ids=lambda answer: str(answer["content"]),
)
def test_call_when_its_result_only_resembles_a_failure_then_it_succeeded(
    answer: dict[str, Any],
) -> None:
    assert shape(calls(call("good", "x")), answer) == ["good()"]


def test_failed_call_when_another_predicate_says_so_then_it_is_left_out() -> None:
    messages = [user(), calls(call("a"), call("b")), result("call-a", "nope"), result("call-b")]
    capture = transcript_to_capture(messages, DETAILS, is_failed=lambda m: m["content"] == "nope")
    assert steps(capture) == ["b()"]


def test_retry_when_the_call_before_it_failed_then_only_the_retry_is_a_step() -> None:
    assert shape(*trip("a", failed="a"), *trip("a"), *trip("b")) == ["a()", "b()"]


def test_retry_when_others_made_together_succeeded_then_it_takes_the_failed_place() -> None:
    retried = shape(*trip("a", "b", failed="a"), *trip("a"), *trip("c"))
    assert retried == shape(*trip("a", "b"), *trip("c")) == ["a()", "b()", "c()"]


def test_retry_when_it_fails_too_then_the_next_one_takes_the_place() -> None:
    messages = (*trip("a", "b", failed="a"), *trip("a", "z", failed="a"), *trip("a", "c"))
    assert shape(*messages) == ["a()", "b()", "z()", "c()"]


def test_retry_when_something_else_was_done_first_then_it_comes_after_that() -> None:
    assert shape(*trip("pay", failed=["pay"]), *trip("log_in"), *trip("pay")) == [
        "log_in()",
        "pay()",
    ]


def test_calls_when_made_together_then_they_are_sorted_by_tool_and_argument_names() -> None:
    asked = calls(call("b", "1"), call("a", "2", y=1), call("a", "3", x=1))
    answers = [result("3"), result("1"), result("2")]
    assert shape(asked, *answers) == ["a(x)", "a(y)", "b()"]


def test_repeats_when_in_a_row_then_they_are_one_step() -> None:
    messages = (*trip("a", id=1), *trip("a", id=2), *trip("b", "a", "b"), *trip("a", id=3))
    assert shape(*messages) == ["a(id)", "a()", "b()", "a(id)"]


def test_arguments_when_written_in_any_way_then_only_their_names_are_kept() -> None:
    asked = [
        {"id": "1", "function": {"name": "a", "arguments": {"z": "secret", "b": [1]}}},
        {"id": "2", "function": {"name": "b", "arguments": "not JSON"}},
        {"id": "3", "function": {"name": "c", "arguments": '["secret"]'}},
        {"id": "4", "function": {"name": "d"}},
        {"id": "5", "type": "custom", "custom": {"name": "e", "input": "secret"}},
        {"id": "6", "function": {"name": "f", "arguments": "[" * 100_000}},
    ]
    found = shape(calls(*asked), *(result(each["id"]) for each in asked))
    assert found == ["a(b, z)", "b()", "c()", "d()", "e()", "f()"]


def test_call_when_it_has_no_result_then_it_is_left_out_and_a_stray_result_too() -> None:
    assert shape(calls(call("a"), call("b")), result("call-b"), result("other")) == ["b()"]


def test_results_when_a_model_uses_an_id_again_then_each_belongs_to_the_latest_call() -> None:
    again = [calls(call("a", "0")), result("0"), calls(call("b", "0")), result("0", "Error")]
    assert shape(*again) == ["a()"]
    both_wait = [calls(call("a", "0")), calls(call("b", "0")), result("0")]
    assert shape(*both_wait) == ["b()"]
    twins = [calls(call("a", "0"), call("b", "0")), result("0"), result("0", "Error")]
    assert shape(*twins) == ["a()"]


def test_ignored_tools_when_named_then_their_calls_are_as_if_not_made() -> None:
    look_up = calls(call("find"), call("a"))
    messages = [user(), look_up, result("call-find"), result("call-a", "Error"), *trip("a")]
    capture = transcript_to_capture(messages, DETAILS, ignored_tools=["find"])
    assert steps(capture) == ["a()"]


def test_transcript_when_no_user_message_has_text_then_no_question() -> None:
    with pytest.raises(NoQuestionError) as caught:
        transcript_to_capture([said("Hi"), user(None), *trip("a")], DETAILS)
    assert caught.value.code == "no_question"


@pytest.mark.parametrize(
    "messages", [[], [said("Hello")], trip("a", failed="a"), [calls(call("a"))]]
)
def test_transcript_when_no_call_after_the_question_succeeded_then_no_tool_calls(
    messages: list[Any],
) -> None:
    with pytest.raises(NoToolCallsError) as caught:
        transcript_to_capture([*trip("before"), user(), *messages], DETAILS)
    assert caught.value.code == "no_tool_calls"


def test_transcript_when_it_is_malformed_then_everything_wrong_is_told_and_no_value() -> None:
    wrong = [
        "secret",
        {"role": 1, "content": {"secret": 1}},
        {"role": "tool", "content": "secret"},
        {"role": "assistant", "tool_calls": "secret"},
        {"role": "assistant", "tool_calls": ["secret", {}, {"id": "x", "function": {}}]},
    ]
    with pytest.raises(ReasonletValidationError) as caught:
        transcript_to_capture(wrong, "secret")  # type: ignore[arg-type, list-item]
    assert caught.value.problems == (
        "messages[0]: expected a mapping, got str",
        "messages[1].role: expected text, got int",
        "messages[1].content: expected text, a list of parts or None, got dict",
        "messages[2].tool_call_id: expected text, got NoneType",
        "messages[3].tool_calls: expected a list of calls or None, got str",
        "messages[4].tool_calls[0]: expected a mapping, got str",
        "messages[4].tool_calls[1].id: expected text, got NoneType",
        "messages[4].tool_calls[1].function: expected a mapping, got NoneType",
        "messages[4].tool_calls[2].function.name: expected text, got NoneType",
        "details: expected CaptureDetails, got str",
    )
    assert "secret" not in str(caught.value)
    with pytest.raises(ReasonletValidationError, match="expected a sequence of messages, got int"):
        transcript_to_capture(7, DETAILS)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("messages", "pending"),
    [
        ([user()], False),
        ([user(), calls(call("a"))], True),
        ([user(), calls(call("a"), call("b")), result("call-a")], True),
        ([user(), *trip("a")], False),
        ([user(), *trip("a"), calls(call("a", "2"))], True),
        ([user(), calls(call("a")), said("never mind")], False),
    ],
)
def test_pending_when_the_last_call_has_no_result_and_nothing_follows_then_so(
    messages: list[dict[str, Any]], pending: bool
) -> None:
    assert ends_in_unanswered_call(messages) is pending


def test_name_when_made_of_a_graph_then_its_tools_joined_by_arrows() -> None:
    graph = transcript_to_capture([user(), *REPLY], DETAILS).graph
    assert name_of(graph) == "orders.get → payments.refund"


def test_capture_when_made_then_its_text_form_shows_no_message() -> None:
    capture = transcript_to_capture([user(), *REPLY], DETAILS)
    assert QUESTION not in repr(capture)
    assert "Refunded" not in repr(capture)
    assert json.dumps(capture.graph.plain()).count("7") == 0
