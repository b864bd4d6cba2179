"""Splits by whole periods of time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from farshift.core.errors import BadDefinition
from farshift.splits.rules.time import periods


def hours(count=1000):
    return pa.table({"row_id": np.arange(count, dtype=np.uint64), "hour": np.arange(count)})


def test_whole_periods_are_tested_and_later_ones_are_the_shift():
    result = periods(hours(), field="hour", per=24, first=2, last=29, gap=1, id_test=0.25, id_val=0.1, seed="s")
    period = np.arange(1000) // 24
    parts = {number: set(result.part[period == number].tolist()) for number in range(42)}
    assert all(len(names) == 1 for names in parts.values())
    assert parts[0] == parts[1] == parts[30] == {""}
    assert all(parts[number] == {"ood_test"} for number in range(31, 42))
    named = [next(iter(parts[number])) for number in range(2, 30)]
    assert (named.count("id_test"), named.count("id_val"), named.count("train")) == (7, 3, 18)
    assert result.severity[period == 33].tolist() == [4] * 24
    assert result.severity[period <= 29].max() == 0
    assert result.group[25] == "1"


def test_the_order_of_rows_does_not_matter():
    table = hours()
    order = np.random.default_rng(0).permutation(1000)
    options = {"field": "hour", "per": 10, "last": 50, "id_test": 0.2, "seed": "s"}
    assert periods(table.take(order), **options).part.tolist() == periods(table, **options).part[order].tolist()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"per": 0, "last": 1}, "a period has at least one step"),
        ({"per": 1, "last": 1, "id_test": 0.6, "id_val": 0.5}, "below 1 together"),
        ({"per": 1, "last": 1, "first": 5}, "no row has hour in the periods"),
    ],
)
def test_periods_that_cannot_be_are_refused(options, complaint):
    with pytest.raises(BadDefinition, match=complaint):
        periods(hours(), field="hour", **options)
