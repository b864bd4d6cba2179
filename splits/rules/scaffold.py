"""Scaffolds: molecules are split by their core structures, so that the test has scaffolds unseen in training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, BadDefinition, MissingExtra
from ..assignment import Assignment
from ..measures.words import read_text_column

if TYPE_CHECKING:
    import pyarrow as pa


def murcko(table: pa.Table, *, field: str, train: float = 0.8, ood_val: float = 0.1) -> Assignment:
    """MoleculeNet's scaffold split (Wu et al. 2018, section 3.2): molecules (`field`, SMILES) with the same
    Bemis-Murcko scaffold (Bemis and Murcko 1996; without chirality) stay together; the scaffolds, those with the most
    molecules first, fill `train` up to its share of the rows, then `ood_val`, then `ood_test`. A scaffold that no
    longer fits into a part goes to the next, as in DeepChem's `ScaffoldSplitter`.

    Scaffolds of equal size are ordered by their smallest SMILES, so that the order of rows does not matter. The group
    is the scaffold's number in that order, 0 the largest. Needs RDKit (`farshift[molecules]`); the rows are shipped, so
    users do not need it. Raises `BadData` if RDKit cannot read a molecule.

    Parameters:
        field: the text field with the molecule in SMILES.
        train: the share of the rows that trains, from 0 to 1.
        ood_val: the share of the rows in `ood_val`.
    """
    if min(train, ood_val) <= 0 or train + ood_val >= 1:
        raise BadDefinition(f"train = {train}, ood_val = {ood_val}: shares of the rows, below 1 together")
    smiles = read_text_column(table, field).to_pylist()
    scaffolds = dict.fromkeys(smiles)
    for smiles_text in scaffolds:
        scaffolds[smiles_text] = _compute_scaffold(smiles_text)
    members: dict[str, list[str]] = {}
    for smiles_text in smiles:
        members.setdefault(str(scaffolds[smiles_text]), []).append(smiles_text)
    order = sorted(members, key=lambda smiles_text: (-len(members[smiles_text]), min(members[smiles_text])))
    number = {smiles_text: at for at, smiles_text in enumerate(order)}
    group = np.array([number[str(scaffolds[smiles_text])] for smiles_text in smiles])
    return Assignment(
        part=_fill_parts([len(members[smiles_text]) for smiles_text in order], train, ood_val)[group],
        group=group.astype(np.str_),
    )


def _fill_parts(sizes: list[int], train: float, ood_val: float) -> NDArray[np.str_]:
    """Return the part of each scaffold, given their sizes, largest first."""
    rows = sum(sizes)
    counts = {"train": 0, "ood_val": 0}
    parts = []
    for size in sizes:
        if counts["train"] + size <= train * rows:
            parts.append("train")
        elif counts["train"] + counts["ood_val"] + size <= (train + ood_val) * rows:
            parts.append("ood_val")
        else:
            parts.append("ood_test")
        if parts[-1] in counts:
            counts[parts[-1]] += size
    return np.array(parts, dtype="U8")


def _compute_scaffold(smiles: str) -> str:
    try:
        from rdkit import Chem, RDLogger
        from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles
    except ImportError as error:
        raise MissingExtra("scaffolds of molecules", "molecules") from error
    RDLogger.DisableLog("rdApp.*")
    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:
        raise BadData(f"RDKit cannot read the molecule {smiles!r}")
    return str(MurckoScaffoldSmiles(mol=molecule, includeChirality=False))
