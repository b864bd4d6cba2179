"""A split over data of one's own, by a ten-line file."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomli_w
from farshift.core.errors import BadDefinition, Unavailable
from farshift.loaders.acquire.own_source import Data, pin_source
from farshift.loaders.acquire.source import read_source
from farshift.loaders.split import load
from own_rows import DRAFT, texts
from pydantic import ValidationError


@pytest.fixture
def home(tmp_path, cache):
    pq.write_table(texts(60), tmp_path / "rows-0.parquet")
    pq.write_table(texts(40, 60), tmp_path / "rows-1.parquet")
    (tmp_path / "long.toml").write_text(DRAFT)
    return tmp_path


def build(farshift, home: Path, *more: str):
    return farshift("splits", "build", home / "long.toml", "--out", home / "splits/manifests", "--json", *more)


def test_ten_lines_make_a_split_with_a_source_that_is_used_like_any_other(farshift, farshift_json, home, monkeypatch):
    frozen = json.loads(build(farshift, home).stdout)
    assert frozen["split"] == "mine/long@1"
    assert frozen["audit"]["why"] == "training reaches severity 10, ood_test begins at 11"
    monkeypatch.setenv("FARSHIFT_PATH", str(home))
    assert load("mine/long", part="train").numpy(["text"])["text"][0].startswith("w")
    assert farshift_json("splits", "verify", "mine/long")[0]["state"] == "verified"
    source = read_source(home / "loaders/sources/mine.toml").definition
    assert source.rows == 100
    assert [(field.name, field.type, field.role) for field in source.fields] == [
        ("text", "string", "input"),
        ("topic", "int64", "label"),
        ("year", "int64", "meta"),
    ]


def test_every_engine_builds_the_same_identity(farshift, home):
    identities = set()
    for number, engine in enumerate(("local", "processes")):
        out = home / f"home{number}" / "splits" / "manifests"
        done = farshift("splits", "build", home / "long.toml", "--out", out, "--engine", engine, "--json")
        identities.add(json.loads(done.stdout)["identity"])
    assert len(identities) == 1


def test_a_second_build_uses_the_source_as_it_was_pinned_and_refuses_other_data(farshift, home):
    first = json.loads(build(farshift, home).stdout)["identity"]
    assert json.loads(build(farshift, home).stdout)["identity"] == first
    pq.write_table(texts(41, 60), home / "rows-1.parquet")
    done = build(farshift, home)
    assert done.returncode == 2
    assert "mine.toml defines 'mine' by other data: give the source another name" in done.stderr


def test_the_source_has_a_place_to_lie_in(farshift, home):
    done = farshift("splits", "build", home / "long.toml", "--out", home / "elsewhere")
    assert done.returncode == 2
    assert "--out must end in splits/manifests" in done.stderr


def data(**changes) -> Data:
    said = {"files": ["rows-*.parquet"], "inputs": {"text": "The Text"}, "labels": ["topic"]}
    return Data.model_validate(said | changes)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"labels": ["topik"]}, r"rows-0\.parquet has no column 'topik' \(it has The Text, topic, year, tags\)"),
        ({"meta": ["tags"]}, r"column 'tags' is list<.*: use columns of numbers, text, bytes or fixed-size lists"),
        ({"labels": ["topic"], "meta": ["topic"]}, "names the field 'topic' twice"),
        ({"inputs": ["The Text"]}, "field name 'The Text': use lower-case letters"),
    ],
)
def test_data_that_do_not_fit_are_refused_before_anything_is_written(home, changes, complaint):
    with pytest.raises(BadDefinition, match=complaint):
        pin_source(data(**changes), "mine", home, home)
    assert not (home / "loaders").exists()


def test_files_that_are_not_there_are_named(home):
    with pytest.raises(Unavailable, match=r"no file .*/absent\.parquet"):
        pin_source(data(files=["absent.parquet"]), "mine", home, home)
    (home / "more").mkdir()
    pq.write_table(texts(5), home / "more" / "rows-0.parquet")
    with pytest.raises(BadDefinition, match="two files have the same name"):
        pin_source(data(files=["rows-*.parquet", "more/*.parquet"]), "mine", home, home)


def test_fixed_size_lists_are_tensors_and_numbers_of_any_width_are_wide(home):
    pixels = pa.FixedSizeListArray.from_arrays(pa.array(range(12), pa.uint8()), 4)
    table = pa.table({"pixels": pixels, "ok": [True, False, True], "x": pa.array([1, 2, 3], pa.float32())})
    pq.write_table(table, home / "images.parquet")
    made = pin_source(data(files=["images.parquet"], inputs=["pixels"], labels=["ok"], meta=["x"]), "own", home, home)
    assert [field.type for field in made.schema.fields] == ["uint8[4]", "bool", "float64"]
    rows = made.table().to_pylist()
    assert sorted(row["pixels"] for row in rows) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert {row["x"] for row in rows if row["ok"]} == {1.0, 3.0}


def test_a_table_without_inputs_is_refused():
    with pytest.raises(ValidationError, match="inputs"):
        data(inputs=[])


def test_rows_that_changed_upstream_are_counted_and_named(farshift, home, monkeypatch):
    """The files behind a pinned source have other rows now; a manifest that lists its rows knows which."""
    (home / "long.toml").write_text(DRAFT.replace("source =", "ships_rows = true\nsource ="))
    assert build(farshift, home).returncode == 0
    monkeypatch.setenv("FARSHIFT_PATH", str(home))
    path = home / "loaders/sources/mine.toml"
    pinned = read_source(path)
    ids = dict(zip(pinned.table()["text"].to_pylist(), pinned.table()["row_id"].to_pylist(), strict=True))
    table = texts(100)
    labels = table["topic"].to_pylist()
    labels[7] = (labels[7] + 1) % 5
    changed = table.set_column(1, "topic", pa.array(labels, pa.int32())).slice(0, 99)
    pq.write_table(changed, home / "rows-2.parquet")
    other = pin_source(data(files=["rows-2.parquet"], meta=["year"]), "other", home, home)
    old = tomllib.loads(path.read_text())
    old["distributions"] = tomllib.loads(other.path.read_text())["distributions"]
    path.write_text(tomli_w.dumps(old))
    monkeypatch.setenv("FARSHIFT_CACHE", str(home / "another-cache"))
    monkeypatch.setenv("FARSHIFT_MIRRORS", str(home))
    done = farshift("splits", "verify", "mine/long", "--json")
    assert done.returncode == 1
    why = json.loads(done.stdout)[0]["why"]
    gone, moved = (ids[table["The Text"][row].as_py()] for row in (99, 7))
    assert "gives 99 rows of digest" in why
    assert "of the 100 rows that mine/long@1 lists, 1 rows are not in the source and 1 changed" in why
    assert f"{gone:016x}" in why
    assert f"{moved:016x}" in why


def test_rows_that_are_equal_in_every_field_prove_too(farshift, farshift_json, home, monkeypatch):
    twice = pa.concat_tables([texts(60), texts(15).slice(3, 5)])
    pq.write_table(twice, home / "rows-0.parquet")
    done = build(farshift, home)
    assert done.returncode == 0, done.stderr
    monkeypatch.setenv("FARSHIFT_PATH", str(home))
    assert json.loads(done.stdout)["audit"]["duplicate_inputs"]["within"]["train"] == 5
    assert farshift_json("splits", "verify", "mine/long")[0]["state"] == "verified"


@pytest.mark.parametrize("pattern", ["", ".", "**x", "/"])
def test_what_is_no_pattern_of_files_is_one_error(home, pattern):
    with pytest.raises(BadDefinition, match="is no pattern of files"):
        pin_source(data(files=[pattern]), "mine", home, home)


@pytest.mark.parametrize("name", ["My-Data", "../mine", ""])
def test_a_source_is_named_by_small_letters(home, name):
    with pytest.raises(BadDefinition, match="use lower-case letters, digits and _"):
        pin_source(data(), name, home, home)


PIN = """
import sys
from pathlib import Path
from farshift.loaders.acquire.own_source import Data, pin_source
home = Path(sys.argv[1])
data = Data(files=["rows-*.parquet"], inputs={"text": "The Text"}, labels=["topic"])
print(len(pin_source(data, "mine", home, home).table()))
"""


def test_two_processes_that_pin_one_source_make_it_once(home):
    command = [sys.executable, "-c", PIN, str(home)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=60)[0] for process in started] == ["100\n", "100\n"]
    assert not list((home / "cache" / "sources").glob(".*.tmp"))
