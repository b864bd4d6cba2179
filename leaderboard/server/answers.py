"""Responses with strong entity tags, conditional requests, byte ranges, and compression where the client accepts it."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64encode
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path
from typing import Any

from fastapi import Request, Response
from fastapi.responses import FileResponse

SMALL = 800
"""Bodies smaller than this many bytes are not compressed."""

CHECKED = "public, no-cache"
"""Cacheable, but revalidated with its entity tag before each use."""
FOREVER = "public, max-age=31536000, immutable"
"""The content at this address never changes."""

JSON = "application/json"
_MEDIA = {"js": "text/javascript", "zip": "application/zip", "json": JSON, "parquet": "application/vnd.apache.parquet"}


@dataclass(frozen=True)
class ResponseBody:
    """A body that is sent many times: its bytes, their compressed forms, and its entity tag."""

    content: bytes
    media: str

    @cached_property
    def tag(self) -> str:
        return sha256(self.content).hexdigest()[:32]

    @cached_property
    def gzip(self) -> bytes:
        return gzip.compress(self.content, 6, mtime=0)

    @cached_property
    def zstd(self) -> bytes:
        return compress_zstd(self.content)

    @property
    def size(self) -> int:
        return len(self.content)

    def to_compressed(self) -> CompressedBody:
        """Return the same body with only its compressed forms in memory."""
        return CompressedBody(self.tag, self.media, self.size, self.gzip, self.zstd)


@dataclass(frozen=True)
class CompressedBody:
    """A body in memory in its compressed forms; nearly every client accepts one of them."""

    tag: str
    media: str
    size: int
    gzip: bytes
    zstd: bytes

    @property
    def content(self) -> bytes:
        return gzip.decompress(self.gzip)

    @property
    def memory_bytes(self) -> int:
        """Number of bytes in memory."""
        return len(self.gzip) + len(self.zstd)


def compress_zstd(content: bytes) -> bytes:
    """Compress to a zstd frame with pyarrow's codec (Python has its own only from 3.14 on)."""
    import pyarrow as pa

    return bytes(pa.Codec("zstd", 9).compress(content).to_pybytes())


def to_json_body(value: Any) -> ResponseBody:
    """Serialise a value as a JSON body."""
    return ResponseBody(_dump_json(value, 2).encode(), JSON)


def _dump_json(value: Any, depth: int) -> str:
    """`json.dumps` in pieces down to a depth: while one piece is written, the GIL blocks all other threads."""
    if depth and type(value) is dict and all(type(name) is str for name in value):
        return "{" + ",".join(f"{json.dumps(name)}:{_dump_json(item, depth - 1)}" for name, item in value.items()) + "}"
    if depth and type(value) is list:
        return "[" + ",".join(_dump_json(item, depth - 1) for item in value) + "]"
    return json.dumps(value, separators=(",", ":"))


def make_body_response(
    request: Request,
    stored: ResponseBody | CompressedBody,
    cache: str = CHECKED,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    """Return the response for a stored body: 304 if the client has it, 206 if it requests a range."""
    sent = {"Cache-Control": cache, "Vary": "Accept-Encoding", "Accept-Ranges": "bytes", **(headers or {})}
    range_header = request.headers.get("range", "") if status == 200 else ""
    coding = "" if range_header or stored.size < SMALL else choose_coding(request.headers.get("accept-encoding", ""))
    sent["ETag"] = f'"{stored.tag}{"-" + coding if coding else ""}"'
    if status == 200 and is_not_modified(request, stored.tag):
        return Response(status_code=304, headers=sent)
    if coding:
        sent["Content-Encoding"] = coding
    body: bytes = getattr(stored, coding) if coding else stored.content
    if range_header and request.headers.get("if-range", sent["ETag"]) == sent["ETag"]:
        span = parse_range(range_header, len(body))
        if span is not None and span[0] >= span[1]:
            return Response(status_code=416, headers={"Content-Range": f"bytes */{len(body)}"})
        if span is not None:
            sent["Content-Range"] = f"bytes {span[0]}-{span[1] - 1}/{len(body)}"
            return Response(body[slice(*span)], 206, sent, stored.media)
    return Response(body, status, sent, stored.media)


def make_file_response(request: Request, path: Path, digest: str, name: str = "") -> Response:
    """Return the response for an immutable file with this sha256; supports ranges and states RFC 9530 digests."""
    sent = {
        "Cache-Control": FOREVER,
        "ETag": f'"{digest}"',
        "Repr-Digest": f"sha-256=:{b64encode(bytes.fromhex(digest)).decode()}:",
    }
    if is_not_modified(request, digest):
        return Response(status_code=304, headers=sent)
    try:
        return FileResponse(
            path, headers=sent, media_type=detect_media(path.name), filename=name or None, stat_result=path.stat()
        )
    except OSError:
        return make_error_response(404, "file not found on this server")


def make_error_response(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    """Return an API error with a one-line message."""
    content = json.dumps({"error": message}).encode()
    return Response(content, status, {"Cache-Control": "no-store", **(headers or {})}, JSON)


def detect_media(path: str) -> str:
    """Return a file's media type from its name."""
    kind = _MEDIA.get(path.rpartition(".")[2]) or guess_type(path)[0] or "application/octet-stream"
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind


def is_not_modified(request: Request, tag: str) -> bool:
    """Return whether the client already has this entity tag, in any content coding."""
    known = re.findall(r'"([^"]*)"', request.headers.get("if-none-match", ""))
    return any(known_tag.removesuffix("-gzip").removesuffix("-zstd") == tag for known_tag in known)


def choose_coding(accepted: str) -> str:
    """Choose the content coding from an Accept-Encoding header: zstd, gzip, or none."""
    weights = {}
    for item in accepted.lower().split(","):
        name, _, parameters = item.partition(";")
        weight = re.fullmatch(r"\s*q\s*=\s*([01](?:\.[0-9]{0,3})?)\s*", parameters)
        weights[name.strip()] = float(weight[1]) if weight else 1.0
    best = max(("zstd", "gzip"), key=lambda name: weights.get(name, weights.get("*", 0.0)))
    return best if weights.get(best, weights.get("*", 0.0)) > 0 else ""


def parse_range(header: str, size: int) -> tuple[int, int] | None:
    """Parse a Range header with one part to bytes [first, last), which is empty if it is outside the body. Return None
    for any other Range header, which is ignored (RFC 9110, section 14.2)."""
    match = re.fullmatch(r"bytes=([0-9]{0,18})-([0-9]{0,18})", header.strip())
    if match is None or match[0] == "bytes=-":
        return None
    if not match[1]:
        first, last = max(0, size - int(match[2])), size
    else:
        first, last = int(match[1]), min(size, int(match[2]) + 1 if match[2] else size)
        if match[2] and int(match[2]) < first:
            return None
    return first, max(first, last)
