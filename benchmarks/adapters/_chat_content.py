"""A prompt as the content of a chat message: a text, or texts, pictures and sounds as the OpenAI protocol has them."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

from ...loaders.batching.one_image import open_image
from ...loaders.decoders._upright import is_plain
from ..prompting.prompt import MediaPart, Part

_KNOWN = ("image/jpeg", "image/png", "image/gif", "image/webp")
"""Kinds of pictures that endpoints take; others are sent as PNG, and so are those that an endpoint may read otherwise
than Farshift does: turned by EXIF, or of 16 bits."""


def make_content(parts: Sequence[Part]) -> str | list[dict[str, Any]]:
    """The content of a message. Pictures are data: URIs of the files as they are, or of PNG (see `_KNOWN`); sounds are
    `input_audio`. `BadImage` for a picture that is to be PNG and cannot be decoded."""
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
