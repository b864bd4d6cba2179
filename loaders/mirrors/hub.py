"""A file of a Hugging Face Hub data set or model (`type`), at a pinned commit, through `huggingface_hub`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...core.errors import Unavailable, get_first_line
from ...core.files import is_offline
from ...core.retry import TransientError, call_with_retries, is_retryable, parse_retry_after
from ..files.patterns import choose_paths, is_pattern
from . import MirrorFailed, is_disk_error

if TYPE_CHECKING:
    from huggingface_hub.hf_api import RepoFile

NETWORK = True

T = TypeVar("T")


def describe(mirror: dict[str, Any]) -> str:
    return f"Hub {mirror['repo']}@{mirror['revision'][:12]}:{mirror['file']}"


def fetch(mirror: dict[str, Any], target: Path, size: int | None) -> None:
    """Download `file` of `repo` at `revision` (a full commit); the client resumes interrupted
    downloads. A pattern (`*.tar.gz`) selects the only file that matches."""
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    repo, name, revision = mirror["repo"], str(mirror["file"]), mirror["revision"]
    kind = mirror.get("type", "dataset")
    keep = target.parent / f"{target.name}.hub"
    try:
        # The client sends this request once; without a network it would repeat others for half a minute.
        info: Any = HfApi().repo_info(repo, revision=revision, repo_type=kind)
        if is_pattern(name):
            fit = sorted(choose_paths([file.rfilename for file in info.siblings or ()], [name]))
            if len(fit) != 1:
                raise MirrorFailed(f"{len(fit)} files match {name} instead of one ({', '.join(fit) or 'no match'})")
            name = fit[0]
        got = hf_hub_download(repo, name, revision=revision, repo_type=kind, local_dir=keep)
    except list_client_errors() as error:
        if is_disk_error(error):
            raise
        # This error only says that there is no local copy either; its cause has the actual failure.
        why = (error.__cause__ or error) if isinstance(error, LocalEntryNotFoundError) else error
        message = ": ".join([type(why).__name__, *str(why).strip().splitlines()[:1]]).rstrip(".")
        hint = " (HF_HUB_DISABLE_XET=1 disables the Xet store)" if isinstance(why, RuntimeError) else ""
        raise MirrorFailed(message + hint) from error
    shutil.move(got, target)
    shutil.rmtree(keep, ignore_errors=True)


def find_commit(repository: str, revision: str) -> str:
    """Return the commit that a data set's revision (a branch, tag or commit) names now. Raises `Unavailable` if the Hub
    refuses, or does not answer in several tries."""
    from huggingface_hub import HfApi

    return _ask(f"{repository}@{revision}", lambda: str(HfApi().dataset_info(repository, revision=revision).sha))


def list_data_set(repository: str, commit: str, folder: str = "") -> dict[str, RepoFile]:
    """Return the files in a folder of a data set at a commit, and in its folders, by path; none if there is no such
    folder. Raises `Unavailable` as `find_commit`."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import EntryNotFoundError
    from huggingface_hub.hf_api import RepoFile

    def list_files() -> dict[str, RepoFile]:
        tree = HfApi().list_repo_tree(repository, folder or None, revision=commit, repo_type="dataset", recursive=True)
        try:
            return {entry.path: entry for entry in tree if isinstance(entry, RepoFile)}
        except EntryNotFoundError:
            return {}

    return _ask(f"{repository}@{commit[:12]}", list_files)


def _ask(what: str, request: Callable[[], T]) -> T:
    """What the Hub answers to a request, sent again where it may succeed later; `Unavailable` where it does not."""
    import httpx2

    if is_offline():
        raise Unavailable(f"Hub {what} was not requested: FARSHIFT_OFFLINE is set")

    def attempt() -> T:
        try:
            return request()
        except list_client_errors() as error:
            reason = f"{type(error).__name__}: {get_first_line(error)}"
            answer = getattr(error, "response", None)
            if answer is not None and is_retryable(answer.status_code):
                raise TransientError(reason, parse_retry_after(answer.headers.get("Retry-After"))) from error
            if isinstance(error, httpx2.TransportError):
                raise TransientError(reason) from error
            raise Unavailable(f"Hub {what} could not be listed: {reason}") from error

    return call_with_retries(attempt, f"Hub {what} could not be listed")


def list_client_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that `huggingface_hub` raises for a failed request: errors of its HTTP library, OSErrors,
    RuntimeErrors of the Xet store, and its error for an invalid name."""
    import httpx2
    from huggingface_hub.errors import HFValidationError

    return (httpx2.HTTPError, OSError, RuntimeError, HFValidationError)
