"""Images in folders, zip or tar archives, with fields taken from their paths.

[distributions.options]
pattern = "{domain}/{category}/{file}"
fields = { domain = "domain", label = "category" }
maps = { label = ["dog", "elephant", "giraffe"] }
ignore = ["README.txt"]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..acquire.archive_files import ArchiveFiles
from ._file_checks import find_image_problem
from ._folder_files import list_folder_parts, parse_options, read_folder_tables

SUFFIXES = ("jpg", "jpeg", "png", "webp", "gif", "tif", "tiff", "bmp")


def read(files: Mapping[str, Path | ArchiveFiles], **options: Any) -> pa.Table:
    """Read the rows of all images; see `pieces`."""
    return pa.concat_tables(pieces(files, **options))


def pieces(files: Mapping[str, Path | ArchiveFiles], *, image: str = "image", **options: Any) -> Iterator[pa.Table]:
    """Yield a row for each image, with its bytes in the field `image` and the fields of its path; about 32 MB per
    table.

    `pattern` names the parts of a path, "{domain}/{category}/{file}" (see `files/patterns.py`); `folder` is where it
    begins in the archive. Fields: `fields` (the part of each field; by default each part is a field), `maps` (a field's
    value for each text; a list of texts whose indices are the values; or "sorted", for the indices in the sorted list
    of all texts in the files that are read), `constants` (fields with one value), `path` (the field of the path).
    Which files: those with one of `suffixes` (in any case), except hidden files and those that fit `ignore` (patterns
    of names, paths or folders); `where` and `without` ({ part = text or texts }); `each` (other options for one archive
    of several, by its name or a pattern).

    Raises `BadData` for files that neither fit `pattern` nor `ignore`, and for files that are cut off, damaged or not
    images; files that fit `accept` (patterns as in `ignore`) are not checked.
    """
    yield from read_folder_tables(files, parse_options(options), image, SUFFIXES, find_image_problem)


def parts(files: Mapping[str, Path | ArchiveFiles], **options: Any) -> list[dict[str, str]]:
    """Return the parts of the path of each image that would be read, without reading the images."""
    return list_folder_parts(files, parse_options(options), SUFFIXES)
