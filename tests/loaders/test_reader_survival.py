"""Survival data as a class: what is known of an event within a horizon."""

from __future__ import annotations

import pytest
from farshift.core.errors import BadData, BadDefinition
from farshift.loaders.readers.science import survival as read
from farshift.splits.schema import Field, Schema

SCHEMA = Schema((Field("age", "float64", "input"), Field("came", "int64", "label"), Field("cohort", "string", "meta")))
EVENTS = {"a.csv": {"recur": "rtime", "death": "dtime"}, "b.csv": {"status": "time"}}
A = """age,rtime,recur,dtime,death
40,100,1,900,0
41,100,0,300,1
42,400,1,900,1
43,500,0,500,0
44,200,0,200,0
"""
B = "age,time,status\n50,365,1\n51,366,1\n52,365,0\n"


def known(tmp_path, a=A, events=EVENTS):
    (tmp_path / "a.csv").write_text(a)
    (tmp_path / "b.csv").write_text(B)
    files = {name: tmp_path / name for name in ("a.csv", "b.csv")}
    each = {name: {"constants": {"cohort": name[0]}} for name in files}
    return read(files, schema=SCHEMA, label="came", within=365, events=events, columns={"age": "age"}, each=each)


def test_who_was_not_followed_to_the_horizon_without_an_event_is_left_out(tmp_path):
    result = known(tmp_path).to_pydict()
    # 44 and 52 were followed for no longer than the horizon; 42 recurred after it; 41 died within it
    assert dict(zip(result["age"], result["came"], strict=True)) == {40: 1, 41: 1, 42: 0, 43: 0, 50: 1, 51: 0}
    assert result["cohort"] == ["a"] * 4 + ["b"] * 2


def test_a_file_without_events_and_a_time_that_is_no_number_are_refused(tmp_path):
    with pytest.raises(BadDefinition, match=r"`events` does not name the file b\.csv"):
        known(tmp_path, events={"a.csv": EVENTS["a.csv"]})
    with pytest.raises(BadData, match=r"a\.csv: recur, death, rtime, dtime: a value is not a number"):
        known(tmp_path, a=A.replace("100,1", "soon,1"))
    with pytest.raises(BadData, match="no column"):
        known(tmp_path, a=A.replace("rtime", "r_time"))
