"""Plain http(s). A broken download is resumed at the byte where it stopped."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from ..progress import advance
from . import MirrorFailed, own_disk

NETWORK = True
_TRIES = 4
_BLOCK = 1 << 18


def describe(mirror: dict[str, Any]) -> str:
    return str(mirror["url"])


def fetch(mirror: dict[str, Any], target: Path, size: int) -> None:
    """Download `url`; what a broken connection left in `target` is kept and continued (`Range`)."""
    url = mirror["url"]
    for attempt in range(_TRIES):
        have = target.stat().st_size if target.exists() else 0
        if have >= size:
            return
        try:
            _continue(url, target, have, size)
        except urllib.error.HTTPError as error:
            if error.code not in (408, 425, 429, 500, 502, 503, 504) or attempt == _TRIES - 1:
                raise MirrorFailed(f"the server answered {error.code} {error.reason}") from error
            time.sleep(_pause(error, attempt))
        except (OSError, http.client.HTTPException) as error:
            if own_disk(error):
                raise
            if attempt == _TRIES - 1 or _hopeless(error):
                raise MirrorFailed(str(getattr(error, "reason", None) or error) or type(error).__name__) from error
            time.sleep(0.2 * 2**attempt)
    if target.stat().st_size < size:
        raise MirrorFailed(f"the download ended at {target.stat().st_size} of {size} bytes")


def _continue(url: str, target: Path, have: int, size: int) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": "farshift", "Accept-Encoding": "identity"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    with urllib.request.urlopen(request, timeout=30) as answer:
        resumed = answer.status == 206
        with target.open("ab" if resumed else "wb") as file:
            done = have if resumed else 0
            while block := answer.read(_BLOCK):
                file.write(block)
                done += len(block)
                advance(url.rsplit("/", 1)[-1], done, size)
                if done > size:
                    return  # longer than promised: the digest will say so, without filling the disk


def _pause(error: urllib.error.HTTPError, attempt: int) -> float:
    told = error.headers.get("Retry-After", "") if error.headers else ""
    return min(float(told), 30.0) if told.isdigit() else 0.2 * 2**attempt


def _hopeless(error: Exception) -> bool:
    """A name that does not resolve or a refused connection will not mend in a second."""
    reason = getattr(error, "reason", error)
    return isinstance(reason, OSError) and (
        type(reason).__name__ == "gaierror" or isinstance(reason, ConnectionRefusedError)
    )
