"""SLOG: its published files, among them the zip, and depths of recursion in variable-free forms."""

from __future__ import annotations

import re
import zipfile
from collections import Counter

import pyarrow as pa
import pytest
from farshift.core.errors import BadData
from farshift.loaders.readers.parses import semantic_parses
from farshift.splits.catalogue import find_manifest
from farshift.splits.rules import published
from published_files import published_file, published_rows

CATEGORIES = {"deeper": 3, "shallower": 3, "modifiers": 4, "gaps": 2, "questions": 5}
DEPTHS = {"CP": "cp_depth", "PP": "pp_depth", "center_embed": "rc_depth"}
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


def types(split: str) -> list[str]:
    return list(find_manifest(f"slog/{split}").definition.parameters["only"]["gen"]["type"])


def test_the_categories_share_out_the_17_types():
    assert {split: len(types(split)) for split in CATEGORIES} == CATEGORIES
    assert sorted(name for split in CATEGORIES for name in types(split)) == sorted(types("gen"))
    assert sorted(types("cp_recursion") + types("pp_recursion") + types("center_embedding")) == sorted(types("deeper"))


@pytest.mark.parametrize(("name", "part"), [("train", "train"), ("dev", "id_val"), ("test", "id_test")])
def test_each_part_is_a_published_file(name, part):
    lines = published_file(f"slog/varfree_LF/{name}.tsv").read_text().splitlines()
    rows = published_rows("slog")
    outcome = published.parts(rows, **find_manifest("slog/gen").definition.parameters)
    accepted = rows.filter(pa.array(outcome.part == part))
    columns = (accepted[field].to_pylist() for field in ("sentence", "logical_form", "type"))
    texts = ["\t".join(row) for row in zip(*columns, strict=True)]
    weights = dict(zip(texts, outcome.weight[outcome.part == part].tolist(), strict=True))
    assert len(weights) == len(texts)
    assert weights == Counter(lines), "a published repetition is a weight"


def test_the_generalisation_set_has_a_thousand_rows_of_each_type_at_the_depth_it_names():
    rows = published_rows("slog").filter(pa.compute.field("origin") == "gen").to_pylist()
    assert Counter(row["type"] for row in rows) == dict.fromkeys(types("gen"), 1000)
    seen = Counter()
    for row in rows:
        named = re.fullmatch(r"(CP|PP|center_embed)_(\d+)(?:-(\d+))?", row["type"])
        if named:
            low, high = int(named[2]), int(named[3] or named[2])
            assert low <= row[DEPTHS[named[1]]] == row["depth"] <= high
            seen[named[1]] += 1
    assert seen == {"CP": 2000, "PP": 2000, "center_embed": 2000}


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


def test_a_wrong_password_is_told():
    path = published_file("slog/generalization_sets.zip")
    archives = {"z": {"member": "generalization_sets/gen_varfreeLF.tsv", "password": "wrong"}}
    with pytest.raises(BadData, match="z cannot be unpacked: Bad password"):
        semantic_parses({"z": path}, parts={"z": "gen"}, notation="variable_free", archives=archives)
