"""Hardness annotated by people or measured on models, as it is read: Winogrande sentences and ARC questions."""

from __future__ import annotations

import gzip
import json
import re

import pytest
from farshift.core.errors import BadData, BadDefinition
from farshift.loaders.readers.questions import arc_annotated, winogrande_hardness

SENTENCE = ("The cup did not fit in the bag because the _ was small.", "cup", "bag", "bag", "agree", "If X ..")


@pytest.fixture
def sentences(tmp_path):
    def write(*rows):
        path = tmp_path / "rows.tsv"
        path.write_text("".join("\t".join(row) + "\n" for row in rows))
        return {"rows.tsv": path}

    return write


def test_a_sentence_has_its_hardness_and_the_place_of_its_answer(sentences):
    first = (*SENTENCE[:3], "cup", "disagree", "If Y ..")
    rows = winogrande_hardness(sentences(SENTENCE, first), parts={"rows.tsv": "medium_test"}).to_pylist()
    assert [row["answer"] for row in rows] == [1, 0]
    assert [row["agreement"] for row in rows] == ["agree", "disagree"]
    assert {row["hardness"] for row in rows} == {1}
    assert {row["origin"] for row in rows} == {"medium_test"}


def test_sentences_of_another_form_are_refused(sentences):
    with pytest.raises(BadData, match=r"rows\.tsv: line 2 is not sentence, two options, answer \(one of them\)"):
        winogrande_hardness(sentences(SENTENCE, (*SENTENCE[:3], "box", "agree", "")), parts={"rows.tsv": "hard_test"})
    with pytest.raises(BadDefinition, match=r"the part of rows\.tsv must begin with easy, medium, hard"):
        winogrande_hardness(sentences(SENTENCE), parts={"rows.tsv": "simple_test"})


QUERY = "Question: Which of these\nis warm?\n A. ice\n B. the sun\n C. snow\n D. rain\nAnswer:"
LEVELS = {"grade": "Grade 04", "bloom": "Analyzing", "depth_of_knowledge": "II", "difficulty": "Low"}


@pytest.fixture
def arc(tmp_path):
    def write(docs, annotations):
        requests = tmp_path / "requests.jsonl.gz"
        requests.write_bytes(gzip.compress("".join(json.dumps({"doc": doc}) + "\n" for doc in docs).encode()))
        (tmp_path / "annotations.json").write_text(json.dumps(annotations))
        return {"requests": requests, "annotations": tmp_path / "annotations.json"}

    return write


def read(files, collection="easy"):
    return arc_annotated(files, requests={"requests": collection}, annotations="annotations").to_pylist()


def doc(name="q1", **change):
    return {"id": name, "query": QUERY, "choices": ["A", "B", "C", "D"], "gold": 1} | change


def test_a_question_has_its_options_answer_and_levels_once(arc):
    files = arc([doc(), doc(), doc("not annotated")], {"ARCEZ_q1": LEVELS, "ARCCH_other": LEVELS})
    assert read(files) == [
        {
            "question": "Which of these\nis warm?",
            "options": "A. ice\nB. the sun\nC. snow\nD. rain",
            "answer": 1,
            "collection": "easy",
            "hard": 0,
            "grade": 4,
            "bloom": 4,
            "depth_of_knowledge": 2,
            "difficulty": 1,
        }
    ]


def test_questions_of_the_challenge_set_are_hard_and_subjects_are_high_school(arc):
    files = arc([doc()], {"ARCCH_q1": LEVELS | {"grade": "Biology"}})
    (row,) = read(files, "challenge")
    assert (row["collection"], row["hard"], row["grade"]) == ("challenge", 1, 9)


@pytest.mark.parametrize(
    ("change", "levels", "complaint"),
    [
        ({"query": "What?"}, {}, "requests: q1 is not a question with lettered options"),
        ({"gold": 4}, {}, "requests: q1 is not a question with lettered options"),
        ({}, {"bloom": "Creating"}, "ARCEZ_q1: bloom is 'Creating', expected one of Remembering, Understanding"),
    ],
)
def test_requests_and_annotations_of_another_form_are_refused(arc, change, levels, complaint):
    with pytest.raises(BadData, match=re.escape(complaint)):
        read(arc([doc(**change)], {"ARCEZ_q1": LEVELS | levels}))


def test_files_that_cannot_be_read_are_refused(arc):
    files = arc([doc()], {})
    files["annotations"].write_text("{")
    with pytest.raises(BadData, match="annotations cannot be read as JSON"):
        read(files)
    files = arc([doc()], {})
    files["requests"].write_bytes(files["requests"].read_bytes()[:-20])
    with pytest.raises(BadData, match="requests is not gzipped JSON"):
        read(files)
    with pytest.raises(BadDefinition, match="unknown set hard: use challenge or easy"):
        read(files, "hard")
