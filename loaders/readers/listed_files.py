"""Images, audio files or texts that a table names, a file a row.

[distributions.options]
path = "photos/{file}"                    # a row's path, with columns of the table in braces
field = "image"
columns = { label = "label" }             # and other options of the reader `table`
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

import pyarrow as pa

from ...core.errors import BadData
from ...splits.schema import Schema
from ..acquire.archive_files import ArchiveFiles
from ..files.patterns import PathPattern
from ._file_checks import find_audio_problem, find_image_problem
from ._layout import attach_files, get_archive
from .image_folder import find_text_problem
from .table import read_table

_PATH = "path of the file"


def read(
    files: Mapping[str, Path | ArchiveFiles],
    *,
    path: str,
    field: str,
    schema: Schema,
    tables: Collection[str] = (),
    folder: str = "",
    pattern: str = "",
    **options: Any,
) -> Iterator[pa.Table]:
    """Yield the rows of tables, with the bytes of the file that each names in `field` (its text, if the field is a
    string); about 32 MB per table.

    `tables` are the files that are tables, beside the folder or archive of the others; by default the table is in it.
    `folder` is the beginning of all paths that is left out: what the folder or archive is called. The parts of
    `pattern` (`files/patterns.py`), which the paths fit, are further fields. Other options are those of `table`. Raises
    `BadData` for files that are missing or damaged."""
    own = {"columns": {item.name: item.name for item in schema.fields if item.name != field}}
    rows = _read_rows(files, tables or files, path, schema=schema, **{**own, **options})
    archive = get_archive({name: where for name, where in files.items() if name not in tables})
    kind = schema[field].type
    find_problem = {"image": find_image_problem, "audio": find_audio_problem}.get(kind, find_text_problem)

    def convert(content: bytes, name: str) -> bytes | str:
        if problem := find_problem(content):
            raise BadData(f"{archive.where}: {name} {problem}")
        return content.decode("utf-8-sig") if kind == "string" else content

    paths = [_clean(name).removeprefix(f"{folder}/") for name in rows[_PATH].to_pylist()]
    rows, path_pattern = rows.drop_columns([_PATH]), PathPattern(pattern)
    for name in path_pattern.parts:
        rows = rows.append_column(name, [[(path_pattern.fits(own_path) or {}).get(name) for own_path in paths]])
    for piece in attach_files(archive, paths, {"row": range(len(paths))}, field=field, convert=convert):
        yield rows.take(piece["row"]).append_column(field, piece[field])


def find_common_folder(
    files: Mapping[str, Path | ArchiveFiles], tables: Collection[str], path: str, **options: Any
) -> str:
    """Return the folder of all files that tables name. Raises `BadData` if there is none, or it is not below the
    current one."""
    rows = _read_rows(files, tables, path, **{**options, "columns": {}})
    paths = [PurePosixPath(_clean(name)) for name in rows[_PATH].unique().to_pylist()]
    common = paths[0].parent
    while not all(name.is_relative_to(common) for name in paths):
        common = common.parent
    if not common.parts or common.is_absolute() or ".." in common.parts:
        raise BadData(
            f"{', '.join(sorted(tables))}: the files that {path!r} names, such as {str(paths[0])!r}, are not in one "
            "folder beside the draft: put them into one, and write its path before the column's"
        )
    return str(common)


def _read_rows(
    files: Mapping[str, Path | ArchiveFiles], tables: Collection[str], path: str, **options: Any
) -> pa.Table:
    """The rows of the tables, with the path of each as `_PATH`."""
    texts = {**options.pop("texts", {}), _PATH: path}
    return read_table({name: files[name] for name in tables}, texts=texts, **options)


def _clean(path: str) -> str:
    return normpath(path.replace("\\", "/"))
