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
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData, get_first_line
from ...core.progress import log_message
from ..files.hidden import DESKTOP_FILES, describe_hidden, is_hidden

if TYPE_CHECKING:
    from typing import Self

_GROWTH, _HARMLESS = 200, 1 << 30
"""The maximum ratio of unpacked to packed size, and the size in bytes below which it is not checked."""

_BROKEN = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    OSError,
    EOFError,
    ValueError,
)
"""The exceptions raised for damaged or truncated archives."""

PathFilter = Callable[[str], bool]


class ArchiveFiles(ABC):
    """Files by path (with `/`), such as "photo/dog/056_0001.jpg". `where` names the folder or archive in messages."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.desktop_files: list[str] = []
        """Paths of files that are not members."""

    @abstractmethod
    def names(self) -> list[str]:
        """The paths of all files, sorted."""

    @abstractmethod
    def walk(self, accept: PathFilter | None = None) -> Iterator[tuple[str, bytes]]:
        """Yield the path and bytes of each file that `accept` selects, in the order that is fastest to read."""

    def executable(self, name: str) -> bool:
        """Whether a file is executable, which git trees record."""
        return False

    def read(self, name: str) -> bytes:
        """Return a file's bytes. Raises `BadData` if there is no file of that name."""
        for _, content in self.walk(lambda other: other == name):
            return content
        raise BadData(f"{self.where} has no file {name}")

    def subdir(self, folder: str) -> ArchiveFiles:
        """The files below a folder, by paths relative to it."""
        return _SubdirFiles(self, folder) if folder else self

    def visible(self) -> ArchiveFiles:
        """All files except hidden ones."""
        return _VisibleFiles(self) if any(map(is_hidden, self.names())) else self

    def announce_hidden(self) -> None:
        """Log how many files are ignored because they are hidden."""
        if hidden := [*self.desktop_files, *filter(is_hidden, self.names())]:
            log_message(describe_hidden(self.where, hidden))

    def close(self) -> None:  # noqa: B027  (a folder has nothing to close)
        """Close the archive."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _SubdirFiles(ArchiveFiles):
    def __init__(self, parent: ArchiveFiles, folder: str) -> None:
        super().__init__(f"{parent.where}/{folder}")
        self._parent, self._head = parent, f"{folder.strip('/')}/"
        self.desktop_files = [name[len(self._head) :] for name in parent.desktop_files if name.startswith(self._head)]
        if not self.names():
            raise BadData(f"{parent.where} has no folder {folder}")

    def names(self) -> list[str]:
        return [name[len(self._head) :] for name in self._parent.names() if name.startswith(self._head)]

    def walk(self, accept: PathFilter | None = None) -> Iterator[tuple[str, bytes]]:
        head = self._head

        def accept_below(name: str) -> bool:
            return name.startswith(head) and (accept is None or accept(name[len(head) :]))

        return ((name[len(head) :], content) for name, content in self._parent.walk(accept_below))

    def executable(self, name: str) -> bool:
        return self._parent.executable(self._head + name)

    def read(self, name: str) -> bytes:
        return self._parent.read(self._head + name)

    def close(self) -> None:
        self._parent.close()


class _VisibleFiles(ArchiveFiles):
    def __init__(self, parent: ArchiveFiles) -> None:
        super().__init__(parent.where)
        self._parent = parent
        self._names = [name for name in parent.names() if not is_hidden(name)]

    def names(self) -> list[str]:
        return self._names

    def walk(self, accept: PathFilter | None = None) -> Iterator[tuple[str, bytes]]:
        return self._parent.walk(lambda name: not is_hidden(name) and (accept is None or accept(name)))

    def executable(self, name: str) -> bool:
        return self._parent.executable(name)

    def read(self, name: str) -> bytes:
        return self._parent.read(name)

    def close(self) -> None:
        self._parent.close()


class FolderFiles(ArchiveFiles):
    """The files of a folder. A link to a target outside the folder is refused."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self._folder = folder
        root = folder.resolve()
        self._names = []
        for path in folder.rglob("*"):
            if ".git" in path.relative_to(folder).parts:
                continue
            if path.name in DESKTOP_FILES:
                self.desktop_files.append(path.relative_to(folder).as_posix())
                continue
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                raise BadData(f"{path} is a link to a file outside {folder}: replace it by the file itself")
            if path.is_file():
                self._names.append(path.relative_to(folder).as_posix())
        self._names.sort()
        self._known = frozenset(self._names)

    def names(self) -> list[str]:
        return self._names

    def walk(self, accept: PathFilter | None = None) -> Iterator[tuple[str, bytes]]:
        for name in self._names:
            if accept is None or accept(name):
                yield name, self.read(name)

    def read(self, name: str) -> bytes:
        if name not in self._known:  # also guards against paths that leave the folder
            raise BadData(f"{self.where} has no file {name}")
        try:
            return (self._folder / name).read_bytes()
        except OSError as error:
            raise BadData(f"{self._folder / name} cannot be read: {error.strerror}") from error

    def executable(self, name: str) -> bool:
        return bool((self._folder / name).stat().st_mode & 0o100)


