"""Text-to-SQL and inflection: the published layouts in small, through the real readers."""

from __future__ import annotations

import json

import pytest
from farshift.core.errors import BadData
from farshift.loaders.readers.lines import inflections
from farshift.loaders.readers.parses import text_to_sql

QUERY = {
    "query-split": "test",
    "sql": ["SELECT  NAME FROM CITY ;", "SELECT CITY.NAME FROM CITY ;"],
    "sentences": [
        {"text": "name the cities", "question-split": "train", "variables": {}},
        {"text": "which cities  are there ?", "question-split": "dev", "variables": {}},
    ],
}


def test_each_question_of_a_query_is_a_row_with_the_first_of_its_queries(tmp_path):
    path = tmp_path / "geography.json"
    path.write_text(json.dumps([QUERY]), "utf-8")
    rows = text_to_sql({"geography.json": path}).to_pylist()
    assert [row["question"] for row in rows] == ["name the cities", "which cities are there ?"]
    assert {row["sql"] for row in rows} == {"SELECT NAME FROM CITY ;"}
    assert [(row["query"], row["query_split"], row["question_split"]) for row in rows] == [
        (0, "test", "train"),
        (0, "test", "dev"),
    ]
    assert [row["words"] for row in rows] == [3, 5]


@pytest.mark.parametrize("content", ["{", "[{}]", json.dumps([{**QUERY, "sql": []}])])
def test_json_that_holds_no_queries_is_refused(tmp_path, content):
    path = tmp_path / "geography.json"
    path.write_text(content, "utf-8")
    with pytest.raises(BadData, match=r"geography\.json: not JSON with questions and SQL"):
        text_to_sql({"geography.json": path})


def test_inflections_say_what_training_shows_of_a_test_row(tmp_path):
    texts = {
        "tur_large.train": "ev\tevler\tN;PL\nat\tatta\tN;LOC\n",
        "tur.gold": "ev\tevde\tN;LOC\nat\tatım\tN;PSS1S\nit\titler\tN;PL\nkuş\tkuşum\tN;PSS1S\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
    files = {name: tmp_path / name for name in texts}
    rows = inflections(files, train="tur_large.train", tests={"tur.gold": "test"}).to_pylist()
    assert [row["origin"] for row in rows] == [
        "train",
        "train",
        "test both",
        "test lemma",
        "test features",
        "test neither",
    ]
    assert rows[2] == {"lemma": "ev", "features": "N LOC", "form": "evde", "origin": "test both"}
    (tmp_path / "tur.gold").write_text("ev\tN;PL\n", "utf-8")
    with pytest.raises(BadData, match=r"tur\.gold: line 1 is not a lemma, a form and features"):
        inflections(files, train="tur_large.train", tests={"tur.gold": "test"})
