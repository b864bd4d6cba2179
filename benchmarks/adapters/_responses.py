"""Cached responses of language models, keyed by all that determines them: each prompt is sent and paid for once, also
by a run that was interrupted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...core.canonical import compute_identity, to_canonical_json
from ...core.documents import parse_json
from ...core.files import get_cache_root, write_atomically
from ...core.progress import log_message


@dataclass(frozen=True)
class Response:
    """A model's response to one prompt: its text, why it stopped (as the endpoint names it) and the billed tokens."""

    text: str
    finish_reason: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0


def compute_response_key(request: Mapping[str, Any]) -> str:
    """The cache key of a response: sha256 of the canonical JSON of all that determines it, without secrets."""
    return compute_identity(dict(request))


def read_cached_response(key: str) -> Response | None:
    """Read the cached response of `key`; None if there is none, or if its file is damaged (which is logged)."""
    path = _get_cache_path(key)
    try:
        content = path.read_text("utf-8", "replace")
    except OSError:
        return None
    try:
        record = parse_json(content)
        response = Response(**record["response"])
        if record.get("check") == _compute_checksum(key, response):
            return response
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    log_message(f"{path} is truncated or modified: sending the prompt again")
    return None


def cache_response(key: str, response: Response) -> None:
    """Store a response atomically: another process sees all of it or nothing."""
    record = {"response": asdict(response), "check": _compute_checksum(key, response)}
    write_atomically(_get_cache_path(key), to_canonical_json(record))


def _compute_checksum(key: str, response: Response) -> str:
    return compute_identity([key, asdict(response)])


def _get_cache_path(key: str) -> Path:
    return get_cache_root() / "responses" / key[:2] / f"{key}.json"