class ZipFiles(ArchiveFiles):
    """The files of a zip."""

    def __init__(self, path: Path, name: str = "") -> None:
        super().__init__(name or str(path))
        try:
            self._zip = zipfile.ZipFile(path)
        except _BROKEN as error:
            raise BadData(f"{self.where} is not a readable zip: {get_first_line(error)}") from error
        files = [info for info in self._zip.infolist() if not info.is_dir()]
        self.desktop_files = [info.filename for info in files if _is_desktop_file(info.filename)]
        infos = [info for info in files if not _is_desktop_file(info.filename)]
        for info in infos:
            _refuse_escape(info.filename, self.where)
            if (info.external_attr >> 16) & 0o170000 == 0o120000:
                raise BadData(f"{self.where}: {info.filename} is a link: only regular files are supported")
        _refuse_bomb(sum(info.file_size for info in infos), path.stat().st_size, self.where)
        self._infos = {info.filename: info for info in infos}

    def names(self) -> list[str]:
        return sorted(self._infos)

    def walk(self, accept: PathFilter | None = None) -> Iterator[tuple[str, bytes]]:
        for info in sorted(self._infos.values(), key=lambda info: info.header_offset):
            if accept is None or accept(info.filename):
                yield info.filename, self.read(info.filename)

    def read(self, name: str) -> bytes:
        if name not in self._infos:
            raise BadData(f"{self.where} has no file {name}")
        try:
            return self._zip.read(self._infos[name])
        except (RuntimeError, *_BROKEN) as error:
            raise BadData(f"{self.where}: {name} cannot be read: {get_first_line(error)}") from error

    def executable(self, name: str) -> bool:
        return bool((self._infos[name].external_attr >> 16) & 0o100)

    def close(self) -> None:
        self._zip.close()


class TarFiles(ArchiveFiles):
    """The files of a tar, plain or compressed by gzip, bzip2, xz or zstd. An uncompressed tar supports random access; a
    compressed one is read from its beginning on each walk."""

    def __init__(self, path: Path, name: str = "") -> None:
        super().__init__(name or str(path))
        self._path = path
        self._infos: dict[str, tarfile.TarInfo] = {}
        total = 0
        for info in self._headers():
            if info.isdir():
                continue
            if _is_desktop_file(info.name):
                self.desktop_files.append(_normalise_name(info.name))
                continue
            _refuse_escape(info.name, self.where)
            if not info.isreg():
                raise BadData(f"{self.where}: {info.name} is a link or a device: only regular files are supported")
            total += info.size
            _refuse_bomb(total, path.stat().st_size, self.where)
            self._infos[_normalise_name(info.name)] = info

    def _headers(self) -> Iterator[tarfile.TarInfo]:
        with self._reading() as tar:
            yield from tar

    def _reading(self) -> _TarStream:
        return _TarStream(self._path, self.where)

    def names(self) -> list[str]:
        return sorted(self._infos)

    def walk(self, accept: PathFilter | None = None) -> Iterator[tuple[str, bytes]]:
        remaining = {name for name in self._infos if accept is None or accept(name)}
        with self._reading() as tar:
            for info in tar:
                name = _normalise_name(info.name)
                if name in remaining and info.isreg():
                    remaining.discard(name)
                    file = tar.extractfile(info)
                    content = file.read() if file else b""
                    if len(content) != info.size:
                        raise BadData(f"{self.where} is truncated within {name}")
                    yield name, content
                if not remaining:
                    return

    def executable(self, name: str) -> bool:
        return bool(self._infos[name].mode & 0o100)


class _TarStream:
    """A tar that is read once, from its beginning. Errors in it become `BadData`."""

    def __init__(self, path: Path, where: str) -> None:
        self._path, self._where = path, where

    def __enter__(self) -> tarfile.TarFile:
        try:
            self._raw = _open_decompressed(self._path)
            # Stream mode: tarfile keeps no index of the members and does not seek to the end.
            self._tar = tarfile.open(fileobj=self._raw, mode="r|")
        except _BROKEN as error:
            raise self._make_error(error) from error
        return self._tar

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._tar.close()
        self._raw.close()
        if error is not None and not isinstance(error, BadData) and isinstance(error, _BROKEN):
            raise self._make_error(error) from error

    def _make_error(self, error: BaseException) -> BadData:
        return BadData(f"{self._where} is not a readable tar, or is truncated: {get_first_line(error)}")


def _open_decompressed(path: Path) -> Any:
    import pyarrow as pa

    with path.open("rb") as file:
        head = file.read(6)
    kinds = {b"\x1f\x8b": "gzip", b"BZ": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
    if head == b"\xfd7zXZ\x00":
        return lzma.open(path)
    for magic, kind in kinds.items():
        if head.startswith(magic):
            return pa.input_stream(str(path), compression=kind, buffer_size=1 << 20)
    return path.open("rb", buffering=1 << 20)


def is_archive(path: Path) -> bool:
    """Whether a file has the name of a zip or tar."""
    return any(
        path.name.lower().endswith(end)
        for end in (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst")
    )


def open_archive(path: Path, name: str = "") -> ArchiveFiles:
    """Open a folder, zip or tar (plain, gzip, bzip2, xz, zstd). Raises `BadData` if it is none of these."""
    if path.is_dir():
        return FolderFiles(path)
    return ZipFiles(path, name) if zipfile.is_zipfile(path) else TarFiles(path, name)


def _normalise_name(name: str) -> str:
    return name.removeprefix("./")


def _is_desktop_file(name: str) -> bool:
    parts = name.split("/")
    return parts[-1] in DESKTOP_FILES or parts[0] == "__MACOSX"


def _refuse_escape(name: str, where: str) -> None:
    parts = _normalise_name(name).split("/")
    if name.startswith("/") or "\\" in name or ":" in parts[0] or {"", "."} & set(parts) or ".." in parts:
        raise BadData(f"{where}: the path {name!r} is invalid or leaves the archive")


def _refuse_bomb(total: int, size: int, where: str) -> None:
    if total > max(_HARMLESS, _GROWTH * size):
        raise BadData(
            f"{where} unpacks to more than {total:,} bytes from {size:,}: refused as a possible decompression bomb"
        )
