"""A file in a Debian package, through the machine's own apt and its configuration; needs no root privileges."""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path
from typing import Any

from ...core.progress import log_message
from . import MirrorFailed
from ._packages import extract_member, find_last_line, get_cached_archive, run_client

NETWORK = True


def describe(mirror: dict[str, Any]) -> str:
    return f"apt-get download {mirror['package']}={mirror['version']}"


def fetch(mirror: dict[str, Any], target: Path, size: int | None) -> None:
    """Download the package and copy its `member` (a path below the root, such as `usr/share/x.csv`) to `target`."""
    log_message(f"{describe(mirror)} (for {mirror['member']})")
    tape = get_cached_archive(describe(mirror), partial(_download_package, f"{mirror['package']}={mirror['version']}"))
    extract_member(tape, f"./{mirror['member']}", target)


def _download_package(pinned: str, folder: Path) -> Path:
    """Extract the package's file tree to a tar archive, the only file in the folder."""
    package = run_client(
        ["apt-get", "--quiet", "--option", "Acquire::Retries=1", "download", pinned], folder, _find_error_line
    )
    tape = package.with_suffix(".tar")
    _unpack_package(package, tape)
    package.unlink()
    return tape


def _unpack_package(package: Path, tape: Path) -> None:
    command = ["dpkg-deb", "--fsys-tarfile", str(package)]
    try:
        with tape.open("wb") as file:
            subprocess.run(command, stdout=file, stderr=subprocess.PIPE, text=True, check=True)
    except FileNotFoundError as error:
        raise MirrorFailed("dpkg-deb is not installed") from error
    except subprocess.CalledProcessError as error:
        raise MirrorFailed(find_last_line(error.stderr, ["dpkg-deb: error:"])) from error


def _find_error_line(text: str) -> str:
    return find_last_line(text, ["E:"])
