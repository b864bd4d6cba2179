"""Rules by phrases, and by published files that list rows."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from farshift.core.errors import BadData, BadDefinition, UnknownName
from farshift.splits.rules import phrases, published

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
