"""FLIP's archive of protein variants: one table of sequences, with the published set of every split."""

from __future__ import annotations

import zipfile

import pytest
from farshift.core.errors import BadData
from farshift.loaders.readers.science import flip as read

OPTIONS = {"folder": "splits", "sets": ["one", "low"], "wild_type": {"2": "V", "4": "D"}}
ONE = "sequence,target,set,validation\nMVAD,1.0,train,\nMVAC,0.5,train,True\nMAAC,2.0,test,\n"
LOW = "sequence,target,set,validation\nMAAC,2.0,test,\nMVAD,1.0,test,\nMVAC,0.5,train,\n"


def archive(tmp_path, **texts):
    with zipfile.ZipFile(tmp_path / "splits.zip", "w") as built:
        for name, text in texts.items():
            built.writestr(f"splits/{name}.csv", text)
    return {"splits.zip": tmp_path / "splits.zip"}


def test_variants_have_their_residues_mutations_fitness_and_published_sets(tmp_path):
    assert read(archive(tmp_path, one=ONE, low=LOW), **OPTIONS).to_pydict() == {
        "sequence": ["MVAD", "MVAC", "MAAC"],
        "residues": ["V D", "V C", "A C"],
        "mutations": [0, 1, 2],
        "mutated": ["0 sites", "1 sites", "2 sites"],
        "fitness": [1.0, 0.5, 2.0],
        "one": ["train", "validation", "test"],
        "low": ["test", "train", "test"],
    }


@pytest.mark.parametrize(
    ("texts", "complaint"),
    [
        ({"one": ONE}, r"splits\.zip: There is no item named 'splits/low\.csv'"),
        ({"one": ONE, "low": LOW.replace("2.0", "2.5")}, r"low\.csv and one\.csv differ in their sequences or targets"),
        ({"one": ONE, "low": LOW.replace("MVAC,0.5,train,\n", "")}, "differ in their sequences or targets"),
        ({"one": ONE + "MVAD,1.0,train,\n", "low": LOW}, r"one\.csv: MVAD \.\. occurs twice"),
        ({"one": ONE, "low": LOW.replace("target", "value")}, r"low\.csv: a row has no sequence, target and set"),
    ],
)
def test_tables_that_do_not_agree_are_refused(tmp_path, texts, complaint):
    with pytest.raises(BadData, match=complaint):
        read(archive(tmp_path, **texts), **OPTIONS)


def test_a_file_that_is_no_archive_is_refused(tmp_path):
    (tmp_path / "splits.zip").write_text("a page")
    with pytest.raises(BadData, match=r"splits\.zip: File is not a zip file"):
        read({"splits.zip": tmp_path / "splits.zip"}, **OPTIONS)
