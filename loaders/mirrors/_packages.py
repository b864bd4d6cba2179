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

from ...core.progress import log_message
from . import MirrorFailed

_SECONDS = 300

_last = threading.local()
"""The last archive of this thread (`name`, `folder`, `archive`), since a source often has several files in one
package."""


def fetch_member(name: str, download: Callable[[Path], Path], member: str | None, target: Path) -> None:
    """Copy the file `member` of an archive to `target`, or without a member the archive itself. `name` names the
    archive; `download` writes it into the given folder and returns its path. It is cached until this thread requests
    another one. `outer.zip!inner` is a member of an archive in it. Raises `MirrorFailed` if it has no such member."""
    log_message(f"{name} (for {member or 'its archive'})")
    if _last.__dict__.get("name") != name:
        folder = tempfile.TemporaryDirectory()
        try:
            archive = download(Path(folder.name))
        except BaseException:
            folder.cleanup()
            raise
        remove_cached_archive()
        _last.name, _last.folder, _last.archive = name, folder, archive
    if member is None:
        shutil.copyfile(_last.archive, target)
    else:
        _extract_member(_last.archive, member, target)


def remove_cached_archive() -> None:
    """Remove the cached archive of this thread."""
    if "folder" in _last.__dict__:
        _last.folder.cleanup()
    _last.__dict__.clear()


def _extract_member(archive: Path, member: str, target: Path) -> None:
    outer, _, inner = member.partition("!")
    if inner:
        nested = archive.with_name(f"in-{Path(outer).name}")
        if not nested.exists():
            _extract_member(archive, outer, nested)
        return _extract_member(nested, inner, target)
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as bundle, bundle.open(member) as inside, target.open("wb") as file:
                shutil.copyfileobj(inside, file)
            return
        with tarfile.open(archive) as tape, target.open("wb") as file:
            if (content := tape.extractfile(member)) is None:
                raise KeyError(member)
            shutil.copyfileobj(content, file)
    except (KeyError, EOFError, zlib.error, zipfile.BadZipFile, tarfile.TarError) as error:
        raise MirrorFailed(f"{archive.name} has no readable {member}") from error


def run_client(command: Sequence[str], folder: Path, get_reason: Callable[[str], str]) -> Path:
    """Run a registry's client in `folder`, and return the archive that it writes there.

    Raises `MirrorFailed` if the client is not installed, does not finish in five minutes, or writes no archive;
    `get_reason` extracts the reason from its stderr.
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
        raise MirrorFailed(get_reason(done.stderr) or f"{name} downloaded nothing")
    return archives[0]


def find_last_line(text: str, *marks: str) -> str:
    """Return the last line of a client's stderr that begins with one of `marks`, without the mark; else the last
    line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in reversed(lines):
        for mark in marks:
            if line.startswith(mark):
                return line.removeprefix(mark).strip()
    return lines[-1] if lines else ""
