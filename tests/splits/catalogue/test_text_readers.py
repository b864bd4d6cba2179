"""Labelled texts and tagged words: tables and columns as published, in small, through the real readers."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from farshift.core.errors import BadData, BadDefinition
from farshift.loaders.acquire.archive_files import FolderFiles
from farshift.loaders.readers import load_reader
from farshift.loaders.readers.lines import conll
from farshift.loaders.readers.table import read_table
from farshift.splits.rules import noise_published
from farshift.splits.schema import Field, Schema

REVIEWS = 'Sentiment\tText\nNegative\tDull.\x85 Long.\nPositive\t"A ""must"" see."\n'


@pytest.fixture
def laid(tmp_path):
    def lay(**contents):
        paths = {}
        for name, text in contents.items():
            paths[name] = tmp_path / name
            paths[name].write_text(text, "utf-8", newline="")
        return paths

    return lay


def test_a_table_of_texts_is_cut_at_line_feeds_alone_and_its_quotes_are_taken_off(laid):
    columns, maps = {"text": "Text", "positive": "Sentiment"}, {"positive": ["Negative", "Positive"]}
    rows = read_table(laid(orig=REVIEWS), format="tsv", columns=columns, maps=maps, row_number="number").to_pylist()
    assert rows == [
        {"text": "Dull.\x85 Long.", "positive": 0, "number": 0},
        {"text": 'A "must" see.', "positive": 1, "number": 1},
    ]


def test_labels_given_anew_stand_beside_the_true_ones(laid):
    files = laid(train="Text\tSentiment\nfine\tPositive\nbad\tNegative\n")
    files |= laid(noisy="\tText\tSentiment\n0\tfine\tNegative\n1\tbad\tPositive\n2\tso so\tNegative\n")
    join = [{"file": "noisy", "on": "#", "prefix": "noisy_", "format": "tsv"}]
    columns = {"true": "Sentiment", "distant": "noisy_Sentiment"}
    rows = read_table(files, format="tsv", columns=columns, join=join)
    assert rows.to_pydict() == {"true": ["Positive", "Negative"], "distant": ["Negative", "Positive"]}


CONLL = "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nsaid VBD I-VP O\n\nUN NNP I-NP I-ORG\nNATO NNP I-NP B-ORG\n"
CONLLU = """# newdoc id = a
# text = Don't go
1-2\tDon't\t_\t_
1\tDo\tdo\tAUX
2\tn't\tnot\tPART
2.1\twill\twill\tAUX
3\t1 000\tgo\tVERB

