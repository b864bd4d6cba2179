"""A family: one file that stands for many definitions."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest
from farshift.benchmarks.benchmark import load_benchmarks
from farshift.core.errors import BadDefinition
from farshift.core.plugins import expand_family
from farshift.loaders.freezing.freeze import freeze, read_drafts
from hypothesis import given
from hypothesis import strategies as st

HERE = Path("family.toml")


def test_a_file_without_axes_stands_for_itself():
    record = {"name": "scan/{word}", "parameters": {"at_most": 3}}
    assert list(expand_family(record, HERE)) == [record]


def test_axes_are_multiplied_and_the_lists_of_one_axis_read_side_by_side():
    record = {
        "name": "digits/{noise}_{percent}_d{draw}",
        "parameters": {"rate": "{rate}", "seed": "draw {draw}", "table": ["{rate}", "{noise}"]},
        "vary": [{"noise": ["pair", "flip"]}, {"percent": [20, 40], "rate": [0.2, 0.4]}, {"draw": [1, 2, 3]}],
    }
    result = list(expand_family(record, HERE))
    expected = [
        {
            "name": f"digits/{noise}_{percent}_d{draw}",
            "parameters": {"rate": percent / 100, "seed": f"draw {draw}", "table": [percent / 100, noise]},
        }
        for noise, percent, draw in product(("pair", "flip"), (20, 40), (1, 2, 3))
    ]
    assert result == expected


@given(st.dictionaries(st.sampled_from("abc"), st.lists(st.integers(), min_size=1, max_size=4), min_size=1, max_size=3))
def test_a_family_has_as_many_members_as_its_axes_have_combinations(axes):
    record = {"vary": [{name: values} for name, values in axes.items()], "all": [f"{{{name}}}" for name in axes]}
    result = [member["all"] for member in expand_family(record, HERE)]
    assert result == [list(combination) for combination in product(*axes.values())]


def test_a_place_that_no_axis_names_is_left_as_it_is():
    record = {"prompt": {"query": "{a} + {b} {sign}"}, "vary": [{"sign": ["=", "->"]}]}
    assert [member["prompt"]["query"] for member in expand_family(record, HERE)] == ["{a} + {b} =", "{a} + {b} ->"]


@pytest.mark.parametrize(
    ("axes", "complaint"),
    [
        ([{"x": [1, 2], "y": [1]}], "must have the same length, not zero: x has 2, y has 1"),
        ([{"x": []}], "must have the same length, not zero: x has 0"),
        ([{"x": 3}], "a list for each"),
        ([{}], "a list for each"),
        (3, "write .*vary.*, a table of lists"),
        ([{"x": [1]}, {"x": [2]}], "a name is on two axes"),
        ([{"z": [1]}, {"x": [2]}], r"nothing in the file uses \{z\}"),
    ],
)
def test_axes_that_do_not_fit_are_refused(axes, complaint):
    with pytest.raises(BadDefinition, match=complaint):
        list(expand_family({"name": "{x}", "vary": axes}, HERE))


FAMILY = """
name = "scan/short_{words}"
version = 1
kind = "length"
title = "a family"
label = "actions"
rule = "length/threshold"
source = { name = "scan" }
parameters = { field = "actions", at_most = "{words}" }
[[vary]]
words = WORDS
"""


def family(folder: Path, words: str) -> Path:
    path = folder / "short.toml"
    path.write_text(FAMILY.replace("WORDS", words))
    return path


def test_every_member_is_frozen_as_if_it_stood_alone(farshift, tmp_path):
    path = family(tmp_path, "[10, 12]")
    done = farshift("splits", "build", path, "--out", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stderr
    frozen = json.loads(done.stdout)
    assert [item["split"] for item in frozen] == ["scan/short_10@1", "scan/short_12@1"]
    alone = tmp_path / "alone.toml"
    alone.write_text(path.read_text().split("[[vary]]")[0].replace('"{words}"', "12").replace("{words}", "12"))
    assert freeze(alone, tmp_path / "again")[0].identity == frozen[1]["identity"]


def test_a_split_read_from_published_files_must_ship_its_rows(tmp_path):
    path = family(tmp_path, "[10]")
    pin = f'[[files]]\nname = "list.txt"\nsha256 = "{"0" * 64}"\nbytes = 3\n'
    path.write_text(path.read_text() + pin)
    with pytest.raises(BadDefinition, match="must have ships_rows = true"):
        read_drafts(path)


def test_one_file_defines_many_benchmarks(tmp_path, monkeypatch):
    folder = tmp_path / "benchmarks/definitions"
    folder.mkdir(parents=True)
    (folder / "many.toml").write_text(
        """
name = "own/{task}"
split = "scan/{task}@1"
title = "{task}"
metrics = [{ name = "exact_match", version = 1 }]
task = { type = "sequence", inputs = ["command"], label = "actions" }
views = { id = { part = "train" }, ood = { part = "ood_test" } }
[[vary]]
task = ["length", "addprim_jump"]
"""
    )
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    result = load_benchmarks()
    assert result["own/length"].definition.split == "scan/length@1"
    assert result["own/addprim_jump"].definition.split == "scan/addprim_jump@1"
    assert result["own/length"].identity("full") != result["own/addprim_jump"].identity("full")


def test_one_definition_of_a_family_may_have_keys_of_its_own():
    record = {"name": "{x}/{y}", "suites": ["full"], "vary": [{"x": ["a", "b"]}, {"y": [1, 2]}]}
    result = list(expand_family(record | {"only": {"b/1": {"suites": ["core", "full"], "notes": "{x} stays"}}}, HERE))
    assert [item["name"] for item in result] == ["a/1", "a/2", "b/1", "b/2"]
    assert [item["suites"] for item in result] == [["full"], ["full"], ["core", "full"], ["full"]]
    assert [item.get("notes") for item in result] == [None, None, "{x} stays", None]


@pytest.mark.parametrize(
    ("only", "said"),
    [
        ({"c/1": {"suites": []}}, "only: the file defines no c/1$"),
        ({"a/1": 3}, r'only: write \[only\."NAME"\], a table of keys'),
        ([], r'only: write \[only\."NAME"\], a table of keys'),
    ],
)
def test_keys_of_a_definition_that_is_not_there_are_refused(only, said):
    with pytest.raises(BadDefinition, match=said):
        list(expand_family({"name": "a/1", "only": only}, HERE))
