"""Splits of molecules by scaffold."""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest
from farshift.core.errors import BadDefinition, MissingExtra
from farshift.splits.catalogue import list_manifests
from farshift.splits.rules import scaffold


def test_the_largest_scaffolds_train_and_one_that_does_not_fit_goes_on():
    # 100 rows: at most 80 train, at most 90 train or validate
    assert scaffold.filled([50, 29, 8, 3, 1, 1, 1, 7], 0.8, 0.1).tolist() == [
        "train", "train", "ood_val", "ood_val", "train", "ood_test", "ood_test", "ood_test",
    ]  # fmt: skip


def test_molecules_of_one_scaffold_stay_together_in_any_order(monkeypatch):
    monkeypatch.setattr(scaffold, "_compute_scaffold", lambda smiles: smiles[0])
    smiles = [letter + str(number) for letter, count in (("A", 8), ("B", 1), ("C", 1)) for number in range(count)]
    result = scaffold.murcko(pa.table({"smiles": smiles}), field="smiles")
    assert dict(zip(smiles, zip(result.part.tolist(), result.group.tolist(), strict=True), strict=True)) == {
        **{f"A{number}": ("train", "0") for number in range(8)},
        "B0": ("ood_val", "1"),
        "C0": ("ood_test", "2"),
    }
    back = scaffold.murcko(pa.table({"smiles": smiles[::-1]}), field="smiles")
    assert back.part.tolist() == result.part.tolist()[::-1]


def test_scaffolds_need_rdkit_and_the_shipped_splits_do_not(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdkit", None)
    with pytest.raises(MissingExtra, match=r"scaffolds of molecules .* 'farshift\[molecules\]'"):
        scaffold.murcko(pa.table({"smiles": ["C"]}), field="smiles")
    shipped = [item for item in list_manifests() if item.definition.rule == "scaffold/murcko"]
    assert shipped
    assert all(item.definition.ships_rows and (item.folder / "rows.parquet").exists() for item in shipped)
    with pytest.raises(BadDefinition, match="shares of the rows, below 1 together"):
        scaffold.murcko(pa.table({"smiles": ["C"]}), field="smiles", train=0.9, ood_val=0.1)
