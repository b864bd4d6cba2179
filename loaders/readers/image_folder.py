"""Pictures in folders, or in a zip or a tar of them: what their paths say become fields.

[distributions.options]
pattern = "{domain}/{category}/{file}"
fields = { domain = "domain", label = "category" }
maps = { label = ["dog", "elephant", "giraffe"] }
ignore = ["README.txt"]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..acquire.archive_files import ArchiveFiles
from ._file_checks import find_image_problem
from ._folder_files import list_folder_parts, parse_options, read_folder_tables

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = ("jpg", "jpeg", "png", "webp", "gif", "tif", "tiff", "bmp")


def read(files: Mapping[str, Path | ArchiveFiles], **options: Any) -> pa.Table:
    """The rows of all pictures; see `pieces`."""
    import pyarrow as pa

    return pa.concat_tables(pieces(files, **options))


def pieces(files: Mapping[str, Path | ArchiveFiles], *, image: str = "image", **options: Any) -> Iterator[pa.Table]:
    """A row for each picture: the field `image` (its bytes as published), and what its path says; about 32 MB a table.

    `pattern` names the parts of a path, "{domain}/{category}/{file}" (`files/patterns.py` says all of it), `folder`
    where it begins in the archive. Fields: `fields` (a field's part; without it each part is a field), `maps` (a
    field's value for each text; a list of texts, whose places are the values; or "sorted" for the places of all the
    texts among the files that are read), `constants` (fields that have one value), `path` (the field of the path).
    Which files: those with one of `suffixes` (any case), but hidden ones and those to `ignore` (patterns of names,
    paths or folders); `where` and `without` ({ part = text or texts }); `each` (other options for one archive of
    several, by its name or a pattern).

    A file that is not to be ignored and does not fit, and a picture that is cut off, damaged or none, is named in a
    `BadData`; those that are `accept`ed (patterns like those) are read as they are.
    """
    yield from read_folder_tables(files, parse_options(options), image, SUFFIXES, find_image_problem)


def parts(files: Mapping[str, Path | ArchiveFiles], **options: Any) -> list[dict[str, str]]:
    """The parts of the path of each picture that would be read, without reading any."""
    return list_folder_parts(files, parse_options(options), SUFFIXES)
