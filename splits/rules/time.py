"""Time: train on rows up to a date, test on later ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import BadDefinition
from ..assignment import Assignment
from ..measures.words import parse_moment, read_numeric_column, read_time_column
from ._conditions import Conditions, draw_id_test, draw_shares, match_conditions

if TYPE_CHECKING:
    import pyarrow as pa

_UNITS = {"day": "D", "month": "M", "year": "Y"}
_DAY = np.timedelta64(1, "D")
_SHARED = "the training periods"


def cutoff(table: pa.Table, *, field: str, first: int, last: int, id_test: int, seed: str) -> Assignment:
    """Rows whose period (`field`, integers: months, years) is in `first`..`last` train, except `id_test` rows drawn by
    `seed`; later rows are `ood_test`, earlier ones are dropped. Severity counts the periods since `last`, and each
    period is a group.

    Parameters:
        field: the integer field with the period.
        first: the first period that trains.
        last: the last period that trains.
        id_test: the number of rows of those periods in `id_test`.
    """
    period = read_numeric_column(table, field)
    known = np.flatnonzero((period >= first) & (period <= last))
    part = np.where(period > last, "ood_test", "")
    part[known] = "train"
    draw_id_test(part, known, table["row_id"].to_numpy(), id_test, seed, f"have {field} in {first}..{last}")
    return Assignment(part=part, severity=np.maximum(period - last, 0), group=period.astype(np.int64).astype(np.str_))


def periods(
    table: pa.Table,
    *,
    field: str,
    per: int,
    last: int,
    first: int = 0,
    gap: int = 0,
    tests: int = 0,
    trains: Conditions | None = None,
    id_test: float = 0.0,
    id_val: float = 0.0,
    seed: str = "",
) -> Assignment:
    """Train on some periods of time, test on later ones. `field` counts steps (integers: hours, rows of a stream), of
    which `per` are a period; period 0 begins at 0. Periods from `first` to `last` train, except the shares `id_test`
    and `id_val` of them, drawn by `seed` as complete periods, so that no test row has neighbours of the same day in
    training. Periods more than `gap` after `last` are `ood_test`, or only the first `tests` of them; all others are
    dropped. Severity counts the periods since `last`, and each period is a group.

    With `tests` = 1, the splits for `last` = t, t + 1, .. are evolving domain generalisation: train on periods up to t,
    test on the next.

    Parameters:
        field: the integer field with the step.
        per: the number of steps in a period.
        last: the last period that trains.
        first: the first period that trains.
        gap: the number of periods after `last` that are dropped.
        tests: the number of periods that are tested, 0 for all.
        trains: conditions that rows of `train` and `id_val` must meet (others are dropped).
        id_test: the share of the training periods in `id_test`, from 0 to 1.
        id_val: the share of the training periods in `id_val`.
    """
    if per < 1 or min(gap, tests) < 0:
        raise BadDefinition(
            f"per = {per}, gap = {gap}, tests = {tests}: a period has at least one step, and gap and tests are no less "
            "than 0"
        )
    period = np.floor_divide(read_numeric_column(table, field), per).astype(np.int64)
    known = (period >= first) & (period <= last)
    if not known.any():
        raise BadDefinition(f"no row has {field} in the periods {first}..{last} of {per}")
    end = last + gap + tests if tests else period.max()
    part = np.where((period > last + gap) & (period <= end), "ood_test", "")
    every, which = np.unique(period[known], return_inverse=True)
    part[known] = draw_shares(every.astype(np.uint64), seed, id_val, id_test, _SHARED)[which]
    if trains:
        part[np.isin(part, ["train", "id_val"]) & ~match_conditions(table, trains)] = ""
    return Assignment(part=part, severity=np.maximum(period - last, 0), group=period.astype(np.str_))


def before(
    table: pa.Table,
    *,
    field: str,
    until: str,
    since: str = "",
    ood_val_until: str = "",
    period: str = "month",
    id_test: float = 0.0,
    id_val: float = 0.0,
    seed: str = "",
) -> Assignment:
    """Train on rows before a time, test on later ones. `field` is a timestamp; rows from `since` (default: the first
    row) until before `until` train. Those from `until` on are `ood_test`, or `ood_val` if they are before
    `ood_val_until`; those before `since` are dropped. Times are in ISO 8601 ("2024-05-31",
    "2024-05-31T12:30:00+02:00"); without a zone they are UTC.

    Each calendar `period` ("day", "month" or "year") is a group, cut in two if `until` is inside it. The shares
    `id_test` and `id_val` of the training periods (rounded to periods) are drawn by `seed`, so that no test row has
    neighbours of the same day in training. Severity counts the days begun since `until`, 0 before it.

    Parameters:
        field: the timestamp field.
        until: the time from which rows are tested.
        since: the time from which rows train.
        ood_val_until: the time until which rows from `until` on are `ood_val`.
        period: the calendar unit of groups and draws: `day`, `month` or `year`.
        id_test: the share of the training periods in `id_test`, from 0 to 1.
        id_val: the share of the training periods in `id_val`.

    Example:
        parameters = { field = "sold", until = "2024-01-01", id_test = 0.2, seed = "sales/later@1" }
    """
    if period not in _UNITS:
        raise BadDefinition(f"period = {period!r}: use {', '.join(_UNITS)}")
    time, end = read_time_column(table, field), parse_moment(until, "until")
    begin = parse_moment(since, "since") if since else time.min() if len(time) else end
    later = parse_moment(ood_val_until, "ood_val_until") if ood_val_until else end
    if (since and begin >= end) or later < end:
        raise BadDefinition(
            f"until = {until!r}: rows from {begin} (since) on train, and ood_val_until is no earlier than until"
        )
    known = (time >= begin) & (time < end)
    if not known.any():
        raise BadDefinition(f"no row has {field}{f' from {begin}' if since else ''} before {end}")
    periods = time.astype(f"datetime64[{_UNITS[period]}]")
    every, which = np.unique(periods[known], return_inverse=True)
    part = np.select([time < begin, known, time < later], ["", "train", "ood_val"], "ood_test").astype("U8")
    part[known] = draw_shares(every.astype(np.int64).astype(np.uint64), seed, id_val, id_test, _SHARED)[which]
    group = periods.astype(np.str_).astype(object)
    cut = (time >= end) & (periods < end)  # a period compares below times inside it
    group[cut] += f" from {end}"
    days = np.where(time >= end, (time - end) // _DAY + 1, 0)
    return Assignment(part=part, severity=days.astype(np.int64), group=group.astype(np.str_))
