"""Read the files of a folder, zip or tar by path, without unpacking to disk.

Archives are untrusted: paths that leave the archive, links and devices are refused, and so is a decompression bomb.
Files that operating systems add (`.DS_Store`, `Thumbs.db`) are not members. Other hidden files are members, since
the hashes of published folders include them, but they are not data: `visible` leaves them out.
"""

from __future__ import annotations

import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData, get_first_line
from ...core.limits import MEMBERS
from ...core.progress import log_message
from ..files.bounded_stream import BoundedStream, refuse_bomb
from ..files.patterns import DESKTOP_FILES, describe_hidden, is_hidden

if TYPE_CHECKING:
    from typing import Self

_BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(OSError, EOFError, ValueError, RuntimeError),
)
"""The exceptions raised for damaged, truncated or encrypted archives."""

PathFilter = Callable[[str], bool]


def open_archive(path: Path, name: str = "") -> ArchiveFiles:
    """Open a folder, zip or tar (plain, gzip, bzip2, xz, zstd). Raises `BadData` if it is none of these."""
    if path.is_dir():
        return FolderFiles(path)
    return _ZipFiles(path, name) if zipfile.is_zipfile(path) else _TarFiles(path, name)


def is_archive(path: Path) -> bool:
    """Whether a file has the name of a zip or tar."""
    ends = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst")
    return path.name.lower().endswith(ends)


class ArchiveFiles:
    """Files by path (with `/`), such as "photo/dog/056_0001.jpg". `where` names the folder or archive in messages."""

    def __init__(self, where: str) -> None:
        self.where = where
        self._infos: dict[str, Any] = {}
        """By path, what is known of each file, in the order that is fastest to read."""
        self.desktop_files: list[str] = []
        """Paths of files that are not members."""
        self._hides = False

    def _lists(self, name: str) -> bool:
        return not (self._hides and is_hidden(name))

    def names(self) -> list[str]:
        """The paths of all files, sorted."""
        return sorted(filter(self._lists, self._infos))

    def walk(self, accept: PathFilter | None = None) -> Iterator[tuple[str, bytes]]:
        """Yield the path and bytes of each file that `accept` selects, in the order that is fastest to read."""
        return self._walk(lambda name: self._lists(name) and (accept is None or accept(name)))

    def _walk(self, accept: PathFilter) -> Iterator[tuple[str, bytes]]:
        return ((name, self.read(name)) for name in self._infos if accept(name))

    def executable(self, name: str) -> bool:
        """Whether a file is executable, which git trees record."""
        raise NotImplementedError

    def read(self, name: str) -> bytes:
        """Return a file's bytes. Raises `BadData` if there is no file of that name."""
        for _, content in self._walk(lambda other: other == name):
            return content
        raise BadData(f"{self.where} has no file {name}")

    def subdir(self, folder: str) -> ArchiveFiles:
        """The files below a folder, by paths relative to it."""
        if not folder:
            return self
        below, head = copy(self), f"{folder.strip('/')}/"
        below.where = f"{self.where}/{folder}"
        below._infos = {name.removeprefix(head): self._infos[name] for name in self._infos if name.startswith(head)}
        below.desktop_files = [name.removeprefix(head) for name in self.desktop_files if name.startswith(head)]
        if not below.names():
            raise BadData(f"{self.where} has no folder {folder}")
        return below

    def visible(self) -> ArchiveFiles:
        """All files except hidden ones, which can still be read by name."""
        if not any(map(is_hidden, self.names())):
            return self
        visible = copy(self)
        visible._hides, visible.desktop_files = True, []
        return visible

    def announce_hidden(self) -> None:
        """Log how many files are ignored because they are hidden."""
        if hidden := [*self.desktop_files, *filter(is_hidden, self.names())]:
            log_message(describe_hidden(self.where, hidden))

    def close(self) -> None:
        """Close the archive."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self, name: str, info: object, is_regular: bool) -> None:
        """Add a file of an archive. Raises `BadData` if its path leaves the archive, or if it is not a file."""
        name = name.removeprefix("./")
        parts = name.split("/")
        if parts[-1] in DESKTOP_FILES or parts[0] == "__MACOSX":
            self.desktop_files.append(name)
            return
        if "\\" in name or ":" in parts[0] or {"", ".", ".."} & set(parts):
            raise BadData(f"{self.where}: the path {name!r} is invalid or leaves the archive")
        if not is_regular:
            raise BadData(f"{self.where}: {name} is a link, a device or sparse: only regular files are supported")
        self._infos[name] = info
        if len(self._infos) > MEMBERS:
            raise BadData(f"{self.where} has over {MEMBERS:,} files: divide it")


class FolderFiles(ArchiveFiles):
    """The files of a folder. A link to a target outside the folder is refused."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        root = folder.resolve()
        for path in sorted(folder.rglob("*"), key=Path.as_posix):
            name = path.relative_to(folder)
            if ".git" in name.parts:
                continue
            if path.name in DESKTOP_FILES:
                self.desktop_files.append(name.as_posix())
            elif path.is_symlink() and not path.resolve().is_relative_to(root):
                raise BadData(f"{path} is a link to a file outside {folder}: replace it by the file itself")
            elif path.is_file():
                self._infos[name.as_posix()] = path

    def read(self, name: str) -> bytes:
        if name not in self._infos:  # also guards against paths that leave the folder
            raise BadData(f"{self.where} has no file {name}")
        try:
            return bytes(self._infos[name].read_bytes())
        except OSError as error:
            raise BadData(f"{self._infos[name]} cannot be read: {error.strerror}") from error

    def executable(self, name: str) -> bool:
        return bool(self._infos[name].stat().st_mode & 0o100)


