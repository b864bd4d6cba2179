"""A file of a data set on the Hugging Face Hub, at a pinned commit, through `huggingface_hub`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from . import MirrorFailed, own_disk

NETWORK = True


def describe(mirror: dict[str, Any]) -> str:
    return f"Hub {mirror['repo']}@{mirror['revision'][:12]}:{mirror['file']}"


def fetch(mirror: dict[str, Any], target: Path, size: int) -> None:
    """Download `file` of the data set `repo` at `revision` (a full commit); the client resumes broken downloads."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled

    keep = target.parent / f"{target.name}.hub"
    try:
        got = hf_hub_download(
            mirror["repo"], mirror["file"], revision=mirror["revision"], repo_type="dataset", local_dir=keep
        )
    except (HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled, OSError) as error:
        if own_disk(error):
            raise
        raise MirrorFailed(f"{type(error).__name__}: {str(error).strip().splitlines()[0]}") from error
    shutil.move(got, target)
    shutil.rmtree(keep, ignore_errors=True)
