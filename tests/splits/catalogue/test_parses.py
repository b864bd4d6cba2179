"""COGS and SLOG: depths of recursion read from logical forms, members of zips, and the rule that takes published parts."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from farshift.core.errors import BadData, BadDefinition, UnknownName
from farshift.loaders.readers.parses import semantic_parses
from farshift.splits.rules import published

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


FORMS = {
    "run ( agent = * dog )": (0, 0, 0),
    "see ( theme = cake ( nmod . on = plate ) )": (0, 1, 0),
    "see ( theme = * cake ( nmod . on = plate ( nmod . in = * room ) ) , agent = box ( nmod . in = car ) )": (0, 2, 0),
    "say ( agent = Ava , ccomp = hope ( agent = * cat , ccomp = run ( agent = ? ) ) )": (2, 0, 0),
    "see ( agent = dog ( nmod = eat ( agent = dog , theme = cat ( nmod = run ( agent = cat ) ) ) ) )": (0, 0, 2),
    "say ( agent = dog ( nmod = run ( agent = dog ) ) , ccomp = go ( agent = box ( nmod . on = bed ) ) )": (1, 1, 1),
    "want ( agent = dog , xcomp = run ( agent = dog ) )": (0, 0, 0),
}
"""Forms, and how deep complements, prepositional phrases and relative clauses nest in them."""


def test_a_line_that_is_repeated_is_one_row_of_two_copies(tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text("like\tlike\tprimitive\nrun\trun\tprimitive\nlike\tlike\tprimitive\n")
    files = {"train": path, "dev": path}
    rows = semantic_parses(files, parts={"train": "train", "dev": "dev"}, notation="variable_free").to_pylist()
    assert [(row["sentence"], row["origin"], row["copies"]) for row in rows] == [
        ("like", "train", 2),
        ("run", "train", 1),
        ("like", "dev", 2),
        ("run", "dev", 1),
    ]


@pytest.fixture
def parses(tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text("".join(f"sentence {k}\t{form}\ttype\n" for k, form in enumerate(FORMS)))
    return path


def test_depths_of_a_variable_free_form_are_those_of_its_nesting(parses):
    rows = semantic_parses({"rows.tsv": parses}, parts={"rows.tsv": "gen"}, notation="variable_free").to_pylist()
    assert [(row["cp_depth"], row["pp_depth"], row["rc_depth"]) for row in rows] == list(FORMS.values())
    assert [row["depth"] for row in rows] == [max(depths) for depths in FORMS.values()]


def test_a_member_of_a_zip_reads_as_the_file_would(parses, tmp_path):
    with zipfile.ZipFile(tmp_path / "rows.zip", "w", zipfile.ZIP_DEFLATED) as bundle:
        bundle.write(parses, "inside/rows.tsv")
    arguments = {"parts": {"rows.zip": "gen"}, "notation": "variable_free"}
    archives = {"rows.zip": {"member": "inside/rows.tsv"}}
    zipped = semantic_parses({"rows.zip": tmp_path / "rows.zip"}, archives=archives, **arguments)
    plain = semantic_parses({"rows.zip": parses}, **arguments)
    assert zipped.equals(plain)
    with pytest.raises(BadData, match=r"rows\.zip: There is no item named 'rows\.tsv' in the archive"):
        semantic_parses({"rows.zip": tmp_path / "rows.zip"}, archives={"rows.zip": {"member": "rows.tsv"}}, **arguments)
    (tmp_path / "rows.zip").write_bytes(b"no zip at all")
    with pytest.raises(BadData, match=r"rows\.zip cannot be unpacked"):
        semantic_parses({"rows.zip": tmp_path / "rows.zip"}, archives=archives, **arguments)
