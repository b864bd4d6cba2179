"""A file in a Debian package, through the machine's own apt and its configuration; needs no root privileges."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from . import MirrorFailed
from ._packages import fetch_member, find_last_line, run_client

NETWORK = True


def describe(mirror: dict[str, Any]) -> str:
    return f"apt-get download {mirror['package']}={mirror['version']}"


def fetch(mirror: dict[str, Any], target: Path, size: int | None) -> None:
    """Download the package and copy its `member` (a path below the root, such as `usr/share/x.csv`) to `target`."""

    def download(folder: Path) -> Path:
        package = f"{mirror['package']}={mirror['version']}"
        command = ["apt-get", "--quiet", "--option", "Acquire::Retries=1", "download", package]
        return _unpack_package(run_client(command, folder, lambda text: find_last_line(text, "E:")))

    fetch_member(describe(mirror), download, f"./{mirror['member']}", target)


def _unpack_package(package: Path) -> Path:
    """Extract the package's file tree to a tar archive."""
    tape = package.with_suffix(".tar")
    try:
        with tape.open("wb") as file:
            command = ["dpkg-deb", "--fsys-tarfile", str(package)]
            subprocess.run(command, stdout=file, stderr=subprocess.PIPE, text=True, check=True)
    except FileNotFoundError as error:
        raise MirrorFailed("dpkg-deb is not installed") from error
    except subprocess.CalledProcessError as error:
        raise MirrorFailed(find_last_line(error.stderr, "dpkg-deb: error:")) from error
    package.unlink()
    return tape
