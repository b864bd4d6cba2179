"""The files that a reader reads: files of a source, and selected members of archives and folders."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from ...core.errors import BadData, BadDefinition, get_first_line, shorten_list
from ..acquire.archive_files import ArchiveFiles, is_archive, open_archive
from ..files.bounded_stream import BoundedStream
from ..files.patterns import choose_paths, is_hidden

Files = Mapping[str, Path | ArchiveFiles]
"""A source's files by name; a folder or archive is given as its members."""


@dataclass(frozen=True)
class Input:
    """One file. `path` is its name, or its path in a folder or archive; `name` is used in messages."""

    name: str
    path: str
    raw: Callable[[], BinaryIO]
    size: int

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Open the file as a stream, decompressed if it is compressed (gzip, bzip2, xz, zstd). Raises `BadData` if it
        cannot be read."""
        try:
            with self.raw() as file:
                head = file.read(6)
                file.seek(0)
                with _open_decompressed(file, head) as content:
                    bounded = BoundedStream(content, self.size, self.name)
                    yield content if content is file else cast(BinaryIO, io.BufferedReader(bounded))
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            raise BadData(f"{self.name} cannot be read, or is cut off: {get_first_line(error)}") from error


def _open_decompressed(file: BinaryIO, head: bytes) -> BinaryIO:
    if head.startswith(b"\x1f\x8b"):
        return cast(BinaryIO, gzip.GzipFile(fileobj=file))
    if head.startswith(b"BZh"):
        return cast(BinaryIO, bz2.BZ2File(file))
    if head == b"\xfd7zXZ\x00":
        return cast(BinaryIO, lzma.LZMAFile(file))
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return cast(BinaryIO, pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd"))
    return file


def iterate_inputs(files: Files, selection: str | Sequence[str] = (), but: Container[str] = ()) -> Iterator[Input]:
    """Yield each file. Of archives (recognised by name or content) and folders, yield the members that fit one of the
    patterns `selection` (`*.csv`), or the only member, in the order in which reading is fast. Files and members whose
    name is in `but` are left out.

    Raises `BadDefinition` if an archive has several files and `selection` is empty, and `BadData` if no file fits.
    """
    patterns = [selection] if isinstance(selection, str) else list(selection)
    for name, where in files.items():
        if name in but:
            continue
        if isinstance(where, Path) and not is_archived(name, where):
            yield _from_path(name, where)
        elif isinstance(where, Path):
            with open_archive(where, name) as archive:
                yield from _from_members(archive, patterns, but)
        else:
            yield from _from_members(where, patterns, but)


def find_input(files: Files, name: str) -> Input:
    """Return the file with a name, or with that path in the first archive or folder that has it."""
    known_names: list[str] = []
    for own, where in files.items():
        if isinstance(where, Path) and not is_archived(own, where):
            if own == name:
                return _from_path(own, where)
            known_names.append(own)
            continue
        with open_archive(where, own) if isinstance(where, Path) else nullcontext(where) as inside:
            if name in (names := inside.names()):
                return _from_bytes(inside, name, inside.read(name))
            known_names += names
    twins = [other for other in known_names if other.lower() == name.lower()]
    hint = f" ({twins[0]} differs by case only)" if twins else ""
    raise BadData(f"no file {name}{hint}: the files are {shorten_list(known_names) or 'none'}")


def read_content(name: str, path: Path) -> bytes:
    """Read a file, decompressed if it is compressed."""
    with _from_path(name, path).opened() as file:
        return file.read()


def is_archived(name: str, path: Path) -> bool:
    """Whether a file is a zip or tar archive, by its name or content; arrays (.npz) and workbooks do not count."""
    if name.lower().endswith((".npz", ".xlsx", ".xlsm")):
        return False
    if is_archive(Path(name)):
        return True
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


def open_archives(files: Files, opened: ExitStack) -> dict[str, Path | ArchiveFiles]:
    """Return the files, with archives opened as their members; the stack `opened` closes them."""
    return {
        name: opened.enter_context(open_archive(where, name))
        if isinstance(where, Path) and is_archived(name, where)
        else where
        for name, where in files.items()
    }


def _from_path(name: str, path: Path) -> Input:
    return Input(name, name, lambda: path.open("rb"), path.stat().st_size)


def _from_members(archive: ArchiveFiles, patterns: Sequence[str], but: Container[str]) -> Iterator[Input]:
    archive.announce_hidden()
    names = [name for name in archive.names() if name not in but and (name in patterns or not is_hidden(name))]
    if patterns:
        absent: list[str] = []
        fit = choose_paths(names, patterns, absent)
        if lacking := absent if not fit else [pattern for pattern in absent if pattern not in patterns]:
            raise BadData(f"{archive.where} has no file {' or '.join(lacking)} (it has {shorten_list(names)})")
    elif len(names) != 1:
        raise BadDefinition(
            f"{archive.where} holds {shorten_list(names) or 'no file'}: choose which to read with options = "
            f"{{ members = [..] }}"
        )
    else:
        fit = set(names)
    for name, content in archive.walk(fit.__contains__):
        yield _from_bytes(archive, name, content)


def _from_bytes(archive: ArchiveFiles, name: str, content: bytes) -> Input:
    return Input(f"{archive.where}: {name}", name, lambda: io.BytesIO(content), len(content))
