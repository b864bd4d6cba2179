"""A table with a file for each row, such as images and their metadata.

[distributions.options]
file = "patches/patient_{patient}_node_{node}/patch_x_{x_coord}_y_{y_coord}.png"
table = { file = "metadata.csv", columns = { tumor = "tumor", hospital = "hospital" } }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from ...core.errors import BadData, BadDefinition, shorten_list
from ...splits.schema import Field, Schema
from ..acquire.archive_files import ArchiveFiles
from ..files.patterns import choose_paths
from ._file_checks import find_audio_problem, find_image_problem
from ._inputs import open_archives
from ._layout import attach_files
from .table import read as table_read

_CHECKS: dict[str, Callable[[bytes], str]] = {
    "image": find_image_problem,
    "audio": find_audio_problem,
    "bytes": lambda content: "",
}
_PATH, _ROW = "path_of_its_file", "row_of_the_table"


def read(files: Mapping[str, Path | ArchiveFiles], *, schema: Schema | None = None, **options: Any) -> pa.Table:
    """Read the rows of the table with their files; see `pieces`."""
    return pa.concat_tables(pieces(files, schema=schema, **options))


def pieces(
    files: Mapping[str, Path | ArchiveFiles],
    *,
    file: str,
    table: dict[str, Any],
    schema: Schema | None = None,
    field: str = "image",
    kind: Literal["image", "audio", "bytes"] = "image",
    folder: str = "",
    path: str = "",
    accept: list[str] | None = None,
) -> Iterator[pa.Table]:
    """Yield the rows of the table with the bytes of their files as `field`, in tables of about 32 MB.

    `file` is the path of a row's file, with the table's columns in braces (`{#}` is the row's index, from 0), below
    `folder` in one of the archives or folders. `table` names the `file` of the table (a file of the distribution or a
    member of an archive) and has the options of the reader `table`. `kind` is "image" or "audio", to check that files
    are complete, or "bytes", to check nothing; files that fit `accept` (patterns, see `files/patterns.py`) are not
    checked. `path` is the field of the path. Archives are read once, in the order in which they are packed; the table
    is kept in memory.

    Raises `BadData` if a file is missing, cut off, damaged, or of another format.
    """
    if "file" not in table:
        raise BadDefinition("files_of_table: `table` needs `file`, the table's file")
    if kind not in _CHECKS:
        raise BadDefinition(f"files_of_table: kind {kind!r}: use image, audio or bytes")
    path_field = path or _PATH
    with ExitStack() as stack:
        archives = open_archives(files, stack)
        options = {**table, "texts": {**table.get("texts", {}), path_field: file}}
        rows = table_read(archives, schema=_drop_fields(schema, {field, path_field}), **options).combine_chunks()
        paths = rows[path_field].to_pylist()
        folders = [where.subdir(folder) for where in archives.values() if isinstance(where, ArchiveFiles)]
        _refuse_absent(table["file"], dict.fromkeys(paths), folders)
        for where in folders:
            names = set(where.names())
            own = [row for row, file_path in enumerate(paths) if file_path in names]

            def check_file(content: bytes, path: str, where: ArchiveFiles = where) -> bytes:
                if (wrong := _CHECKS[kind](content)) and not choose_paths([path], accept or []):
                    raise BadData(f"{where.where}: {path} {wrong}")
                return content

            for piece in attach_files(where, [paths[row] for row in own], {_ROW: own}, field=field, convert=check_file):
                yield rows.take(piece[_ROW]).append_column(field, piece[field])


def _drop_fields(schema: Schema | None, added_fields: Container[str]) -> Schema | None:
    """Return the schema of the fields that the table must provide."""
    fields = (
        [Field(field.name, field.type, "input") for field in schema.fields if field.name not in added_fields]
        if schema
        else []
    )
    return Schema(tuple(fields)) if fields else None


def _refuse_absent(table: str, places: Mapping[str, None], folders: Sequence[ArchiveFiles]) -> None:
    names = [name for where in folders for name in where.names()]
    there = set(names)
    if len(there) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1 and name in places)
        raise BadData(f"{table}: {twice} is in more than one of {', '.join(where.where for where in folders)}")
    absent = [path for path in places if path not in there]
    if not absent:
        return
    folded = {name.lower(): name for name in names}
    twin = folded.get(absent[0].lower())
    hint = f" (there is {twin}, which differs by case only)" if twin else ""
    raise BadData(
        f"{table} names {len(absent):,} of {len(places):,} files that are not in "
        f"{', '.join(where.where for where in folders) or 'any archive'}: {shorten_list(absent)}{hint}"
    )
