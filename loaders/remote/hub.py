"""Files of a data set on the Hugging Face Hub, through `huggingface_hub`, at the commit of a revision when opened.

The revision is asked for once; files are then listed and read at the commit, whose content never changes: a branch that
moves while an epoch is read moves nothing in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import unquote

from ...core.errors import FarshiftError, Unavailable, first_line
from ...core.files import offline
from ...core.retry import Broken, may_pass, persist, retry_after
from .http import HttpFile

T = TypeVar("T")

_ADDRESS = re.compile(r"hf://datasets/([^/@]+/[^/@]+)(?:@(refs/(?:convert|pr)/[^/]+|[^/]+))?(?:/(.*))?")


@dataclass(frozen=True)
class HubPath:
    """A path, maybe with `*`, in a data set at a full commit."""

    repository: str
    commit: str
    path: str

    def files(self) -> dict[str, HttpFile]:
        """The files that the path matches, or that lie in the folder it names, by their path in the data set."""
        from huggingface_hub import HfFileSystem, hf_hub_url
        from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

        system = HfFileSystem(skip_instance_cache=True)
        root = f"datasets/{self.repository}@{self.commit}/"

        def sizes(pattern: str) -> dict[str, int]:
            found: Any = _answer(lambda: system.glob(root + pattern, detail=True), str(self))
            return {item["name"].removeprefix(root): item["size"] for item in found.values() if item["type"] == "file"}

        found = sizes(self.path) or sizes(f"{self.path}/*" if self.path else "*")
        headers = build_hf_headers(library_name="farshift")
        files = {}
        for path in sorted(found):
            url = hf_hub_url(self.repository, path, repo_type="dataset", revision=self.commit)
            files[path] = HttpFile(url, found[path], None, headers, f"{self.repository}@{self.commit}/{path}")
        return files

    def __str__(self) -> str:
        return f"hf://datasets/{self.repository}@{self.commit[:12]}/{self.path}"


class HubRevisions:
    """The commits of revisions, each asked for once: all paths of one revision are then of one commit."""

    def __init__(self) -> None:
        self._commits: dict[tuple[str, str], str] = {}

    def at(self, address: str) -> HubPath:
        """`hf://datasets/owner/name@revision/path` at the revision's commit; that of `main` where none is named.
        `Unavailable` where the Hub does not have it."""
        found = _ADDRESS.fullmatch(address)
        if found is None:
            raise FarshiftError(
                f"{address} is not an address of files: write hf://datasets/owner/name@revision/path/*.parquet"
            )
        named = found[1], unquote(found[2] or "main")
        if named not in self._commits:
            self._commits[named] = _commit(*named)
        return HubPath(found[1], self._commits[named], (found[3] or "").rstrip("/"))


def _commit(repository: str, revision: str) -> str:
    from huggingface_hub import HfApi

    info = _answer(lambda: HfApi().dataset_info(repository, revision=revision), f"{repository}@{revision}")
    if info.sha is None:
        raise Unavailable(f"{repository}: the Hub does not name the commit of {revision}")
    return info.sha


def _answer(request: Callable[[], T], what: str) -> T:
    """The Hub's answer; `Unavailable` where it refuses, or after several tries."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    if offline():
        raise Unavailable(f"{what} was not requested: FARSHIFT_OFFLINE is set")

    def attempt() -> T:
        try:
            return request()
        except HfHubHTTPError as error:
            answer = error.response
            if answer is not None and may_pass(answer.status_code):
                pause = retry_after(answer.headers.get("Retry-After"))
                raise Broken(f"the Hub answered {answer.status_code}", pause) from error
            raise Unavailable(f"{what} is not on the Hub: {first_line(error)}") from error
        except (FileNotFoundError, HFValidationError, OfflineModeIsEnabled) as error:
            raise Unavailable(f"{what} is not on the Hub: {first_line(error)}") from error
        except httpx2.TransportError as error:
            raise Broken(first_line(error)) from error

    return persist(attempt, f"{what} could not be had")
