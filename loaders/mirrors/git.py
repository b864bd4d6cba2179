"""A git repository at a commit, through the user's own git and its configuration."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from ...core.errors import get_first_line
from ...core.progress import log_message
from . import MirrorFailed

NETWORK = True
_SILENCE = 3600.0


def describe(mirror: dict[str, Any]) -> str:
    return f"git {mirror['repository']}@{mirror['commit'][:12]}"


def fetch(mirror: dict[str, Any], target: Path, size: int | None) -> None:
    """Fetch `commit` of `repository` (any address that git accepts), without its history, and write it as a tar to
    `target`."""
    log_message(f"{describe(mirror)}: fetching the commit")
    with tempfile.TemporaryDirectory(prefix=f"{target.name}.", dir=target.parent) as work:
        _run_git(work, "init", "--quiet", "--bare")
        _run_git(work, "fetch", "--quiet", "--depth", "1", mirror["repository"], mirror["commit"])
        _run_git(work, "archive", "--format=tar", f"--output={target.absolute()}", "FETCH_HEAD")


def _run_git(folder: str, *arguments: str) -> None:
    command = ["git", "-c", "core.hooksPath=/dev/null", "-C", folder, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SILENCE, check=False)
    except FileNotFoundError as error:
        raise MirrorFailed("git is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise MirrorFailed(f"git {arguments[0]} did not finish within an hour") from error
    if done.returncode:
        raise MirrorFailed(f"git {arguments[0]}: {get_first_line(Exception(done.stderr), silent='it failed')}")
