"""A GitHub repository at a commit, as the archive that GitHub generates. The archive's bytes may change over time; its
content does not, and is checked by the tree hash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...core.settings import read_settings
from . import https

NETWORK = True


def describe(mirror: dict[str, Any]) -> str:
    return f"GitHub {mirror['repo']}@{mirror['commit'][:12]}"


def fetch(mirror: dict[str, Any], target: Path, size: int | None) -> None:
    """Download the archive of `repo` ("owner/name") at `commit`. `FARSHIFT_GITHUB` sets another host with GitHub's API,
    such as a proxy."""
    https.fetch({"url": f"{read_settings().github}/{mirror['repo']}/archive/{mirror['commit']}.tar.gz"}, target, size)
