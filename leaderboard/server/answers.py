"""Responses with strong entity tags, conditional requests, and gzip where the client accepts it; refusals as RFC 9457
`application/problem+json`."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64encode
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from http import HTTPStatus
from mimetypes import guess_type
from pathlib import Path
from typing import Any

from fastapi import Request, Response
from fastapi.responses import FileResponse

from .accounts import HTTPProblem

SMALL = 800
"""Bodies smaller than this many bytes are not compressed."""

CHECKED = "public, no-cache"
"""Cacheable, but revalidated with its entity tag before each use."""
FOREVER = "public, max-age=31536000, immutable"
"""The content at this address never changes."""

_MEDIA = {"js": "text/javascript", "zip": "application/zip", "json": "application/json"}
_MEDIA |= {"jsonl": "application/jsonl", "toml": "application/toml", "parquet": "application/vnd.apache.parquet"}


@dataclass(frozen=True)
class ResponseBody:
    """A body that is sent many times: its bytes, their compressed form, and its entity tag."""

    content: bytes
    media: str

    @cached_property
    def tag(self) -> str:
        return sha256(self.content).hexdigest()[:32]

    @cached_property
    def gzip(self) -> bytes:
        return gzip.compress(self.content, 6, mtime=0)


def to_json_body(value: Any) -> ResponseBody:
    """Serialise a value as a JSON body."""
    return ResponseBody(json.dumps(value, separators=(",", ":")).encode(), _MEDIA["json"])


def make_body_response(
    request: Request, body: ResponseBody, cache: str = CHECKED, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """Return the response for a body: 304 if the client has it."""
    compressed = len(body.content) >= SMALL and "gzip" in request.headers.get("accept-encoding", "")
    sent = {"Cache-Control": cache, "Vary": "Accept-Encoding", **(headers or {})}
    sent["ETag"] = f'"{body.tag}-gzip"' if compressed else f'"{body.tag}"'
    if status == 200 and is_not_modified(request, body.tag):
        return Response(status_code=304, headers=sent)
    if compressed:
        sent["Content-Encoding"] = "gzip"
    return Response(body.gzip if compressed else body.content, status, sent, body.media)


def make_file_response(request: Request, path: Path, digest: str) -> Response:
    """Return the response for an immutable file with this sha256; supports ranges and states RFC 9530 digests."""
    digest_header = f"sha-256=:{b64encode(bytes.fromhex(digest)).decode()}:"
    sent = {"Cache-Control": FOREVER, "ETag": f'"{digest}"', "Repr-Digest": digest_header}
    if is_not_modified(request, digest):
        return Response(status_code=304, headers=sent)
    return FileResponse(path, headers=sent, media_type=detect_media(path.name), stat_result=path.stat())


def is_not_modified(request: Request, tag: str) -> bool:
    """Return whether the client already has this entity tag, compressed or not."""
    known = re.findall(r'"([^"]*)"', request.headers.get("if-none-match", ""))
    return any(known_tag.removesuffix("-gzip") == tag for known_tag in known)


def detect_media(path: str) -> str:
    """Return a file's media type from its name."""
    kind = _MEDIA.get(path.rpartition(".")[2]) or guess_type(path)[0] or "application/octet-stream"
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind


def make_problem_response(problem: HTTPProblem, headers: dict[str, str]) -> Response:
    """Return the response for a refusal: RFC 9457, with a one-line `error`."""
    content = {"type": "about:blank", "title": HTTPStatus(problem.status).phrase, "status": problem.status}
    content |= {"detail": str(problem), "error": str(problem)}
    sent = {"Cache-Control": "no-store", **headers}
    sent |= {"WWW-Authenticate": 'Bearer realm="farshift"'} if problem.status == 401 else {}
    sent |= {"Connection": "close"} if problem.status in (408, 413) else {}
    return Response(json.dumps(content), problem.status, sent, "application/problem+json")
