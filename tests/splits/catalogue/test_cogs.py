"""COGS: its four published files, the categories of its paper, and depths of recursion read from logical forms."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from farshift.core.errors import BadData, BadDefinition, UnknownName
from farshift.loaders.readers.parses import semantic_parses
from farshift.splits.catalogue import find_manifest
from farshift.splits.rules import published
from published_files import published_file, published_rows

CATEGORIES = {
    "roles": 9,
    "subject_modifiers": 1,
    "cp_recursion": 1,
    "pp_recursion": 1,
    "alternations": 6,
    "verb_classes": 3,
}
"""The five categories of Kim and Linzen 2020 (the two recursions apart), and how many types each has."""


def types(split: str) -> list[str]:
    result = find_manifest(f"cogs/{split}").definition.parameters["only"]["gen"]["type"]
    assert len(set(result)) == len(result)
    return list(result)


@pytest.mark.parametrize(
    ("name", "part"), [("train", "train"), ("dev", "id_val"), ("test", "id_test"), ("gen", "ood_test")]
)
def test_each_part_is_a_published_file(name, part):
    lines = published_file(f"cogs/{name}.tsv").read_text().splitlines()
    rows = published_rows("cogs")
    outcome = published.parts(rows, **find_manifest("cogs/gen").definition.parameters)
    accepted = rows.filter(pa.array(outcome.part == part))
    columns = (accepted[field].to_pylist() for field in ("sentence", "logical_form", "type"))
    assert Counter("\t".join(row) for row in zip(*columns, strict=True)) == Counter(lines)


def test_the_categories_share_out_the_21_types():
    assert {split: len(types(split)) for split in CATEGORIES} == CATEGORIES
    every = [name for split in CATEGORIES for name in types(split)]
    assert sorted(every) == sorted(types("gen")) == sorted(types("lexical") + types("structural"))
    assert len(every) == 21


def test_depth_is_the_recursion_that_the_sentence_shows():
    rows = published_rows("cogs").filter(pa.compute.field("origin") == "gen")
    seen = {"cp": 0, "pp": 0}
    for row in rows.to_pylist():
        if row["type"] == "cp_recursion":
            assert row["cp_depth"] == row["sentence"].split().count("that") == row["depth"]
            seen["cp"] += 1
        if row["type"] == "pp_recursion":
            chains = re.findall(r"(?: (?:in|on|beside) (?:a|the) \w+)+", row["sentence"])
            assert row["pp_depth"] == max(len(re.findall(r" (?:in|on|beside) ", chain)) for chain in chains)
            seen["pp"] += 1
    assert seen == {"cp": 1000, "pp": 1000}


INDEXED = {
    "walk . agent ( x _ 1 , Emma )": (0, 0),
    "cake . nmod . on ( x _ 1 , x _ 4 )": (0, 1),
    "a . nmod . on ( x _ 1 , x _ 4 ) AND b . nmod . in ( x _ 9 , x _ 12 )": (0, 1),
    "b . nmod . in ( x _ 4 , x _ 7 ) AND a . nmod . on ( x _ 1 , x _ 4 )": (0, 2),
    "say . ccomp ( x _ 1 , x _ 4 ) AND a . nmod . in ( x _ 3 , x _ 9 )": (1, 1),
    "say . ccomp ( x _ 1 , x _ 4 ) AND hope . ccomp ( x _ 4 , x _ 8 ) AND go . xcomp ( x _ 8 , x _ 9 )": (2, 0),
}


@pytest.fixture
def tsv(tmp_path):
    def write(*rows: tuple[str, ...]) -> dict[str, Path]:
        path = tmp_path / "rows.tsv"
        path.write_text("".join("\t".join(row) + "\n" for row in rows))
        return {"rows.tsv": path}

    return write


def test_depths_of_an_indexed_form_are_its_longest_chains(tsv):
    files = tsv(*((f"sentence {k}", form, "type") for k, form in enumerate(INDEXED)))
    rows = semantic_parses(files, parts={"rows.tsv": "gen"}, notation="indexed").to_pylist()
    assert [(row["cp_depth"], row["pp_depth"]) for row in rows] == list(INDEXED.values())
    assert all(row["depth"] == max(row["cp_depth"], row["pp_depth"]) and row["rc_depth"] == 0 for row in rows)


def test_a_file_that_is_no_table_of_parses_is_refused(tsv):
    files = tsv(("a", "b", "c"), ("a", "b"))
    with pytest.raises(BadData, match=r"rows\.tsv: line 2 has 2 columns, expected 3"):
        semantic_parses(files, parts={"rows.tsv": "gen"}, notation="indexed")
    with pytest.raises(BadDefinition, match=r"`parts` does not name rows\.tsv"):
        semantic_parses(files, parts={}, notation="indexed")
    with pytest.raises(BadDefinition, match="notation 'prefix': use indexed or variable_free"):
        semantic_parses(files, parts={"rows.tsv": "gen"}, notation="prefix")
    files["rows.tsv"].write_bytes(b"ab\xff")
    with pytest.raises(BadData, match=r"rows\.tsv is not UTF-8 text: byte 2"):
        semantic_parses(files, parts={"rows.tsv": "gen"}, notation="indexed")


TABLE = pa.table(
    {
        "origin": ["train", "dev", "gen", "gen", "spare"],
        "type": ["easy", "easy", "deep", "odd", "odd"],
        "depth": [0, 0, 7, 1, 2],
    }
)
PARTS = {"train": "train", "dev": "id_val", "gen": "ood_test"}


def test_rows_go_where_their_published_part_goes():
    outcome = published.parts(TABLE, field="origin", parts=PARTS, group="type", severity="depth")
    assert outcome.part.tolist() == ["train", "id_val", "ood_test", "ood_test", ""]
    assert outcome.group.tolist() == TABLE["type"].to_pylist()
    assert outcome.severity.tolist() == TABLE["depth"].to_pylist()


def test_published_copies_are_weights():
    table = TABLE.append_column("copies", pa.array([1, 2, 1, 1, 1]))
    outcome = published.parts(table, field="origin", parts=PARTS, weight="copies")
    assert outcome.weight.tolist() == [1, 2, 1, 1, 1]


def test_conditions_restrict_one_published_part_alone():
    outcome = published.parts(TABLE, field="origin", parts=PARTS, only={"gen": {"type": ["deep"]}})
    assert outcome.part.tolist() == ["train", "id_val", "ood_test", "", ""]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"parts": PARTS | {"test": "id_test"}}, "no row has origin = test"),
        ({"only": {"gen": {"type": ["deeper"]}}}, "no row has type = deeper"),
        ({"only": {"spare": {"type": ["odd"]}}}, "only: spare is not a key of `parts`"),
        ({"group": "depth"}, "field 'depth' is int64, and the rule needs text"),
        ({"severity": "type"}, "field 'type' is string, and the rule needs numbers"),
    ],
)
def test_parts_that_the_rows_do_not_have_are_refused(change, complaint):
    with pytest.raises(BadDefinition, match=re.escape(complaint)):
        published.parts(TABLE, **({"field": "origin", "parts": PARTS} | change))


def test_a_misspelt_field_is_refused_with_what_there_is():
    with pytest.raises(UnknownName, match="no field named 'orign': did you mean origin"):
        published.parts(TABLE, field="orign", parts=PARTS)  # codespell:ignore orign
