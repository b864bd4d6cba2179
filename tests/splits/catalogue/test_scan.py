"""SCAN's published splits: each is the published set, or what the paper says of it, command by command."""

from __future__ import annotations

import re
from collections import Counter

import pyarrow as pa
import pytest
from farshift import load
from farshift.core.errors import BadData, BadDefinition, UnknownName
from farshift.splits.rules import phrases, published
from published_files import published_file

PRIMITIVE = "(jump|look|run|walk) right"
JUMP = "jump around right"
TEMPLATES = {
    "template_around_right": ("around right", "around right", "turn around right"),
    "template_opposite_right": ("opposite right", "opposite right", "turn opposite right"),
    "template_right": (PRIMITIVE, PRIMITIVE, "turn right"),
    "template_jump_around_right": (JUMP, JUMP, "turn around right"),
    "filler_num0": (JUMP, "around right", "turn around right"),
    "filler_num1": (JUMP, "(jump|run|walk) around right", "turn around right"),
    "filler_num2": (JUMP, "(jump|run) around right", "turn around right"),
    "filler_num3": (JUMP, JUMP, "turn around right"),
}
"""For each split what every test command holds, what no training command does, and what stands in neither."""


def commands(name, part):
    return load(name, part=part).arrow()["command"].to_pylist()


def lines(file):
    text = published_file(f"scan/{file}").read_text()
    return [re.fullmatch("IN: (.+) OUT: .+", line.strip())[1] for line in text.splitlines()]


@pytest.fixture(scope="module")
def grammar():
    return [*commands("scan/length", "train"), *commands("scan/length", "ood_test")]


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_is_in_every_test_command_and_in_no_training_command(name, grammar):
    tested, untrained, dropped = TEMPLATES[name]
    stored = [command for command in grammar if dropped not in command]
    held_out = {command for command in stored if re.search(tested, command)}
    assert set(commands(f"scan/{name}", "ood_test")) == held_out
    trained = {command for command in stored if not re.search(untrained, command)}
    assert set(commands(f"scan/{name}", "train")) == trained


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("template_around_right", "template_split"),
        ("filler_num1", "filler_split"),
        ("mcd1", "mcd_split"),
        ("mcd2", "mcd_split"),
        ("mcd3", "mcd_split"),
    ],
)
@pytest.mark.parametrize(("part", "word"), [("train", "train"), ("ood_test", "test")])
def test_a_part_is_the_published_file(name, folder, part, word):
    listed = lines(f"{folder}/tasks_{word}_{name}.txt")
    result = commands(f"scan/{name}", part)
    assert sorted(result) == sorted(listed)


def test_turn_left_stands_alone_in_training_as_often_as_published():
    train = load("scan/addprim_turn_left", part="train").arrow()
    weights = dict(zip(train["command"].to_pylist(), train["weight"].to_pylist(), strict=True))
    assert weights.pop("turn left") == 2189 == round(0.1 * 21890)
    assert set(weights.values()) == {1}
    assert not any(re.search(r"\bturn left\b", command) for command in weights)
    assert all(
        "turn left" in command and command != "turn left" for command in commands("scan/addprim_turn_left", "ood_test")
    )


@pytest.mark.parametrize(("longest", "train", "test"), [(25, 17774, 3136), (26, 18286, 2624), (30, 19758, 1152)])
def test_a_length_cut_has_the_counts_that_the_literature_prints(longest, train, test):
    rows = {
        part: load(f"scan/length_{longest}", part=part).arrow()["actions"].to_pylist() for part in ("train", "ood_test")
    }
    assert (len(rows["train"]), len(rows["ood_test"])) == (train, test)
    assert max(len(actions.split()) for actions in rows["train"]) <= longest
    assert min(len(actions.split()) for actions in rows["ood_test"]) > longest


def test_jump_around_right_and_three_fillers_are_one_split_under_two_names():
    for part in ("train", "ood_test"):
        item, other = commands("scan/template_jump_around_right", part), commands("scan/filler_num3", part)
        assert Counter(item) == Counter(other)


TABLE = pa.table({"text": ["up", "go up", "go up and go up", "up a hill", "goes up", "run up"]})


def test_a_phrase_is_found_as_whole_words_and_counted():
    outcome = phrases.held_out(TABLE, field="text", phrases=["go up"])
    assert outcome.part.tolist() == ["train", "ood_test", "ood_test", "train", "train", "train"]
    assert outcome.severity.tolist() == [0, 1, 2, 0, 0, 0]


def test_dropped_rows_are_in_no_part_and_untrained_ones_only_out_of_training():
    outcome = phrases.held_out(TABLE, field="text", phrases=["go up"], dropped=["and"], untrained=["go", "run up"])
    assert outcome.part.tolist() == ["train", "ood_test", "", "train", "train", ""]


def test_a_phrase_alone_trains_with_its_weight():
    outcome = phrases.alone_in_training(TABLE, field="text", phrase="go up", weight=7)
    assert outcome.part.tolist() == ["train", "train", "ood_test", "train", "train", "train"]
    assert outcome.weight.tolist() == [1, 7, 1, 1, 1, 1]
    assert outcome.severity.tolist() == [0, 0, 2, 0, 0, 0]


@pytest.mark.parametrize("where", ["phrases", "dropped", "untrained"])
def test_a_phrase_that_stands_nowhere_is_refused(where):
    parameters = {"phrases": ["go up"]} | {where: ["go down"]}
    with pytest.raises(BadDefinition, match="no row of 'text' contains the phrase 'go down'"):
        phrases.held_out(TABLE, field="text", **parameters)


def test_a_phrase_that_never_stands_alone_is_refused():
    with pytest.raises(BadDefinition, match="0 rows of 'text' are the bare phrase 'up a'"):
        phrases.alone_in_training(TABLE, field="text", phrase="up a")
    with pytest.raises(UnknownName, match="no field named 'txt': did you mean text"):
        phrases.alone_in_training(TABLE, field="txt", phrase="up")


@pytest.fixture
def listed(tmp_path):
    files = {"a.txt": "row: up\nrow: go up\n", "b.txt": "row: run up\n"}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    return {name: tmp_path / name for name in files}


def test_rows_go_where_published_files_list_them(listed):
    parts = {"a.txt": "train", "b.txt": "ood_test"}
    outcome = published.texts(TABLE, field="text", parts=parts, pattern="row: (?P<row>.+)", files=listed)
    assert outcome.part.tolist() == ["train", "train", "", "", "", "ood_test"]


@pytest.mark.parametrize(
    ("line", "error", "complaint"),
    [
        ("row: go down", BadData, "b.txt, line 2: no row is 'go down'"),
        ("row: up", BadData, "b.txt, line 2: 'up' is listed for train and for ood_test"),
        ("go up", BadData, "b.txt: line 2 does not match the pattern: 'go up'"),
    ],
)
def test_a_list_that_does_not_fit_the_rows_is_refused(listed, line, error, complaint):
    with listed["b.txt"].open("a") as file:
        file.write(line + "\n")
    parts = {"a.txt": "train", "b.txt": "ood_test"}
    with pytest.raises(error, match=re.escape(complaint)):
        published.texts(TABLE, field="text", parts=parts, pattern="row: (?P<row>.+)", files=listed)


def test_a_list_that_no_file_holds_is_refused(listed):
    with pytest.raises(BadDefinition, match=r"names the file c\.txt, but `files` has a\.txt, b\.txt"):
        published.texts(TABLE, field="text", parts={"c.txt": "train"}, pattern="(?P<row>.+)", files=listed)
