from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from attrs.exceptions import FrozenInstanceError

from rankblend.errors import InvalidArgumentError, InvalidArrayError, InvalidSignalError
from rankblend.relevance import STANDARD_SIGNALS, RelevanceSignals, SignalTable, checked_signal
from rankblend.values import real_number, shown

NAN = math.nan


class TestRelevanceSignals:
    def test_present_when_others_are_given_first_then_standard_names_lead_in_their_order(
        self,
    ) -> None:
        signals = RelevanceSignals(zeal=0.1, proximity=0.5, able=0.2, cue=0.9)
        assert list(signals.present().items()) == [
            ("cue", 0.9),
            ("proximity", 0.5),
            ("zeal", 0.1),
            ("able", 0.2),
        ]

    def test_present_when_written_to_then_refuses(self) -> None:
        with pytest.raises(TypeError):
            RelevanceSignals(cue=0.5).present()["cue"] = 1.0  # type: ignore[index]

    def test_present_when_zero_then_is_an_observation(self) -> None:
        assert dict(RelevanceSignals(cue=0.0).present()) == {"cue": 0.0}

    def test_attribute_when_signal_is_present_then_is_its_value(self) -> None:
        assert RelevanceSignals(cue=0.5, freshness=1).freshness == 1.0

    @pytest.mark.parametrize("name", STANDARD_SIGNALS)
    def test_attribute_when_standard_signal_is_absent_then_is_none(self, name: str) -> None:
        assert getattr(RelevanceSignals(), name) is None

    def test_attribute_when_other_was_given_as_none_then_is_none(self) -> None:
        signals = RelevanceSignals(freshness=None)
        assert signals.freshness is None
        assert signals.names() == ("freshness",)

    def test_attribute_when_never_given_then_raises(self) -> None:
        with pytest.raises(AttributeError, match="freshness") as caught:
            _ = RelevanceSignals(cue=0.5).freshness
        assert caught.value.name == "freshness"
        assert not hasattr(RelevanceSignals(), "__array__")

    def test_name_when_a_method_has_it_then_present_still_gives_the_value(self) -> None:
        signals = RelevanceSignals(present=0.25, self=0.5)
        assert dict(signals.present()) == {"present": 0.25, "self": 0.5}

    @pytest.mark.parametrize(
        "value",
        [
            1,
            0,
            0.5,
            np.float32(0.5),
            np.float64(1.0),
            np.int64(1),
            np.uint8(0),
            Fraction(1, 3),
            np.array(0.5),
        ],
    )
    def test_value_when_real_and_within_then_becomes_a_float(self, value: object) -> None:
        got = RelevanceSignals(cue=value).cue  # type: ignore[arg-type]
        assert type(got) is float
        assert got == float(value)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "value",
        [
            NAN, math.inf, -math.inf, True, False, np.bool_(True), "0.5", b"1", 1.0000000000000002,
            -5e-324, 2, -1, 10**400, 1j, [0.5], np.array([0.5]), np.float64("nan"), Exception("x"),
        ],
        ids=repr,
    )  # fmt: skip
    @pytest.mark.parametrize("name", ["cue", "freshness"])
    def test_value_when_no_real_in_range_then_refuses_by_name(
        self, name: str, value: object
    ) -> None:
        with pytest.raises(InvalidSignalError) as caught:
            RelevanceSignals(**{name: value})  # type: ignore[arg-type]
        assert caught.value.signal == name
        assert name in str(caught.value)
        assert "[0, 1]" in str(caught.value)

    @pytest.mark.parametrize("name", ["", "a b", "1st", "größe", "store.cosine", "a-b", "a\n"])
    def test_name_when_no_identifier_then_refuses(self, name: str) -> None:
        with pytest.raises(InvalidArgumentError):
            RelevanceSignals(**{name: 0.5})

    def test_negative_zero_when_given_then_is_zero(self) -> None:
        assert math.copysign(1.0, RelevanceSignals(cue=-0.0).cue or 0.0) == 1.0

    def test_equality_when_same_present_values_then_order_and_absent_ones_play_no_part(
        self,
    ) -> None:
        left = RelevanceSignals(a=0.1, b=0.2, cue=1)
        right = RelevanceSignals(cue=1.0, b=0.2, a=0.1, c=None)
        assert left == right
        assert hash(left) == hash(right)
        assert left != RelevanceSignals(a=0.1, b=0.2)
        assert left != RelevanceSignals(a=0.1, b=0.25, cue=1)
        assert left != {"a": 0.1, "b": 0.2, "cue": 1.0}

    def test_equality_when_zero_or_absent_then_differ(self) -> None:
        assert RelevanceSignals(cue=0.0) != RelevanceSignals()

    def test_attribute_when_assigned_then_refuses(self) -> None:
        with pytest.raises(FrozenInstanceError):
            RelevanceSignals(cue=0.5).cue = 0.7  # type: ignore[misc]

    def test_repr_when_some_are_absent_then_shows_the_present_ones(self) -> None:
        assert repr(RelevanceSignals(b=0.5, c=None, cue=0.25)) == (
            "RelevanceSignals(cue=0.25, b=0.5)"
        )

    def test_copies_when_made_then_equal_with_the_same_names(self) -> None:
        signals = RelevanceSignals(cue=0.5, a=None, b=0.1)
        for other in (pickle.loads(pickle.dumps(signals)), copy.deepcopy(signals)):
            assert other == signals
            assert other.names() == signals.names()
        assert not hasattr(RelevanceSignals.__new__(RelevanceSignals), "anything")

    def test_arguments_when_positional_then_refuses(self) -> None:
        with pytest.raises(TypeError):
            RelevanceSignals(0.5)  # type: ignore[misc]


