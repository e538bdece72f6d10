from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankblend.times import as_utc, as_utc_text, latest, seconds_of

AWARE = st.datetimes(
    min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30),  # noqa: DTZ001 - bounds
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=-11)), timezone(timedelta(hours=14))]),
)  # fmt: skip


@given(AWARE)
def test_seconds_when_made_a_moment_again_then_is_the_same_to_rounding(moment: datetime) -> None:
    # Beyond 2^32 days or so a double has no room for single microseconds.
    assert abs(as_utc(seconds_of(moment)) - moment) <= timedelta(microseconds=32)
    assert seconds_of(moment.isoformat()) == seconds_of(moment)


@pytest.mark.parametrize("value", [3, None, object(), b"2026-01-01T00:00:00Z"])
def test_seconds_when_no_moment_then_type_error(value: object) -> None:
    with pytest.raises(TypeError, match="expected an aware datetime"):
        seconds_of(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["soon", "2026-01-01", datetime(2026, 1, 1)])  # noqa: DTZ001
def test_seconds_when_no_zone_or_no_time_then_value_error(value: str | datetime) -> None:
    with pytest.raises(ValueError, match="expected"):
        seconds_of(value)


def test_as_utc_when_none_or_beyond_the_last_moment_then_none_or_the_last() -> None:
    assert as_utc(None) is None
    assert as_utc_text(None) is None
    assert as_utc(datetime.max.replace(tzinfo=UTC).timestamp()).year == 9999
    assert as_utc_text(0.0) == "1970-01-01T00:00:00+00:00"


def test_latest_when_some_are_none_then_the_greatest_of_the_others() -> None:
    assert latest(None, 1.0, 2.0) == 2.0
    assert latest(None) is None
