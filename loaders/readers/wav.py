"""Audio files in folders, zip or tar archives, with fields taken from their paths.

[distributions.options]
folder = "recordings"
pattern = "{digit:[0-9]}_{speaker}_{number}.wav"
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..acquire.archive_files import ArchiveFiles
from ._file_checks import find_audio_problem
from .image_folder import FolderOptions, list_folder_parts, read_folder_tables

SUFFIXES = ("wav",)


def read(files: Mapping[str, Path | ArchiveFiles], *, audio: str = "audio", **options: Any) -> Iterator[pa.Table]:
    """Yield a row for each audio file, with its bytes in the field `audio` and the fields of its path; about 32 MB per
    table. The options are those of `image_folder`; FLAC, Ogg and MP3 are read if `suffixes` has them. Raises `BadData`
    for files that are cut off, damaged or not audio."""
    yield from read_folder_tables(files, FolderOptions.parse(options), audio, SUFFIXES, find_audio_problem)


def parts(files: Mapping[str, Path | ArchiveFiles], **options: Any) -> list[dict[str, str]]:
    """Return the parts of the path of each audio file that would be read, without reading the files."""
    return list_folder_parts(files, FolderOptions.parse(options), SUFFIXES)
