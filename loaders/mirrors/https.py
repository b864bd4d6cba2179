"""Plain http(s). An interrupted download is resumed at the byte where it stopped."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.errors import BadData, Unavailable
from ...core.progress import report_progress
from ...core.retry import TransientError, compute_backoff
from ..files.http import request_file
from . import MirrorFailed

NETWORK = True
_TRIES = 4  # fewer than elsewhere: there are other mirrors


def describe(mirror: dict[str, Any]) -> str:
    return str(mirror["url"])


def fetch(mirror: dict[str, Any], target: Path, size: int | None) -> None:
    """Download `url`. A partial download in `target` is resumed (`Range`). If the file's size is not published, the
    server's is used.

    Gives up after four consecutive tries without a new byte, or if no connection can be made. Each new byte resets the
    count, so a large file may survive any number of broken connections.
    """
    import httpx2

    target.touch()  # an empty file is complete before any request
    download, tries = _Download(mirror["url"], target, size), 0
    reached = download.have()
    while not download.is_complete():
        final, pause, why = False, None, ""
        try:
            download.go_on(download.have())
        except TransientError as error:
            final, pause, why = isinstance(error.__cause__, httpx2.ConnectError), error.pause, f" ({error})"
        except (Unavailable, BadData) as error:
            raise MirrorFailed(str(error).removeprefix(f"{download.url}: ")) from error
        if download.is_complete():
            return
        have = download.have()
        tries = 1 if have > reached else tries + 1
        reached = max(have, reached)
        if final or tries == _TRIES:
            raise MirrorFailed(f"the download ended at {have} of {download.size or 'unknown'} bytes{why}")
        time.sleep(compute_backoff(tries, pause))


@dataclass
class _Download:
    """A file that is being downloaded to `target`. `version` is the validator of the first response; later ones have to
    be of the same file."""

    url: str
    target: Path
    size: int | None
    version: str | None = None

    def have(self) -> int:
        return self.target.stat().st_size

    def is_complete(self) -> bool:
        return self.size is not None and self.have() >= self.size

    def go_on(self, have: int) -> None:
        """Send one request for the bytes after the first `have`. A file that has changed is restarted."""
        headers = {"Range": f"bytes={have}-"} if have else {}
        if have and self.version:
            headers["If-Range"] = self.version
        with request_file(self.url, headers) as answer:
            resumed = answer.status_code == 206
            if resumed and not answer.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
                raise TransientError(f"the server sent a range that does not begin at byte {have}")
            if not resumed:
                # Only a strong validator guarantees equal bytes (RFC 9110, 8.8.3).
                tag = answer.headers.get("ETag", "W/")
                self.version = None if tag.startswith("W/") else tag
            start = have if resumed else 0
            if self.size is None and answer.headers.get("Content-Length"):
                self.size = start + int(answer.headers["Content-Length"])
            with self.target.open("ab" if resumed else "wb") as file:
                for block in answer.iter_raw():
                    file.write(block)
                    start += len(block)
                    report_progress(self.url.rsplit("/", 1)[-1], start, self.size)
                    if self.size is not None and start > self.size:
                        return  # longer than announced: the digest check will fail, without filling the disk
        if self.size is None:  # the server gives no size either, so the file ends with the connection
            self.size = start