"""


def test_a_sentence_is_a_row_of_words_and_tags(laid):
    options = {"words": 0, "tags": {"tags": -1}, "constants": {"eng": {"year": "1996"}}}
    rows = conll(laid(eng=CONLL), **options).to_pylist()
    assert rows == [
        {"words": "EU said", "length": 2, "year": "1996", "tags": "I-ORG O"},
        {"words": "UN NATO", "length": 2, "year": "1996", "tags": "I-ORG B-ORG"},
    ]
    same = conll(laid(eng=CONLL), bio=True, spans="mentions", **options)
    assert same["tags"].to_pylist() == ["B-ORG O", "B-ORG B-ORG"]
    assert same["mentions"].to_pylist() == ["B O", "B B"]


def test_conll_u_leaves_out_what_is_no_word_of_its_own_and_folders_give_fields(tmp_path):
    (tmp_path / "email").mkdir()
    (tmp_path / "email/one.conllu").write_text(CONLLU, "utf-8")
    (tmp_path / "README").write_text("no sentence", "utf-8")
    rows = conll(
        {"sources": FolderFiles(tmp_path)},
        words=1,
        tags={"tags": 3},
        number=0,
        names=r"(?P<genre>[a-z]+)/(?P<document>.+)\.conllu",
    )
    assert rows.to_pylist() == [
        {"words": "Do n't 1_000", "length": 3, "genre": "email", "document": "one", "tags": "AUX PART VERB"}
    ]


def test_columns_of_conll_2012_are_filled_up_with_spaces(laid):
    content = (
        "bc/cctv/00   0    0        In      IN    (TOP(S(PP*    -   *\n"
        "bc/cctv/00   0    1   Beijing     NNP          (NP*))  -  (GPE)\n"
    )
    (row,) = conll(laid(v4=content), words=3, tags={"parts": 4, "entities": -1}).to_pylist()
    assert row == {"words": "In Beijing", "length": 2, "parts": "IN NNP", "entities": "* (GPE)"}
    with pytest.raises(BadData, match="v4: line 3 has 2 columns, but the lines before it have 8"):
        conll(laid(v4=content + "In IN\n"), words=3, tags={"parts": 4})


def test_masakhaner_has_a_word_and_a_tag_a_line_and_hashes_are_words(laid):
    content = "Shugaba O\nBuhari B-PER\n# O\n\n\nKano B-LOC\n"
    rows = conll(laid(train=content), words=0, tags={"tags": 1}).to_pylist()
    assert [(row["words"], row["tags"]) for row in rows] == [("Shugaba Buhari #", "O B-PER O"), ("Kano", "B-LOC")]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("EU NNP O\nsaid O\n", "eng: line 2 has 2 columns, but the lines before it have 3"),
        ("EU\tO\n\n\tO\n", "an empty word in ''"),
        ("", ": no sentences"),
    ],
)
def test_columns_that_do_not_fit_are_refused(laid, content, said):
    with pytest.raises(BadData, match=said):
        conll(laid(eng=content), words=0, tags={"tags": -1}, constants={"eng": {}})


def test_tags_given_anew_are_paired_word_by_word(laid):
    files = laid(clean="Kano B-LOC\nta O\n\nya O\n", noisy="Kano O\nta O\n\nya O\n", test="ya O\n")
    options = {"words": 0, "tags": {"tags": 1}, "constants": {"clean": {"origin": "train"}, "test": {"origin": "test"}}}
    rows = conll(files, retagged={"clean": {"distant": "noisy"}}, **options)
    assert rows["distant"].to_pylist() == ["O O", "O", ""]
    files |= laid(noisy="Kano O\n\nta O\nya O\n")
    with pytest.raises(BadData, match="the sentences of noisy do not have as many words as those of clean"):
        conll(files, retagged={"clean": {"distant": "noisy"}}, **options)


def noisy_table(true, told):
    return pa.table({"tags": true, "distant": told, "origin": ["train", "train", "dev", "test"]})


PARTS = {"train": "train", "dev": "id_val", "test": "id_test"}


@pytest.mark.parametrize(
    ("true", "told"), [(["O B", "O", "B", "O"], ["O O", "O", "", ""]), ([1, 0, 1, 0], [0, 0, -1, -1])]
)
def test_published_noise_overrides_the_training_labels_that_differ_and_no_others(true, told):
    given = noise_published.relabelled(
        noisy_table(true, told), label="tags", given="distant", field="origin", parts=PARTS
    )
    assert given.part.tolist() == ["train", "train", "id_val", "id_test"]
    assert np.ma.getmaskarray(given.label).tolist() == [False, True, True, True]
    assert given.label[0] == told[0]


def test_a_share_of_the_rows_trains_with_the_labels_as_first_published():
    table = noisy_table(["O B"] * 4, ["O O", "O B", "O O", "O B"]).append_column(
        "row_id", pa.array(np.arange(4, dtype=np.uint64))
    )
    outcome = noise_published.share(table, label="tags", given="distant", train=0.5, seed="s")
    trained = outcome.part == "train"
    assert trained.sum() == 2
    assert set(outcome.part[~trained]) == {"id_test"}
    assert (~np.ma.getmaskarray(outcome.label)).tolist() == (trained & [True, False, True, False]).tolist()


def test_types_of_names_are_called_alike(laid):
    files = laid(clean="Kano B-LOC\n", first="Kano B-location\n")
    rows = conll(
        files,
        words=0,
        tags={"tags": 1},
        constants={"clean": {}},
        retagged={"clean": {"published": "first"}},
        types={"location": "LOC"},
    )
    assert rows.to_pylist() == [{"words": "Kano", "length": 1, "tags": "B-LOC", "published": "B-LOC"}]


def test_published_noise_is_a_label_of_the_same_kind():
    with pytest.raises(BadDefinition, match="'tags' is string, and 'distant' is int64"):
        noise_published.relabelled(
            noisy_table(["O"] * 4, [0] * 4), label="tags", given="distant", field="origin", parts=PARTS
        )
    with pytest.raises(BadDefinition, match="no field 'crowd'"):
        noise_published.relabelled(
            noisy_table(["O"] * 4, ["O"] * 4), label="tags", given="crowd", field="origin", parts=PARTS
        )


def test_lines_of_texts_and_of_labels_belong_together(laid):
    """As `hatecheck` and `tweeteval_stance` read them."""
    schema = Schema((Field("text", "string", "input"), Field("hateful", "int64", "label")))
    options = {
        "format": "lines",
        "pattern": "(?P<text>.*)",
        "trim": True,
        "columns": {"text": "text", "hateful": "label"},
    }
    options["join"] = [{"file": "b.txt", "on": "#", "format": "lines", "pattern": "(?P<label>.*)"}]
    files = laid(**{"a.txt": "x\u2028y\n z\n", "b.txt": "1\n0\n"})
    rows = read_table(files, schema=schema, **options)
    assert rows.to_pydict() == {"text": ["x\u2028y", "z"], "hateful": [1, 0]}
    with pytest.raises(BadData, match=r"a\.txt, line 2: hateful \(column 'label'\) is missing"):
        read_table(laid(**{"a.txt": "x\ny\n", "b.txt": "1\n"}), schema=schema, **options)


PERSPECTIVES = {
    "claims.json": [
        {"cId": 3, "text": "Ban x", "perspectives": [{"pids": [7, 5], "stance_label_3": "UNDERMINE"}]},
        {"cId": 1, "text": "Allow x", "perspectives": [{"pids": [5], "stance_label_3": "SUPPORT"}]},
    ],
    "pool.json": [{"pId": 5, "text": "x helps"}, {"pId": 7, "text": "x is fun"}],
    "split.json": {"1": "train", "3": "dev"},
}


def test_each_perspective_of_a_cluster_has_the_cluster_s_stance_to_the_claim(laid):
    options = {"claims": "claims.json", "pool": "pool.json", "parts": "split.json"}
    read = load_reader("perspectives")
    rows = read(laid(**{name: json.dumps(value) for name, value in PERSPECTIVES.items()}), **options)
    assert rows.to_pydict() == {
        "claim": ["Ban x", "Ban x", "Allow x"],
        "perspective": ["x is fun", "x helps", "x helps"],
        "supports": [0, 0, 1],
        "origin": ["dev", "dev", "train"],
    }
    without = {**PERSPECTIVES, "pool.json": []}
    with pytest.raises(BadData, match="are not in PERSPECTRUM's format: KeyError: 7"):
        read(laid(**{name: json.dumps(value) for name, value in without.items()}), **options)
