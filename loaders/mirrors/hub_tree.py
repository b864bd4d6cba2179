"""A folder of a Hugging Face Hub data set, at a pinned commit, through `huggingface_hub`, as a tar."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import Any

from .hub import translate_client_errors

NETWORK = True


def describe(mirror: dict[str, Any]) -> str:
    return f"Hub {mirror['repo']}@{mirror['revision'][:12]}:{mirror.get('folder', '')}"


def fetch(mirror: dict[str, Any], target: Path, size: int | None) -> None:
    """Download the files of `folder` of the data set `repo` at `revision` (a full commit), and write them as a tar to
    `target`. The client keeps partial downloads."""
    from huggingface_hub import snapshot_download

    keep, folder, revision = target.parent / f"{target.name}.hub", mirror.get("folder", ""), mirror["revision"]
    patterns = [f"{folder}/**"] if folder else None
    with translate_client_errors():
        snapshot_download(
            mirror["repo"], revision=revision, repo_type="dataset", local_dir=keep, allow_patterns=patterns
        )
    with tarfile.open(target, "w") as tar:
        for path in sorted(path for path in (keep / folder).rglob("*") if path.is_file()):
            name = path.relative_to(keep)
            if name.parts[0] != ".cache":
                tar.add(path, name.as_posix(), recursive=False)
    shutil.rmtree(keep, ignore_errors=True)
