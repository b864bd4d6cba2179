"""Sounds in folders, or in a zip or a tar of them: what their paths say become fields.

[distributions.options]
folder = "recordings"
pattern = "{digit:[0-9]}_{speaker}_{number}.wav"
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..acquire.archive_files import ArchiveFiles
from ._file_checks import find_audio_problem
from ._folder_files import list_folder_parts, parse_options, read_folder_tables

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = ("wav",)


def read(files: Mapping[str, Path | ArchiveFiles], **options: Any) -> pa.Table:
    """The rows of all sounds; see `pieces`."""
    import pyarrow as pa

    return pa.concat_tables(pieces(files, **options))


def pieces(files: Mapping[str, Path | ArchiveFiles], *, audio: str = "audio", **options: Any) -> Iterator[pa.Table]:
    """A row for each sound: the field `audio` (its bytes as published), and what its path says; about 32 MB a table.
    The options are those of `image_folder`; FLAC, Ogg and MP3 are read where `suffixes` names them. A sound that is cut
    off, damaged or none is named in a `BadData`."""
    yield from read_folder_tables(files, parse_options(options), audio, SUFFIXES, find_audio_problem)


def parts(files: Mapping[str, Path | ArchiveFiles], **options: Any) -> list[dict[str, str]]:
    """The parts of the path of each sound that would be read, without reading any."""
    return list_folder_parts(files, parse_options(options), SUFFIXES)
