"""GeoQuery: anonymised as its published splits were made, and the splits as the lists have them."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from farshift.core.errors import BadData, BadDefinition
from farshift.loaders.acquire.source import find_source
from farshift.loaders.readers.parses import geoquery, iterate_entities, normalise_term, parse_funql
from farshift.splits.catalogue import find_manifest
from farshift.splits.measures.divergence import measure_divergence
from farshift.splits.rules import published
from hypothesis import given
from hypothesis import strategies as st
from published_files import published_file, published_rows

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


def test_the_880_questions_have_289_queries_without_a_name_in_them():
    rows = published_rows("geoquery")
    assert rows.num_rows == 880
    assert len(rows["funql"].unique()) == 289
    assert not any(re.search(r"\b(city|state|river|place|country)id\b", query) for query in rows["funql"].to_pylist())


def published_list(name):
    return json.loads(published_file(f"geoquery/splits/{name}_1.json").read_text())


@pytest.mark.parametrize("split", ["template", "tmcd", "length"])
def test_parts_are_the_published_lists(split):
    lists, rows = published_list(split), published_rows("geoquery")
    assigned = find_manifest(f"geoquery/{split}").rows(rows, find_source("geoquery").schema)
    number = dict(zip(rows["row_id"].to_pylist(), rows["number"].to_pylist(), strict=True))
    words = dict(zip(rows["number"].to_pylist(), rows["words"].to_pylist(), strict=True))
    parts: dict[str, set[int]] = {"train": set(), "ood_test": set()}
    for row_id, part in zip(assigned["row_id"].to_pylist(), assigned["part"].to_pylist(), strict=True):
        parts[part].add(number[row_id])
    assert parts["train"] == set(lists["train"])
    stored = {item for item in lists["test"] if split != "length" or words[item] > 7}
    assert parts["ood_test"] == stored
    assert len(stored) == (339 if split == "length" else len(lists["test"]))


def marked(name):
    """The rows of GeoQuery, and which of them a published list puts into training and test."""
    rows, lists = published_rows("geoquery"), published_list(name)
    return rows, *(np.isin(rows["number"].to_numpy(), lists[part]) for part in ("train", "test"))


def test_no_query_of_the_template_list_stands_on_both_sides():
    rows, train, test = marked("template")
    queries = np.asarray(rows["funql"].to_pylist())
    assert not set(queries[train]) & set(queries[test])


def test_the_published_cut_by_length_goes_through_the_questions_of_seven_words():
    rows, train, test = marked("length")
    words = rows["words"].to_numpy()
    assert words[train].max() == words[test].min() == 7


def compounds(query):
    """Each symbol with the place it has under another, as the lists' authors count compounds of two."""
    return [
        (term.symbol, len(term.arguments), position, argument.symbol)
        for term in subterms(parse_funql(query))
        for position, argument in enumerate(term.arguments)
    ]


def subterms(term):
    yield term
    for argument in term.arguments:
        yield from subterms(argument)


@pytest.mark.parametrize(
    ("name", "expected"), [("standard", 0.027), ("template", 0.075), ("length", 0.170), ("tmcd", 0.190)]
)
def test_compound_divergence_is_what_the_lists_have(name, expected):
    rows = published_rows("geoquery")
    lists = json.loads(published_file(f"geoquery/splits/{name}{'' if name == 'standard' else '_1'}.json").read_text())
    queries = dict(zip(rows["number"].to_pylist(), rows["funql"].to_pylist(), strict=True))
    train, test = ([queries[number] for number in lists[part]] for part in ("train", "test"))
    result = measure_divergence(train, test, atoms=symbols, compounds=compounds)
    assert result.compounds == pytest.approx(expected, abs=0.002)
    if name == "tmcd":
        assert result.unseen_atoms == 0


def symbols(query):
    return [token for token in query.split() if token not in "(),"]


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