class _ZipFiles(ArchiveFiles):
    """The files of a zip."""

    def __init__(self, path: Path, name: str = "") -> None:
        super().__init__(name or str(path))
        try:
            self._zip = zipfile.ZipFile(path)
        except _BROKEN as error:
            raise BadData(f"{self.where} is not a readable zip: {get_first_line(error)}") from error
        for info in sorted(self._zip.infolist(), key=lambda info: info.header_offset):
            if not info.is_dir():
                self._add(info.filename, info, (info.external_attr >> 16) & 0o170000 != 0o120000)
        refuse_bomb(path.stat().st_size, sum(info.file_size for info in self._infos.values()), self.where)

    def read(self, name: str) -> bytes:
        if name not in self._infos:
            raise BadData(f"{self.where} has no file {name}")
        try:
            return self._zip.read(self._infos[name])
        except _BROKEN as error:
            raise BadData(f"{self.where}: {name} cannot be read: {get_first_line(error)}") from error

    def executable(self, name: str) -> bool:
        return bool((self._infos[name].external_attr >> 16) & 0o100)

    def close(self) -> None:
        self._zip.close()


class _TarFiles(ArchiveFiles):
    """The files of a tar, plain or compressed by gzip, bzip2, xz or zstd; read from its beginning on each walk."""

    def __init__(self, path: Path, name: str = "") -> None:
        super().__init__(name or str(path))
        self._path = path
        with _read_tar(path, self.where) as tar:
            for info in tar:
                if not info.isdir():
                    self._add(info.name, info, info.isreg() and not info.issparse())

    def _walk(self, accept: PathFilter) -> Iterator[tuple[str, bytes]]:
        remaining = {info.name: name for name, info in self._infos.items() if accept(name)}
        with _read_tar(self._path, self.where) as tar:
            for info in tar:
                if info.isreg() and (name := remaining.pop(info.name, None)) is not None:
                    file = tar.extractfile(info)
                    content = file.read() if file else b""
                    if len(content) != info.size:
                        raise BadData(f"{self.where} is truncated within {name}")
                    yield name, content
                if not remaining:
                    return

    def executable(self, name: str) -> bool:
        return bool(self._infos[name].mode & 0o100)


@contextmanager
def _read_tar(path: Path, where: str) -> Iterator[tarfile.TarFile]:
    """Open a tar that is read once, from its beginning. Errors in it become `BadData`."""
    try:
        # Stream mode: tarfile keeps no index of the members and does not seek to the end.
        with (
            _open_decompressed(path) as raw,
            tarfile.open(fileobj=BoundedStream(raw, path.stat().st_size, where), mode="r|") as tar,
        ):
            yield tar
    except _BROKEN as error:
        raise BadData(f"{where} is not a readable tar, or is truncated: {get_first_line(error)}") from error


def _open_decompressed(path: Path) -> Any:
    import pyarrow as pa

    with path.open("rb") as file:
        head = file.read(6)
    if head == b"\xfd7zXZ\x00":
        return lzma.open(path)
    for magic, kind in {b"\x1f\x8b": "gzip", b"BZ": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}.items():
        if head.startswith(magic):
            return pa.input_stream(str(path), compression=kind, buffer_size=1 << 20)
    return path.open("rb", buffering=1 << 20)
