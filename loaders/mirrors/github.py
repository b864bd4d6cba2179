"""A GitHub repository at a commit, as the one archive that GitHub makes of it. Its bytes may differ from day to day;
what is in it does not, and is held to the tree's hash."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from . import https

NETWORK = True


def describe(mirror: dict[str, Any]) -> str:
    return f"GitHub {mirror['repo']}@{mirror['commit'][:12]}"


def fetch(mirror: dict[str, Any], target: Path, size: int | None) -> None:
    """Download the archive of `repo` ("owner/name") at `commit`. `FARSHIFT_GITHUB` names another host that answers as
    GitHub does, such as a proxy of one's own."""
    host = os.environ.get("FARSHIFT_GITHUB") or "https://github.com"
    https.fetch({"url": f"{host.rstrip('/')}/{mirror['repo']}/archive/{mirror['commit']}.tar.gz"}, target, size)
