"""Responses of language models, kept by all that decided them: asked once, paid for once, and found again by a run that
was interrupted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...core.canonical import canonical_json, identity_of
from ...core.files import cache_root, write_atomically
from ...core.progress import say


@dataclass(frozen=True)
class Response:
    """What a model said to one prompt, why it stopped (as the endpoint names it), and the tokens that were billed."""

    text: str
    finish_reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0


def response_key(request: Mapping[str, Any]) -> str:
    """The key of the response to `request`: sha256 of the canonical JSON of all that decides it, no secret among it."""
    return identity_of(dict(request))


def kept_response(key: str) -> Response | None:
    """The response kept under `key`; None where there is none, or its file is damaged or another's, which is told."""
    path = _path(key)
    try:
        content = path.read_text("utf-8", "replace")
    except OSError:
        return None
    try:
        record = json.loads(content)
        response = Response(**record["response"])
        if record.get("check") == _check(key, response):
            return response
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    say(f"{path} was cut off or changed: asking again")
    return None


def keep_response(key: str, response: Response) -> None:
    """Keep a response, in one piece: another process sees all of it or nothing."""
    record = {"response": asdict(response), "check": _check(key, response)}
    write_atomically(_path(key), canonical_json(record))


def _check(key: str, response: Response) -> str:
    return identity_of([key, asdict(response)])


def _path(key: str) -> Path:
    return cache_root() / "responses" / key[:2] / f"{key}.json"
