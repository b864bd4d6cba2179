"""A folder of a Hugging Face Hub data set, at a pinned commit, through `huggingface_hub`, as a tar."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import Any

from ...core.errors import get_first_line
from . import MirrorFailed, is_disk_error
from .hub import list_client_errors

NETWORK = True


def describe(mirror: dict[str, Any]) -> str:
    return f"Hub {mirror['repo']}@{mirror['revision'][:12]}:{mirror.get('folder', '')}"


def fetch(mirror: dict[str, Any], target: Path, size: int | None) -> None:
    """Download the files of `folder` of the data set `repo` at `revision` (a full commit), and write them as a tar to
    `target`. The client keeps partial downloads."""
    from huggingface_hub import snapshot_download

    keep = target.parent / f"{target.name}.hub"
    folder = mirror.get("folder", "")
    patterns = [f"{folder}/**"] if folder else None
    try:
        snapshot_download(
            mirror["repo"], revision=mirror["revision"], repo_type="dataset", local_dir=keep, allow_patterns=patterns
        )
    except list_client_errors() as error:
        if is_disk_error(error):
            raise
        raise MirrorFailed(f"{type(error).__name__}: {get_first_line(error)}") from error
    with tarfile.open(target, "w") as tar:
        for path in sorted(path for path in (keep / folder).rglob("*") if path.is_file()):
            name = path.relative_to(keep)
            if name.parts[0] != ".cache":
                tar.add(path, name.as_posix(), recursive=False)
    shutil.rmtree(keep, ignore_errors=True)
