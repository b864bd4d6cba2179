"""Files of a Hugging Face Hub data set, through `huggingface_hub`, at the commit of a revision when opened.

The revision is resolved once; files are then listed and read at the commit, whose content never changes, even if a
branch moves during an epoch.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from urllib.parse import unquote

from ...core.errors import FarshiftError, Unavailable, get_first_line
from ...core.files import is_offline
from ...core.retry import TransientError, call_with_retries, is_retryable, parse_retry_after
from ..files.hidden import is_hidden
from ..files.patterns import is_pattern, select_paths
from .http import HttpFile

T = TypeVar("T")

_ADDRESS = re.compile(r"hf://datasets/([^/@]+/[^/@]+)(?:@(refs/(?:convert|pr)/[^/]+|[^/]+))?(?:/(.*))?")


@dataclass(frozen=True)
class HubPath:
    """A path or pattern in a data set at a full commit."""

    repository: str
    commit: str
    path: str

    def files(self) -> dict[str, HttpFile]:
        """Return the files that match the path, or that are in the folder it names, by path in the data set."""
        from huggingface_hub import hf_hub_url
        from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

        sizes, folders = self._listed()
        if self.path in folders:
            sizes, _ = HubPath(self.repository, self.commit, f"{self.path}/*")._listed()
            paths = [path for path in sorted(sizes) if not is_hidden(path.removeprefix(self.path))]
        elif self.path:
            paths = select_paths(sizes, self.path)
        else:
            paths = [path for path in sorted(sizes) if not is_hidden(path)]
        headers = build_hf_headers(library_name="farshift")
        files = {}
        for path in paths:
            url = hf_hub_url(self.repository, path, repo_type="dataset", revision=self.commit)
            files[path] = HttpFile(url, sizes[path], None, headers, f"{self.repository}@{self.commit}/{path}")
        return files

    def _listed(self) -> tuple[dict[str, int], set[str]]:
        """The sizes of the files from which the path selects, and the folders among them."""
        from huggingface_hub import HfApi
        from huggingface_hub.hf_api import RepoFile

        steps = self.path.split("/")
        fixed = next((index for index, step in enumerate(steps) if is_pattern(step)), len(steps) - 1)
        deep = steps[fixed] == "**" or fixed < len(steps) - 1

        def entries() -> list[Any]:
            listed = partial(HfApi().list_repo_tree, revision=self.commit, repo_type="dataset", recursive=deep)
            return list(listed(self.repository, "/".join(steps[:fixed]) or None))

        listing = _request_hub(entries, str(self))
        files = {entry.path: entry.size for entry in listing if isinstance(entry, RepoFile)}
        return files, {entry.path for entry in listing} - files.keys()

    def __str__(self) -> str:
        return f"hf://datasets/{self.repository}@{self.commit[:12]}/{self.path}"


class HubRevisions:
    """The commits of revisions, each resolved once, so that all paths of a revision have the same commit."""

    def __init__(self) -> None:
        self._commits: dict[tuple[str, str], str] = {}

    def at(self, address: str) -> HubPath:
        """Return `hf://datasets/owner/name@revision/path` at the revision's commit; by default that of `main`. Raises
        `Unavailable` if the Hub does not have it."""
        match = _ADDRESS.fullmatch(address)
        if match is None:
            raise FarshiftError(
                f"{address} is not an address of files: use hf://datasets/owner/name@revision/path/*.parquet"
            )
        named = match[1], unquote(match[2] or "main")
        if named not in self._commits:
            self._commits[named] = _resolve_commit(*named)
        return HubPath(match[1], self._commits[named], (match[3] or "").rstrip("/"))


def _resolve_commit(repository: str, revision: str) -> str:
    from huggingface_hub import HfApi

    info = _request_hub(lambda: HfApi().dataset_info(repository, revision=revision), f"{repository}@{revision}")
    if info.sha is None:
        raise Unavailable(f"{repository}: the Hub does not report the commit of {revision}")
    return info.sha


def _request_hub(request: Callable[[], T], what: str) -> T:
    """Send a request to the Hub. Raises `Unavailable` if it is rejected, or after several tries."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    if is_offline():
        raise Unavailable(f"{what} was not requested: FARSHIFT_OFFLINE is set")

    def attempt() -> T:
        try:
            return request()
        except HfHubHTTPError as error:
            answer = error.response
            if answer is not None and is_retryable(answer.status_code):
                pause = parse_retry_after(answer.headers.get("Retry-After"))
                raise TransientError(f"the Hub answered {answer.status_code}", pause) from error
            raise Unavailable(f"{what} is not on the Hub: {get_first_line(error)}") from error
        except (FileNotFoundError, HFValidationError, OfflineModeIsEnabled) as error:
            raise Unavailable(f"{what} is not on the Hub: {get_first_line(error)}") from error
        except httpx2.TransportError as error:
            raise TransientError(get_first_line(error)) from error

    return call_with_retries(attempt, f"{what} could not be fetched")
