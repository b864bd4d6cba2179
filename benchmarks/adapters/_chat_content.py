"""A prompt as the content of a chat message: a string, or texts, images and audio in the format of the OpenAI API."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

from ...loaders.batching.images import open_image
from ...loaders.decoders._upright import is_plain
from ..prompting.prompt import MediaPart, Part

_KNOWN = ("image/jpeg", "image/png", "image/gif", "image/webp")
"""Image types that endpoints accept. Other images are sent as PNG, as are those that an endpoint may decode differently
from Farshift (rotated by EXIF, or with 16 bits per channel)."""


def make_content(parts: Sequence[Part]) -> str | list[dict[str, Any]]:
    """Return the content of a message. Images become data: URIs of the original files, or of PNG (see `_KNOWN`); audio
    becomes `input_audio`. Raises `BadImage` for an image that must be converted to PNG and cannot be decoded."""
    if all(isinstance(part, str) for part in parts):
        return "".join(str(part) for part in parts)
    return [{"type": "text", "text": part} if isinstance(part, str) else _encode_file(part) for part in parts]


def _encode_file(media: MediaPart) -> dict[str, Any]:
    kind, content = media.type, media.content
    if kind.startswith("audio/"):
        audio = {"data": base64.b64encode(content).decode(), "format": kind.removeprefix("audio/")}
        return {"type": "input_audio", "input_audio": audio}
    if kind not in _KNOWN or not is_plain(content):
        out = io.BytesIO()
        open_image([content], 0).save(out, "PNG")
        kind, content = "image/png", out.getvalue()
    return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{base64.b64encode(content).decode()}"}}
