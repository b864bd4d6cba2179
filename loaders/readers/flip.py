"""FLIP's tables of protein variants (Dallago et al. 2021): sequences, a measured fitness, and a CSV for each split."""

from __future__ import annotations

import csv
import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import BadData

if TYPE_CHECKING:
    import pyarrow as pa


def read(files: dict[str, Path], *, folder: str, sets: list[str], wild_type: dict[str, str]) -> pa.Table:
    """The variants of the only zip archive in `files`, in the order of the first CSV. Each set has `folder`/<set>.csv
    with the columns sequence, target, set and validation.

    Fields: `sequence`; `residues`, those at the sites of `wild_type` (`{site: residue}`, sites from 1), separated by
    spaces; `mutations`, the number of these sites with another residue, and `mutated`, the same as text; `fitness`; and
    for each of `sets` a field with its name: "train", "validation" or "test". Raises `BadData` if two CSVs differ in a
    sequence or its target.
    """
    import pyarrow as pa

    ((name, path),) = files.items()
    try:
        with zipfile.ZipFile(path) as archive:
            tables = {each: _read_rows(archive, f"{folder}/{each}.csv", name) for each in sets}
    except (zipfile.BadZipFile, KeyError) as error:
        raise BadData(f"{name}: {str(error).strip(chr(34))}") from error
    first = tables[sets[0]]
    sequences = list(first)
    for each, rows in tables.items():
        if rows.keys() != first.keys() or any(rows[sequence][0] != first[sequence][0] for sequence in sequences):
            raise BadData(f"{name}: {each}.csv and {sets[0]}.csv differ in their sequences or targets")
    residues = [[sequence[int(site) - 1] for site in wild_type] for sequence in sequences]
    original = list(wild_type.values())
    mutations = np.array(
        [sum(a != b for a, b in zip(sequence, original, strict=True)) for sequence in residues], np.int64
    )
    fields = {
        "sequence": pa.array(sequences, pa.string()),
        "residues": pa.array([" ".join(sequence) for sequence in residues], pa.string()),
        "mutations": mutations,
        "mutated": [f"{number} sites" for number in mutations.tolist()],
        "fitness": np.array([first[sequence][0] for sequence in sequences], np.float64),
    }
    return pa.table(fields | {each: [rows[sequence][1] for sequence in sequences] for each, rows in tables.items()})


def _read_rows(archive: zipfile.ZipFile, member: str, where: str) -> dict[str, tuple[float, str]]:
    """Read the target and the set of each sequence."""
    rows: dict[str, tuple[float, str]] = {}
    for row in csv.DictReader(io.StringIO(archive.read(member).decode("utf-8"))):
        try:
            sequence, target, part = row["sequence"], float(row["target"]), row["set"]
        except (KeyError, TypeError, ValueError) as error:
            raise BadData(f"{where}: {member}: a row has no sequence, target and set") from error
        if sequence in rows or part not in ("train", "test"):
            raise BadData(f"{where}: {member}: {sequence[:40]} .. occurs twice, or is in no set")
        rows[sequence] = (target, "validation" if row.get("validation") == "True" else part)
    return rows
