"""The retry policy: what is tried again, how often, and after which pauses."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest
from farshift.core.errors import Unavailable
from farshift.core.retry import (
    LONGEST_PAUSE,
    PAUSE,
    TRIES,
    TransientError,
    call_with_retries,
    compute_backoff,
    is_retryable,
    parse_retry_after,
)
from hypothesis import given
from hypothesis import strategies as st

asked = st.none() | st.floats(0, TRIES * LONGEST_PAUSE)


@given(st.integers(1, 100), asked)
def test_pauses_double_or_are_what_the_server_asks_and_never_longer_than_the_longest(failed, seconds):
    result = compute_backoff(failed, seconds)
    assert result == min(PAUSE * 2.0 ** (failed - 1) if seconds is None else seconds, LONGEST_PAUSE)
    assert compute_backoff(failed + 1, seconds) >= result


@given(st.lists(asked, max_size=2 * TRIES))
def test_as_many_tries_as_there_are_faults_and_no_more_than_the_most(faults):
    left, waits = list(faults), []

    def attempt() -> str:
        if left:
            raise TransientError("it broke", left.pop(0))
        return "answer"

    if len(faults) < TRIES:
        assert call_with_retries(attempt, "x could not be had", waits.append) == "answer"
    else:
        with pytest.raises(Unavailable, match=rf"^x could not be had in {TRIES} tries \(it broke\): try again later$"):
            call_with_retries(attempt, "x could not be had", waits.append)
    assert len(faults) - len(left) == min(len(faults), TRIES)
    assert waits == [compute_backoff(failed, seconds) for failed, seconds in enumerate(faults[: TRIES - 1], 1)]


def test_a_server_that_asks_for_hours_is_not_asked_again():
    def attempt() -> None:
        raise TransientError("busy", 7200)

    with pytest.raises(Unavailable, match=r"^x \(busy\): try again after 2 h"):
        call_with_retries(attempt, "x", pytest.fail)


def test_any_other_error_is_final():
    def attempt() -> None:
        raise Unavailable("refused")

    with pytest.raises(Unavailable, match=r"^refused$"):
        call_with_retries(attempt, "x", pytest.fail)


@given(st.integers(100, 599))
def test_a_status_may_pass_where_the_server_was_late_busy_or_broken(status):
    assert is_retryable(status) == (status in (408, 425, 429) or (status // 100 == 5 and status != 501))


@given(st.floats(0, 1e6))
def test_a_wait_in_seconds_is_read_to_the_digit(seconds):
    assert parse_retry_after(str(seconds)) == seconds


@given(st.text())
def test_no_header_is_an_error(text):
    result = parse_retry_after(text)
    assert result is None or result >= 0.0


def test_a_wait_until_a_date_is_read_and_what_is_no_wait_is_none():
    assert parse_retry_after(formatdate(time.time() + 100, usegmt=True)) == pytest.approx(100, abs=2)
    assert parse_retry_after(formatdate(time.time() - 100, usegmt=True)) == 0.0
    assert parse_retry_after("-5") == 0.0
    assert [parse_retry_after(value) for value in (None, "", "soon", "nan", "inf")] == [None] * 5
