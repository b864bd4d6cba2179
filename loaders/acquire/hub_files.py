"""Pin the files of a Hugging Face Hub data set: a commit, and each file's size and sha256."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...core.errors import BadDefinition, Unavailable, get_first_line, shorten_list
from ...core.files import compute_file_sha256, is_offline
from ...splits.pins import FilePin
from ..files.hidden import is_hidden
from ..files.patterns import choose_paths
from ..mirrors.hub import list_client_errors


def list_hub_pins(repo: str, revision: str, patterns: Sequence[str]) -> list[FilePin]:
    """Return the files of data set `repo` that match one of the patterns, at the commit that `revision` (a branch, tag
    or commit) currently names. Raises `BadDefinition` if there is none, `Unavailable` if the Hub cannot be reached."""
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.hf_api import RepoFile

    if is_offline():
        raise Unavailable(f"Hub {repo}: not available offline")
    api = HfApi()
    pins = []
    try:
        commit = str(api.dataset_info(repo, revision=revision).sha)
        entries = api.list_repo_tree(repo, revision=commit, repo_type="dataset", recursive=True)
        files = {entry.path: entry for entry in entries if isinstance(entry, RepoFile)}
        paths = [path for path in files if path in patterns or not is_hidden(path)]
        absent: list[str] = []
        chosen = choose_paths(paths, patterns, absent)
        if absent:
            raise BadDefinition(f"Hub {repo}@{commit[:12]} has no file {shorten_list(absent)}")
        for entry in (files[path] for path in sorted(chosen)):
            if entry.lfs is not None:
                digest = entry.lfs.sha256
            else:  # the Hub publishes no sha256 for small files
                digest = compute_file_sha256(
                    Path(hf_hub_download(repo, entry.path, revision=commit, repo_type="dataset"))
                )
            mirror = {"sort": "hub", "repo": repo, "revision": commit, "file": entry.path}
            pins.append(FilePin(name=entry.path, sha256=digest, bytes=entry.size, mirrors=[mirror]))
    except HFValidationError as error:
        raise BadDefinition(f"Hub {repo!r}: {get_first_line(error)}") from error
    except list_client_errors() as error:
        raise Unavailable(f"Hub {repo}@{revision}: {type(error).__name__}: {get_first_line(error)}") from error
    return pins
