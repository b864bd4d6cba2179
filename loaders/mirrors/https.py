"""Plain http(s). A broken download is resumed at the byte where it stopped."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ...core.progress import report_progress
from ...core.retry import compute_backoff, is_retryable, parse_retry_after
from . import MirrorFailed, is_disk_error

NETWORK = True
_TRIES = 4  # fewer than elsewhere: there are other mirrors
_SILENCE = 30.0  # seconds without a byte after which a connection counts as dead
_BLOCK = 1 << 18


def describe(mirror: dict[str, Any]) -> str:
    return str(mirror["url"])


def fetch(mirror: dict[str, Any], target: Path, size: int | None) -> None:
    """Download `url`; what a broken connection left in `target` is kept and continued (`Range`). Where nobody has
    published the file's size, the server's word is taken.

    Gives up after four tries in a row without a new byte; each new byte makes it patient again, so a large file may
    pass any number of broken connections.
    """
    target.touch()  # an empty file is whole before anything is asked
    download = _Download(mirror["url"], target, size)
    have = reached = download.have()
    broken: Exception | None = None
    tries = 0
    while download.size is None or have < download.size:
        if tries == _TRIES or _is_final(broken):
            raise MirrorFailed(
                _describe_failure(broken) or f"the download ended at {have} of {download.size} bytes"
            ) from broken
        if tries:
            time.sleep(compute_backoff(tries, _get_retry_delay(broken)))
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
    """A file that grows in `target`. `version` is the validator of the answer that began it; those that go on must be
    of the same file."""

    url: str
    target: Path
    size: int | None
    version: str | None = None

    def have(self) -> int:
        return self.target.stat().st_size if self.target.exists() else 0

    def go_on(self, have: int) -> None:
        """One request, for what is missing after the first `have` bytes; a file that has changed is begun again."""
        headers = {"User-Agent": "farshift", "Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
            if self.version:
                headers["If-Range"] = self.version
        with urllib.request.urlopen(urllib.request.Request(self.url, headers=headers), timeout=_SILENCE) as answer:
            resumed = answer.status == 206
            if resumed and not answer.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
                raise http.client.HTTPException(f"the server sent another range than from byte {have}")
            if not resumed:
                self.version = _get_strong_validator(answer.headers.get("ETag"))
            start = have if resumed else 0
            if self.size is None and answer.headers.get("Content-Length"):
                self.size = start + int(answer.headers["Content-Length"])
            with self.target.open("ab" if resumed else "wb") as file:
                self._write(answer, file, start)
        if self.size is None:  # the server does not say either: what came is the file
            self.size = self.have()

    def _write(self, answer: http.client.HTTPResponse, file: BinaryIO, done: int) -> None:
        # One packet at a time: a read of a whole block would lose, when the connection breaks, what it had of it.
        while block := answer.read1(_BLOCK):
            file.write(block)
            done += len(block)
            report_progress(self.url.rsplit("/", 1)[-1], done, self.size)
            if self.size is not None and done > self.size:
                return  # longer than promised: the digest will say so, without filling the disk


def _get_strong_validator(validator: str | None) -> str | None:
    """A validator that promises equal bytes; a weak one does not (RFC 9110, 8.8.3)."""
    return validator if validator and not validator.startswith("W/") else None


def _describe_failure(broken: Exception | None) -> str:
    if isinstance(broken, urllib.error.HTTPError):
        return f"the server answered {broken.code} {broken.reason}"
    return "" if broken is None else str(getattr(broken, "reason", None) or broken) or type(broken).__name__


def _get_retry_delay(broken: Exception | None) -> float | None:
    return parse_retry_after(broken.headers.get("Retry-After")) if isinstance(broken, urllib.error.HTTPError) else None


def _is_final(broken: Exception | None) -> bool:
    """Also a name that does not resolve and a refused connection, which do not change in seconds."""
    if isinstance(broken, urllib.error.HTTPError):
        return not is_retryable(broken.code)
    reason = getattr(broken, "reason", broken)
    return type(reason).__name__ == "gaierror" or isinstance(reason, ConnectionRefusedError)
