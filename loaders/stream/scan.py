"""Find a part's rows in files without an index, by reading them once as long as they are unchanged."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np

from ...core.canonical import compute_identity
from ...core.errors import BadData
from ...core.files import get_cache_root
from ...core.progress import report_progress
from ..cache.store import load_or_build_table
from ..part import Part
from ..remote import File
from ..remote.matching import RowMatcher

if TYPE_CHECKING:
    import pyarrow as pa

RowIterator = Generator[tuple[int, "pa.Table", "pa.Table"], None, None]
"""All rows of some files in order, in pieces: the number of the first, the source's fields, and further columns of each
wanted row, such as its location."""


def locate_rows(known: Part, files: Sequence[File], rows: int, passing: Callable[[], RowIterator]) -> pa.Table:
    """Find a part's rows, of a source of `rows` rows, in files. Returns `number`, `occurrence` and the further columns
    of `passing`, in the part's order.

    The result is cached by the files' identities; else `passing` is read until all rows are found. Raises `BadData` if
    some are absent.
    """

    def look() -> pa.Table:
        return _scan_for_rows(known, files, rows, passing())

    identities = [file.identity for file in files]
    if None in identities:
        return look()
    key = compute_identity(
        {"of": known.identity, "part": known.name, "files": identities, "fields": known.schema.records()}
    )
    stem = f"{known.split.partition('@')[0].replace('/', '-')}-{known.name}"
    return load_or_build_table(get_cache_root() / "splits" / f"{stem}-found-{key[:32]}.arrow", look)


def _scan_for_rows(known: Part, files: Sequence[File], rows: int, passing: RowIterator) -> pa.Table:
    import pyarrow as pa

    matching = RowMatcher(known.row_ids, known.source["check"].to_numpy(), known.schema, rows)
    label, remaining = f"finding the rows of {known.split}, {known.name}", len(known)
    matched_rows, row_details = [np.zeros(0, np.int64)], list[pa.Table]()
    with closing(passing):
        for first, table, places in passing:
            matched_rows.append(matching.passes(table, first))
            row_details.append(places.take(matching.where[matched_rows[-1]] - first))
            remaining -= len(matched_rows[-1])
            report_progress(label, len(known) - remaining, len(known))
            if not remaining:
                break
    if len(missing := matching.missing):
        raise BadData(
            f"{files[0].name}{' ..' if len(files) > 1 else ''} lacks {len(missing):,} of {len(known):,} rows of "
            f"{known.split}, {known.name} (first: {known.row_ids[missing[0]]:016x}): it has other rows, or is damaged"
        )
    index = pa.concat_tables(row_details).take(np.argsort(np.concatenate(matched_rows)))
    return index.append_column("number", [matching.where]).append_column("occurrence", [matching.occurrence])
