"""Plain http(s). An interrupted download is resumed at the byte where it stopped."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...core.progress import report_progress
from ...core.retry import compute_backoff, is_retryable, parse_retry_after
from . import MirrorFailed, is_disk_error

NETWORK = True
_TRIES = 4  # fewer than elsewhere: there are other mirrors
_SILENCE = 30.0  # timeout in seconds without a byte
_BLOCK = 1 << 18


def describe(mirror: dict[str, Any]) -> str:
    return str(mirror["url"])


def fetch(mirror: dict[str, Any], target: Path, size: int | None) -> None:
    """Download `url`. A partial download in `target` is resumed (`Range`). If the file's size is not published, the
    server's is used.

    Gives up after four consecutive tries without a new byte. Each new byte resets the count, so a large file may
    survive any number of broken connections.
    """
    target.touch()  # an empty file is complete before any request
    download = _Download(mirror["url"], target, size)
    have = reached = download.have()
    broken: Exception | None = None
    tries = 0
    while download.size is None or have < download.size:
        if tries == _TRIES or _is_final(broken):
            reason = _describe_failure(broken) or f"the download ended at {have} of {download.size} bytes"
            raise MirrorFailed(reason) from broken
        if tries:
            later = broken.headers.get("Retry-After") if isinstance(broken, urllib.error.HTTPError) else None
            time.sleep(compute_backoff(tries, parse_retry_after(later)))
        broken = None
        try:
            download.go_on(have)
        except (OSError, http.client.HTTPException) as error:
            if is_disk_error(error):
                raise
            broken = error
        have = download.have()
        tries = 1 if have > reached else tries + 1
        reached = max(have, reached)


@dataclass
class _Download:
    """A file that is being downloaded to `target`. `version` is the validator of the first response; later ones have to
    be of the same file."""

    url: str
    target: Path
    size: int | None
    version: str | None = None

    def have(self) -> int:
        return self.target.stat().st_size if self.target.exists() else 0

    def go_on(self, have: int) -> None:
        """Send one request for the bytes after the first `have`. A file that has changed is restarted."""
        headers = {"User-Agent": "farshift", "Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
            if self.version:
                headers["If-Range"] = self.version
        with urllib.request.urlopen(urllib.request.Request(self.url, headers=headers), timeout=_SILENCE) as answer:
            resumed = answer.status == 206
            if resumed and not answer.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
                raise http.client.HTTPException(f"the server sent a range that does not begin at byte {have}")
            if not resumed:
                # Only a strong validator guarantees equal bytes (RFC 9110, 8.8.3).
                tag = answer.headers.get("ETag", "W/")
                self.version = None if tag.startswith("W/") else tag
            start = have if resumed else 0
            if self.size is None and answer.headers.get("Content-Length"):
                self.size = start + int(answer.headers["Content-Length"])
            with self.target.open("ab" if resumed else "wb") as file:
                # Read single packets: if the connection breaks, a read of a whole block would lose a partial one.
                while block := answer.read1(_BLOCK):
                    file.write(block)
                    start += len(block)
                    report_progress(self.url.rsplit("/", 1)[-1], start, self.size)
                    if self.size is not None and start > self.size:
                        return  # longer than announced: the digest check will fail, without filling the disk
        if self.size is None:  # the server gives no size either, so the file ends with the connection
            self.size = self.have()


def _describe_failure(broken: Exception | None) -> str:
    if isinstance(broken, urllib.error.HTTPError):
        return f"the server answered {broken.code} {broken.reason}"
    return "" if broken is None else str(getattr(broken, "reason", None) or broken) or type(broken).__name__


def _is_final(broken: Exception | None) -> bool:
    """Whether to give up, including unresolved names and refused connections, which do not change within seconds."""
    if isinstance(broken, urllib.error.HTTPError):
        return not is_retryable(broken.code)
    reason = getattr(broken, "reason", broken)
    return type(reason).__name__ == "gaierror" or isinstance(reason, ConnectionRefusedError)
