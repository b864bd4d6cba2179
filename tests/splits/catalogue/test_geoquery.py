"""GeoQuery, anonymised as its published splits were made, and the rule that takes published lists."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pytest
from farshift.core.errors import BadData, BadDefinition
from farshift.loaders.readers.parses import geoquery, iterate_entities, normalise_term, parse_funql
from farshift.splits.rules import published
from hypothesis import given
from hypothesis import strategies as st

NORMAL = {
    "answer(city(loc_2(stateid('virginia'))))": "answer ( intersection ( city , loc_2 ( stateid ( virginia ) ) ) )",
    "answer(capital(all))": "answer ( capital )",
    "answer(largest_one(population_1(city(all))))": "answer ( largest_one ( population_1 , city ) )",
    "answer(most(state(loc_1(river(all)))))": "answer ( most ( state , loc_1 , river ) )",
    "answer(elevation_1(placeid('mount mckinley')))": "answer ( elevation_1 ( placeid ( mount mckinley ) ) )",
    "answer(exclude(state(all), next_to_2(stateid('maine'))))": (
        "answer ( exclude ( state , next_to_2 ( stateid ( maine ) ) ) )"
    ),
    "answer(higher_2(0))": "answer ( higher_2 ( 0 ) )",
}


@pytest.mark.parametrize("text", NORMAL)
def test_the_normal_form_puts_arguments_side_by_side(text):
    assert str(normalise_term(parse_funql(text))) == NORMAL[text]


terms = st.recursive(
    st.sampled_from(["m0", "river", "0"]),
    lambda inner: st.tuples(
        st.sampled_from(["loc_2", "exclude", "count"]), st.lists(inner, min_size=1, max_size=3)
    ).map(lambda pair: f"{pair[0]} ( {' , '.join(pair[1])} )"),
)


@given(terms)
def test_a_term_reads_back_as_it_was_written(text):
    assert str(parse_funql(text)) == text
    assert str(parse_funql(text.replace(" ", ""))) == text


@pytest.mark.parametrize("text", ["answer(city(all)", "answer(city(all)))", "answer(,)", "", "(a)"])
def test_brackets_that_do_not_fit_are_refused(text):
    with pytest.raises(BadData, match="not a FunQL term"):
        parse_funql(text)


def test_entities_are_found_from_left_to_right():
    term = parse_funql("answer(exclude(cityid('austin', tx), loc_2(countryid('usa'))))")
    assert [str(entity) for entity in iterate_entities(term)] == ["cityid ( austin , tx )", "countryid ( usa )"]


def corpus(tmp_path, *examples):
    entries = "".join(
        f"<example id='{number}'><nl lang='en'>{question}</nl><mrl lang='geo-funql'>{query}</mrl></example>"
        for number, (question, query) in enumerate(examples)
    )
    path = tmp_path / "corpus.xml"
    path.write_text(f"<examples>{entries}</examples>")
    return {"corpus.xml": path}


def test_entities_get_marks_in_question_and_query_alike(tmp_path):
    files = corpus(
        tmp_path,
        ("Is Austin Texas in Texas ?", "answer(intersection(cityid('austin', 'tx'), loc_2(stateid('texas'))))"),
        ("What is the area of the United States ?", "answer(area_1(countryid('usa')))"),
        ("How high is Mount Nowhere ?", "answer(elevation_1(placeid('somewhere')))"),
        ("never read", "answer(city(all))"),
    )
    rows = geoquery(files, questions=3).to_pylist()
    assert [(row["question"], row["funql"]) for row in rows] == [
        ("is m0 in m1", "answer ( intersection ( m0 , loc_2 ( m1 ) ) )"),
        ("what is the area of the m0", "answer ( area_1 ( m0 ) )"),
        ("how high is mount nowhere", "answer ( elevation_1 ( placeid ( somewhere ) ) )"),
    ]
    assert [(row["number"], row["words"]) for row in rows] == [(0, 4), (1, 7), (2, 5)]


def test_a_corpus_that_cannot_be_read_is_refused(tmp_path):
    files = corpus(tmp_path, ("a question", "answer(city(all)"))
    with pytest.raises(BadData, match="not a FunQL term"):
        geoquery(files, questions=1)
    files["corpus.xml"].write_text("<examples><example id='0'/></examples>")
    with pytest.raises(BadData, match=r"corpus\.xml: example 0 has no mrl in geo-funql"):
        geoquery(files, questions=1)
    files["corpus.xml"].write_text("<examples>")
    with pytest.raises(BadData, match=r"corpus\.xml is not well-formed XML"):
        geoquery(files, questions=1)


TABLE = pa.table({"number": [0, 1, 2, 3], "words": [4, 5, 5, 9]})
LISTS = {"train": [0, 1], "test": [2, 3]}
GIVEN = {"field": "number", "parts": {"train": "train", "test": "ood_test"}}


@pytest.fixture
def files(tmp_path):
    def write(content):
        path = tmp_path / "lists.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return {"lists.json": path}

    return write


def test_rows_go_where_their_number_is_listed(files):
    outcome = published.numbers(TABLE, files=files({"train": [2], "test": [3, 0]}), **GIVEN)
    assert outcome.part.tolist() == ["ood_test", "", "train", "ood_test"]


def test_test_rows_within_the_reach_of_training_can_be_left_out(files):
    outcome = published.numbers(TABLE, files=files(LISTS), severity="words", beyond_training=True, **GIVEN)
    assert outcome.part.tolist() == ["train", "train", "", "ood_test"]
    with pytest.raises(BadDefinition, match="beyond_training needs a severity"):
        published.numbers(TABLE, files=files(LISTS), beyond_training=True, **GIVEN)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ({"train": [0], "test": [7]}, "lists.json, test: no row is 7"),
        ({"train": [0], "test": [0]}, "lists.json, test: 0 is listed for train and for ood_test"),
        ({"train": [0]}, "lists.json has the lists train, but `parts` names test, train"),
        ("{", "lists.json is not JSON"),
    ],
)
def test_lists_that_do_not_fit_the_rows_are_refused(files, content, complaint):
    with pytest.raises(BadData, match=re.escape(complaint)):
        published.numbers(TABLE, files=files(content), **GIVEN)
