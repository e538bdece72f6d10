"""The gate every embedder passes through."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankblend.embedders import checked, from_callable, identity, is_blank
from rankblend.errors import EmbeddingError, InvalidArgumentError, MissingDependencyError

SECRET = "Ana's account is 4711"


def answering(rows: Any) -> Callable[[Sequence[str]], Any]:
    return lambda texts: rows


def seen_by(calls: list[list[str]], dimension: int = 2) -> Callable[[Sequence[str]], Any]:
    """An embedder that notes what it was asked."""

    def embed(texts: Sequence[str]) -> Any:
        calls.append(list(texts))
        return np.array([[len(text), 1.0] + [0.0] * (dimension - 2) for text in texts])

    return embed


def test_checked_when_vectors_have_any_length_then_rows_are_unit_float32() -> None:
    rows, has_vector = checked(answering(np.array([[3.0, 4.0], [0.0, 1e-3]])), ["a", "b"])
    assert rows.dtype == np.float32
    assert rows.tolist() == [[np.float32(0.6), np.float32(0.8)], [0.0, 1.0]]
    assert has_vector.tolist() == [True, True]


def test_checked_when_a_text_is_blank_then_the_model_never_sees_it_and_its_row_is_nan() -> None:
    calls: list[list[str]] = []
    rows, has_vector = checked(seen_by(calls), ["", "ana", " \t\n", "\u200b\ufeff", "bo", "\x00"])
    assert calls == [["ana", "bo"]]
    assert has_vector.tolist() == [False, True, False, False, True, False]
    assert np.isnan(rows).all(axis=1).tolist() == [True, False, True, True, False, True]


def test_checked_when_every_text_is_blank_then_the_model_is_not_called() -> None:
    calls: list[list[str]] = []
    embedder = seen_by(calls)
    assert checked(embedder, ["", " "], 3).rows.shape == (2, 3)
    assert checked(from_callable(embedder, name="x", dimension=5), [""]).rows.shape == (1, 5)
    assert checked(embedder, []).rows.shape == (0, 0)
    assert calls == []


def test_checked_when_there_are_many_texts_then_they_go_in_batches_in_order() -> None:
    calls: list[list[str]] = []
    texts = ["a" * n for n in (1, 2, 0, 3, 4, 5)]
    rows = checked(seen_by(calls), texts, batch_size=2).rows
    assert calls == [["a", "aa"], ["aaa", "aaaa"], ["aaaaa"]]
    # (len, 1) at unit length: the ratio of the two components is the length of the text
    assert np.rint(rows[[0, 1, 3, 4, 5], 0] / rows[[0, 1, 3, 4, 5], 1]).tolist() == [1, 2, 3, 4, 5]


def test_checked_when_the_embedder_changes_its_list_then_the_callers_texts_stay() -> None:
    def vandal(texts: Sequence[str]) -> Any:
        rows = np.ones((len(texts), 2))
        texts.clear()  # type: ignore[attr-defined]
        return rows

    texts = ["a", "b"]
    checked(vandal, texts)
    assert texts == ["a", "b"]


def test_checked_when_the_embedder_keeps_its_array_then_the_answer_is_a_readonly_copy() -> None:
    kept = np.array([[3.0, 4.0]])
    rows, has_vector = checked(answering(kept), ["a"])
    kept[:] = 7.0
    assert rows[0].tolist() == [np.float32(0.6), np.float32(0.8)]
    assert not rows.flags.writeable
    assert not has_vector.flags.writeable


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (np.ones(2), "shape"),
        (np.ones((1, 1, 2)), "shape"),
        (np.array([["a", "b"]]), "shape"),
        (np.array([[1j, 1.0]]), "shape"),
        (np.array([[True, False]]), "shape"),
        ([[1.0], [1.0, 2.0]], "shape"),
        (None, "shape"),
        (np.ones((2, 2)), "rows"),
        (np.ones((0, 2)), "rows"),
        (np.ones((1, 3)), "length"),
        (np.ones((1, 0)), "length"),
        (np.array([[np.nan, 1.0]]), "non-finite"),
        (np.array([[np.inf, 1.0]]), "non-finite"),
        (np.zeros((1, 2)), "norm"),
        (np.array([[1e-200, 0.0]]), "norm"),  # its square is 0 in float64
        (np.array([[1e200, 1e200]]), "norm"),  # its square overflows float64
    ],
)
def test_checked_when_vectors_cannot_be_used_then_the_error_names_the_reason(
    rows: Any, reason: str
) -> None:
    with pytest.raises(EmbeddingError) as caught:
        checked(answering(rows), [SECRET], 2)
    assert caught.value.reason == reason
    assert SECRET not in str(caught.value)


def test_checked_when_lengths_differ_then_both_are_named() -> None:
    with pytest.raises(EmbeddingError, match="length 2, got length 3"):
        checked(answering(np.ones((1, 3))), ["a"], 2)


def test_checked_when_float32_squares_overflow_but_float64_ones_do_not_then_it_is_a_vector() -> (
    None
):
    rows = checked(answering(np.array([[3e30, 4e30]], dtype=np.float32)), ["a"]).rows
    assert rows == pytest.approx(np.array([[0.6, 0.8]]), abs=1e-7)


def test_checked_when_a_later_batch_has_another_length_then_it_is_refused() -> None:
    def growing(texts: Sequence[str]) -> Any:
        return np.ones((len(texts), len(texts[0])))

    with pytest.raises(EmbeddingError) as caught:
        checked(growing, ["aa", "aaa"], batch_size=1)
    assert caught.value.reason == "length"


def test_checked_when_a_row_is_bad_then_the_position_in_the_call_is_named() -> None:
    def fails_on_b(texts: Sequence[str]) -> Any:
        return np.array([[np.nan if text == "b" else 1.0, 1.0] for text in texts])

    with pytest.raises(EmbeddingError, match="text 3"):
        checked(fails_on_b, ["a", "", "a", "b"], batch_size=2)


def test_checked_when_the_embedder_raises_then_its_message_is_nowhere_in_the_traceback() -> None:
    def leaky(texts: Sequence[str]) -> Any:
        raise RuntimeError(f"cannot embed {texts[0]!r}")

    with pytest.raises(EmbeddingError) as caught:
        checked(from_callable(leaky, name="leaky"), [SECRET])
    assert caught.value.reason == "raised"
    assert caught.value.embedder == "leaky"
    assert "RuntimeError" in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_checked_when_the_embedder_raises_one_of_ours_then_it_passes_unchanged() -> None:
    def missing(texts: Sequence[str]) -> Any:
        raise MissingDependencyError("torch", "torch", "a test")

    with pytest.raises(MissingDependencyError):
        checked(missing, ["a"])


def test_checked_when_interrupted_then_the_interrupt_passes() -> None:
    def interrupted(texts: Sequence[str]) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        checked(interrupted, ["a"])


@pytest.mark.parametrize("texts", ["one text", [1], ["a", None]])
def test_checked_when_texts_are_no_texts_then_the_call_is_refused(texts: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="texts"):
        checked(answering(np.ones((1, 2))), texts)


def test_checked_when_batch_size_is_zero_then_the_call_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="batch_size"):
        checked(answering(np.ones((1, 2))), ["a"], batch_size=0)


@given(st.lists(st.text(), max_size=8), st.integers(1, 5))
def test_checked_for_any_texts_gives_unit_rows_exactly_where_a_text_is_not_blank(
    texts: list[str], batch_size: int
) -> None:
    rows, has_vector = checked(seen_by([]), texts, 2, batch_size=batch_size)
    assert has_vector.tolist() == [not is_blank(text) for text in texts]
    norms = np.linalg.norm(rows.astype(np.float64), axis=1)
    assert np.isnan(norms).tolist() == (~has_vector).tolist()
    assert np.allclose(norms[has_vector], 1.0, rtol=0, atol=1e-6)


def test_identity_when_all_is_stated_then_nothing_is_embedded() -> None:
    calls: list[list[str]] = []
    embedder = from_callable(seen_by(calls), name="mine", dimension=2)
    assert identity(embedder) == "mine/2"
    assert identity(from_callable(seen_by(calls), name="a/b"), dimension=7) == "a/b/7"
    assert calls == []


def test_identity_when_the_dimension_is_unknown_then_the_embedder_is_asked_once() -> None:
    calls: list[list[str]] = []
    assert identity(seen_by(calls, dimension=4)) == "embed/4"
    assert len(calls) == 1


def test_identity_when_it_has_no_name_then_the_kind_of_callable_serves() -> None:
    class Bag:
        def __call__(self, texts: Sequence[str]) -> Any:
            return np.ones((len(texts), 2))

    assert identity(Bag()) == "Bag/2"
    assert identity(answering(np.ones((1, 2)))) == "lambda/2"


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": " "},
        {"name": "x", "dimension": 0},
        {"name": "x", "dimension": True},
        {"name": "x", "dimension": 2.0},
    ],
)
def test_from_callable_when_an_argument_is_invalid_then_it_is_refused(
    arguments: dict[str, Any],
) -> None:
    with pytest.raises(InvalidArgumentError):
        from_callable(seen_by([]), **arguments)


def test_from_callable_when_given_no_function_then_it_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="callable"):
        from_callable(3, name="x")  # type: ignore[arg-type]
