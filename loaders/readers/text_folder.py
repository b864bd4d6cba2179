"""Texts in folders, zip or tar archives, with fields taken from their paths.

[distributions.options]
pattern = "{part}/{sentiment}/{number}_{stars}.txt"
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from ...core.errors import BadDefinition
from ..acquire.archive_files import ArchiveFiles
from .image_folder import FolderOptions, list_folder_parts, read_folder_tables

SUFFIXES = ("txt",)


def read(files: Mapping[str, Path | ArchiveFiles], **options: Any) -> pa.Table:
    """Read the rows of all texts; see `pieces`."""
    return pa.concat_tables(pieces(files, **options))


def pieces(
    files: Mapping[str, Path | ArchiveFiles], *, text: str = "text", encoding: str = "utf-8-sig", **options: Any
) -> Iterator[pa.Table]:
    """Yield a row for each file, with its whole text in the field `text` and the fields of its path; about 32 MB per
    table. The options are those of `image_folder`, and `encoding`; `suffixes = [""]` reads files without a suffix.
    Raises `BadData` for files that are not text in the encoding."""
    problem = partial(find_text_problem, encoding=encoding)
    for table in read_folder_tables(files, FolderOptions.parse(options), text, SUFFIXES, problem):
        texts = [content.decode(encoding, "replace") for content in table[text].to_pylist()]
        yield table.set_column(table.column_names.index(text), text, pa.array(texts, pa.string()))


def parts(files: Mapping[str, Path | ArchiveFiles], *, encoding: str = "", **options: Any) -> list[dict[str, str]]:
    """Return the parts of the path of each text that would be read, without reading the files."""
    return list_folder_parts(files, FolderOptions.parse(options), SUFFIXES)


def find_text_problem(content: bytes, encoding: str = "utf-8-sig") -> str:
    """Return why the bytes of a file are not text; "" if they are."""
    try:
        content.decode(encoding)
    except LookupError as error:
        raise BadDefinition(f"unknown encoding {encoding!r}: use utf-8, latin-1, cp1252, utf-16 ..") from error
    except UnicodeDecodeError as error:
        return f'is not {encoding.removesuffix("-sig")} text (byte {error.start}; options = {{ encoding = "latin-1" }})'
    return ""