class TestSignalTable:
    def table(self) -> SignalTable:
        return SignalTable(
            ["m1", "m2", "m3"],
            ("freshness", "cue", "nobody"),
            [[0.5, NAN, NAN], [NAN, NAN, NAN], [0.0, 1.0, NAN]],
        )

    def test_values_when_kept_then_are_a_read_only_copy(self) -> None:
        given = np.array([[0.5], [NAN]])
        table = SignalTable(["a", "b"], ["cue"], given)
        given[0, 0] = 0.9
        assert table.values[0, 0] == 0.5
        assert table.values.dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            table.values[0, 0] = 0.9
        with pytest.raises(ValueError, match="read-only"):
            table.column("cue")[0] = 0.9
        with pytest.raises(FrozenInstanceError):
            table.ids = ()  # type: ignore[misc]

    @pytest.mark.parametrize("dtype", [np.float32, np.float64, np.longdouble, np.int8, np.uint64])
    def test_values_when_other_real_dtype_then_become_float64(self, dtype: type) -> None:
        table = SignalTable(["a"], ["cue", "b"], np.array([[1, 0]], dtype=dtype))
        assert table.values.dtype == np.float64
        assert table.values.tolist() == [[1.0, 0.0]]

    def test_values_when_fortran_ordered_then_are_the_same_matrix(self) -> None:
        matrix = np.array([[0.1, 0.2], [0.3, 0.4]])
        left = SignalTable(["a", "b"], ["x", "y"], matrix)
        assert left == SignalTable(["a", "b"], ["x", "y"], np.asfortranarray(matrix))

    @pytest.mark.parametrize(
        "values",
        [
            [0.5], [[0.5, 0.5]], [[0.5], [0.5], [0.5]], [[[0.5]], [[0.5]]], [["0.5"], ["0.1"]],
            [[True], [False]], [[1j], [0j]], [[0.5], [0.5, 0.1]], [[None], [0.5]], None, "text",
        ],
        ids=repr,
    )  # fmt: skip
    def test_values_when_no_real_matrix_of_that_shape_then_refuses(self, values: object) -> None:
        with pytest.raises(InvalidArrayError) as caught:
            SignalTable(["a", "b"], ["cue"], values)  # type: ignore[arg-type]
        assert caught.value.name == "values"

    @pytest.mark.parametrize("value", [math.inf, -math.inf, 1.0000000000000002, -5e-324, 2])
    def test_values_when_out_of_range_then_names_the_signal(self, value: float) -> None:
        with pytest.raises(InvalidSignalError) as caught:
            SignalTable(["a", "b"], ["cue", "late"], [[0.5, NAN], [NAN, value]])
        assert caught.value.signal == "late"
        assert caught.value.value == value

    def test_names_when_twice_or_no_identifier_then_refuses(self) -> None:
        for names in (("cue", "cue"), ("cue", "a b"), ("cue", 3)):
            with pytest.raises(InvalidArrayError, match=r"names\[1\]"):
                SignalTable(["a"], names, [[0.5, 0.5]])  # type: ignore[arg-type]

    def test_ids_when_twice_or_no_string_then_refuses(self) -> None:
        with pytest.raises(InvalidArrayError, match="distinct"):
            SignalTable(["a", "a"], ["cue"], [[0.5], [0.5]])
        with pytest.raises(InvalidArrayError, match=r"ids\[1\]"):
            SignalTable(["a", 2], ["cue"], [[0.5], [0.5]])  # type: ignore[list-item]

    def test_negative_zero_when_given_then_is_zero(self) -> None:
        assert not np.signbit(SignalTable(["a"], ["cue"], [[-0.0]]).values[0, 0])

    def test_column_when_unknown_then_all_absent(self) -> None:
        column = self.table().column("other")
        assert column.shape == (3,)
        assert column.dtype == np.float64
        assert np.isnan(column).all()

    def test_column_when_known_then_its_values(self) -> None:
        assert np.array_equal(self.table().column("cue"), [NAN, NAN, 1.0], equal_nan=True)

    def test_signals_when_row_is_asked_then_absent_ones_are_none(self) -> None:
        signals = self.table().signals(0)
        assert signals == RelevanceSignals(freshness=0.5)
        assert signals.nobody is None
        assert signals.names() == ("cue", "freshness", "nobody")
        with pytest.raises(IndexError):
            self.table().signals(3)

    def test_round_trip_when_names_are_given_then_equal_to_the_last_name(self) -> None:
        table = self.table()
        assert SignalTable.from_signals(table, names=table.names) == table
        assert SignalTable.from_signals(dict(table), names=table.names) == table

    def test_round_trip_when_names_are_not_given_then_only_their_order_is_the_standard_one(
        self,
    ) -> None:
        back = SignalTable.from_signals(self.table())
        assert back.names == ("cue", "freshness", "nobody")
        assert [signals for _, signals in back] == [signals for _, signals in self.table()]

    def test_round_trip_when_standard_signal_is_emitted_by_nobody_then_keeps_its_column(
        self,
    ) -> None:
        table = SignalTable(["a"], ["salience", "x"], [[NAN, 0.5]])
        assert SignalTable.from_signals(table) == table

    def test_from_signals_when_a_present_signal_is_not_named_then_refuses(self) -> None:
        with pytest.raises(InvalidArgumentError, match="freshness"):
            SignalTable.from_signals(self.table(), names=["cue"])

    def test_from_signals_when_value_is_no_signals_then_refuses_all(self) -> None:
        with pytest.raises(InvalidArgumentError) as caught:
            SignalTable.from_signals({"a": {"cue": 0.5}, "b": 3})  # type: ignore[dict-item]
        assert len(caught.value.problems) == 2

    def test_table_when_empty_then_keeps_its_names(self) -> None:
        table = SignalTable([], ["cue"], np.empty((0, 1)))
        assert len(table) == 0
        assert list(table) == []
        assert SignalTable.from_signals({}, names=["cue"]) == table
        assert SignalTable.from_signals({}).values.shape == (0, 0)
        assert SignalTable(["a"], [], np.empty((1, 0))).signals(0) == RelevanceSignals()

    def test_equality_when_any_part_differs_then_unequal(self) -> None:
        table = self.table()
        same = SignalTable(table.ids, table.names, table.values)
        assert table == same
        assert hash(table) == hash(same)
        assert table != SignalTable(("m1", "m2", "m4"), table.names, table.values)
        assert table != SignalTable(table.ids, ("freshness", "cue", "x"), table.values)
        assert table != SignalTable(table.ids, table.names, np.zeros((3, 3)))

    def test_repr_when_printed_then_says_size_and_names(self) -> None:
        assert repr(self.table()) == "SignalTable(3 × freshness, cue, nobody)"

    def test_pickle_when_loaded_then_equal(self) -> None:
        assert pickle.loads(pickle.dumps(self.table())) == self.table()


def test_real_number_when_bool_text_or_huge_then_says_so() -> None:
    assert real_number(True) is None
    assert real_number("1") is None
    assert real_number(10**400) == math.inf
    assert real_number(-(10**400)) == -math.inf
    assert real_number(Fraction(10**400)) == math.inf
    assert real_number(np.int8(3)) == 3.0


def test_checked_signal_when_valid_then_a_float() -> None:
    assert checked_signal("cue", 1) == 1.0


def test_shown_when_text_is_long_or_number_huge_then_says_only_what_it_is() -> None:
    assert shown("high") == '"high"'
    assert shown("x" * 41) == "a text of 41 characters"
    assert shown(3) == "3"
    assert shown(None) == "None"
    assert shown(10**5000) == "int"
    assert shown([1]) == "list"


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))]
)
def test_table_when_copied_then_is_equal_and_still_cannot_be_written(again: Any) -> None:
    table = SignalTable(["a"], ["cue", "salience"], [[0.5, math.nan]])
    assert again(table) == table
    assert not again(table).values.flags.writeable
