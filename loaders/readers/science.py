"""Measurements of molecules, proteins and patients."""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.errors import BadData
from ...splits.schema import Schema
from ._arrow_types import to_tensor_column
from ._layout import get_archive, read_columns, to_floats
from .table import read_table

PUBLISHED_FORM = True


def flip(files: dict[str, Path], *, folder: str, sets: list[str], wild_type: dict[str, str]) -> pa.Table:
    """FLIP's tables of protein variants (Dallago et al. 2021): sequences, a measured fitness, and a CSV for each split.

    The variants of the only zip archive in `files`, in the order of the first CSV. Each set has `folder`/<set>.csv with
    the columns sequence, target, set and validation.

    Fields: `sequence`; `residues`, those at the sites of `wild_type` (`{site: residue}`, sites from 1), separated by
    spaces; `mutations`, the number of these sites with another residue, and `mutated`, the same as text; `fitness`; and
    for each of `sets` a field with its name: "train", "validation" or "test".
    """
    (path,) = files.values()
    with zipfile.ZipFile(path) as archive:
        tables = {each: _read_variants(archive.read(f"{folder}/{each}.csv").decode("utf-8")) for each in sets}
    first = tables[sets[0]]
    sequences = list(first)
    residues = [[sequence[int(site) - 1] for site in wild_type] for sequence in sequences]
    sites = wild_type.values()
    mutations = [sum(a != b for a, b in zip(own, sites, strict=True)) for own in residues]
    fields = {
        "sequence": pa.array(sequences, pa.string()),
        "residues": pa.array([" ".join(sequence) for sequence in residues], pa.string()),
        "mutations": mutations,
        "mutated": [f"{number} sites" for number in mutations],
        "fitness": np.array([first[sequence][0] for sequence in sequences], np.float64),
    }
    return pa.table(fields | {each: [rows[sequence][1] for sequence in sequences] for each, rows in tables.items()})


def _read_variants(text: str) -> dict[str, tuple[float, str]]:
    """Read the target and the set of each sequence."""
    return {
        row["sequence"]: (float(row["target"]), "validation" if row.get("validation") == "True" else row["set"])
        for row in csv.DictReader(io.StringIO(text))
    }


def ogb_molecules(files: dict[str, Any], *, archive: str, folder: str, scaffolds: str, tasks: int) -> pa.Table:
    """Molecules as the Open Graph Benchmark publishes them: gzipped tables in a zip, and the lists of its split.

    Fields: `smiles`, `assays` (float32, 0, 1 or NaN for each of `tasks`), `published` (train, valid or test) and
    `scaffold`, from `mapping/mol.csv.gz`, `split/scaffold/` and the array of scaffold numbers (the file `scaffolds`).
    """
    tree = get_archive(files, archive)
    head = f"{folder}/" if folder else ""
    table = read_columns(tree, f"{head}mapping/mol.csv.gz")
    assays = [name for name in table if name not in ("smiles", "mol_id")]
    if len(assays) != tasks:
        raise BadData(f"{tree.where} has {len(assays)} assays, not {tasks}")
    labels = np.stack([to_floats(table[name]) for name in assays], axis=1).astype(np.float32)
    published = np.full(len(labels), "", dtype=object)
    for part in ("train", "valid", "test"):
        listed = gzip.decompress(tree.read(f"{head}split/scaffold/{part}.csv.gz")).split()
        published[np.asarray(listed, np.int64)] = part
    groups = np.load(files[scaffolds], allow_pickle=False).reshape(-1)
    if missing := (published == "").sum():
        raise BadData(f"{tree.where}: {missing} molecules are in no part")
    return pa.table(
        {
            "smiles": table["smiles"],
            "assays": to_tensor_column(labels),
            "published": published.tolist(),
            "scaffold": [str(group) for group in groups.tolist()],
        }
    )


def survival(
    files: dict[str, Path],
    *,
    schema: Schema,
    label: str,
    within: float,
    events: Mapping[str, dict[str, str]],
    **options: Any,
) -> pa.Table:
    """Survival data as classification: whether an event occurred within a horizon, for persons for whom this is known.

    The rows of CSV tables, with `label` 1 if an event occurred at a time of at most `within`, and 0 if it did not and
    the person was followed for longer. Rows that were censored before (no event by then, and not followed for longer)
    are left out.

    events: for each file `{column that is 1 if the event occurred: column of its time}`. The first event that occurred
    counts; if none did, the time of the last event is the time of follow-up. The other options and fields are those of
    the reader `table`.
    """
    tables = []
    for name, path in files.items():
        known, happened = _read_outcomes(path, name, events[name], within)
        rest = Schema(tuple(field for field in schema.fields if field.name != label))
        table = read_table({name: path}, schema=rest, **options)
        tables.append(table.append_column(label, pa.array(happened.astype(np.int64))).filter(pa.array(known)))
    return pa.concat_tables(tables, promote_options="permissive")


def _read_outcomes(
    path: Path, name: str, events: dict[str, str], within: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return for each row whether the outcome within the horizon is known, and whether the event occurred."""
    columns = [*events, *events.values()]
    cells = read_table({name: path}, columns={f"c{at}": column for at, column in enumerate(columns)})
    values = np.array([cells[f"c{at}"].to_pylist() for at in range(len(columns))], np.float64)
    came, times = values[: len(events)] == 1, values[len(events) :]
    first = np.where(came.any(axis=0), came.argmax(axis=0), len(events) - 1)
    time = times[first, np.arange(times.shape[1])]
    happened = came.any(axis=0) & (time <= within)
    return happened | (time > within), happened
