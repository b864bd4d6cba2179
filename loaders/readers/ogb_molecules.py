"""Molecules as the Open Graph Benchmark publishes them: gzipped tables in a zip, and the lists of its split."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import BadData, get_first_line
from ._layout import get_archive, parse_floats, read_csv_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from ..acquire.archive_files import ArchiveFiles


def read(files: dict[str, Any], *, archive: str, folder: str, scaffolds: str, tasks: int) -> pa.Table:
    """Fields: `smiles`, `assays` (float32, 0, 1 or NaN for each of `tasks`), `published` (train, valid or test) and
    `scaffold`, from `mapping/mol.csv.gz`, `split/scaffold/` and the array of scaffold numbers (the file
    `scaffolds`)."""
    import pyarrow as pa

    tree = get_archive(files, archive)
    head = f"{folder}/" if folder else ""
    content = _decompress_member(tree, f"{head}mapping/mol.csv.gz")
    where = f"{tree.where}: {head}mapping/mol.csv.gz"
    names = content.split(b"\n", 1)[0].decode("utf-8", "replace").strip().split(",")
    assays = [name.strip('"') for name in names if name.strip('"') not in ("smiles", "mol_id")]
    if len(assays) != tasks:
        raise BadData(f"{where} has {len(assays)} assays, not {tasks}")
    table = read_csv_columns(content, where, ("smiles", *assays))
    labels = np.stack([parse_floats(table[name], f"{where}: {name}") for name in assays], axis=1).astype(np.float32)
    rows = len(labels)
    published = np.full(rows, "", dtype=object)
    for part in ("train", "valid", "test"):
        listed = _decompress_member(tree, f"{head}split/scaffold/{part}.csv.gz").split()
        published[np.asarray(listed, np.int64)] = part
    groups = _load_array(files[scaffolds], scaffolds)
    if len(groups) != rows or (published == "").any():
        raise BadData(
            f"{where} has {rows:,} molecules, {scaffolds} {len(groups):,}; {(published == '').sum()} in no part"
        )
    return pa.table(
        {
            "smiles": table["smiles"].tolist(),
            "assays": pa.FixedSizeListArray.from_arrays(pa.array(labels.ravel()), tasks),
            "published": published.tolist(),
            "scaffold": [str(group) for group in groups.tolist()],
        }
    )


def _decompress_member(tree: ArchiveFiles, name: str) -> bytes:
    try:
        return gzip.decompress(tree.read(name))
    except (OSError, EOFError, zlib.error) as error:
        raise BadData(f"{tree.where}: {name} cannot be read: {get_first_line(error)}") from error


def _load_array(path: Path, name: str) -> Any:
    try:
        return np.load(io.BytesIO(path.read_bytes()), allow_pickle=False).reshape(-1)
    except (OSError, ValueError) as error:
        raise BadData(f"{name} is not a readable array: {get_first_line(error)}") from error
