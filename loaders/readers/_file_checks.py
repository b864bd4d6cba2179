"""Checks that an image or audio file is complete, without decoding it: the start and end markers of its format, its
length, and that its header gives a size."""

from __future__ import annotations

import struct
import zlib

_SIZED = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
"""Start-of-frame markers of JPEG."""
_BITS, _SAMPLES = 258, 339
"""Tags of TIFF: bits per sample, and the sample format (1: unsigned integers)."""
_ALONE = {0x01, *range(0xD0, 0xD8)}
"""Markers of JPEG that are not followed by a length."""


def find_image_problem(content: bytes) -> str:
    """Return what is wrong with an image (JPEG, PNG, GIF, WebP, BMP or TIFF); "" if nothing is."""
    if not content:
        return "has no bytes"
    if content.startswith(b"\xff\xd8\xff"):
        return _check_jpeg(content)
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return _check_png(content)
    if content.startswith((b"GIF87a", b"GIF89a")):
        return "" if b"\x3b" in content[-16:] else "is cut off: a GIF without an end marker"
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return _check_riff(content, "WebP")
    if content.startswith(b"BM") and len(content) > 26:
        return _check_length(content, int.from_bytes(content[2:6], "little"), "BMP")
    if content[:4] in (b"II*\0", b"MM\0*"):
        return _check_tiff(content, "<" if content[:1] == b"I" else ">")
    return f"is not an image (JPEG, PNG, GIF, WebP, BMP, TIFF): it begins with {content[:8].hex(' ')}"


def _check_jpeg(content: bytes) -> str:
    """Walk the segments up to the first scan, so that the end of a thumbnail is not taken for the end of the image."""
    at, sized = 2, False
    while at + 4 <= len(content):
        if content[at] != 0xFF:
            return f"is a damaged JPEG: no segment begins at byte {at}"
        marker = content[at + 1]
        if marker == 0xFF:  # padding
            at += 1
            continue
        if marker in _ALONE:
            at += 2
            continue
        length = int.from_bytes(content[at + 2 : at + 4], "big")
        if length < 2:
            return f"is a damaged JPEG: a segment without a length at byte {at}"
        if marker in _SIZED:
            height, width = struct.unpack(">HH", content[at + 5 : at + 9].ljust(4, b"\0"))
            if not width:
                return f"is a damaged JPEG of {width} x {height} pixels"
            sized = True
        at += 2 + length
        if marker == 0xDA:
            if not sized:
                return "is a damaged JPEG: its header has no size"
            # Within a scan 0xFF is followed by 0x00 or a marker, so these bytes can only be the end marker.
            return "" if content.rfind(b"\xff\xd9") >= at else "is cut off: a JPEG without an end marker"
    return "is cut off: a JPEG that ends before its pixels"


def _check_png(content: bytes) -> str:
    at = 8
    while at + 12 <= len(content):
        length = int.from_bytes(content[at : at + 4], "big")
        kind = content[at + 4 : at + 8]
        end = at + 12 + length
        if end > len(content):
            break
        if zlib.crc32(memoryview(content)[at + 4 : end - 4]) != int.from_bytes(content[end - 4 : end], "big"):
            return f"is a damaged PNG: the checksum of its {kind.decode('latin-1')!r} at byte {at} differs"
        if at == 8 and (kind != b"IHDR" or not all(struct.unpack(">II", content[16:24]))):
            return "is a damaged PNG: its header has no size"
        if kind == b"IEND":
            return ""
        at = end
    return "is cut off: a PNG without an end marker"


def _check_tiff(content: bytes, order: str) -> str:
    """Check that the file has all strips or tiles of the first image's directory, by their offsets and lengths."""
    (first,) = struct.unpack(f"{order}I", content[4:8].ljust(4, b"\0"))
    if wrong := _check_length(content, first + 2, "TIFF"):
        return wrong
    (entries,) = struct.unpack_from(f"{order}H", content, first)
    if wrong := _check_length(content, first + 2 + 12 * entries, "TIFF"):
        return wrong
    values: dict[int, tuple[int, ...]] = {}
    for at in range(first + 2, first + 2 + 12 * entries, 12):
        tag, kind, count = struct.unpack_from(f"{order}HHI", content, at)
        if tag in (_BITS, 273, 279, 324, 325, _SAMPLES) and kind in (3, 4):
            item, width = ("H", 2) if kind == 3 else ("I", 4)
            (where,) = struct.unpack_from(f"{order}I", content, at + 8) if count * width > 4 else (at + 8,)
            if wrong := _check_length(content, where + count * width, "TIFF"):
                return wrong
            values[tag] = struct.unpack_from(f"{order}{count}{item}", content, where)
    bits, samples = max(values.get(_BITS, (1,))), max(values.get(_SAMPLES, (1,)))
    if samples > 1 or bits > 16:
        what = {2: "signed whole numbers", 3: "floating-point numbers"}.get(samples, "numbers")
        return (
            f"is a TIFF of {bits}-bit {what}, whose black and white levels are not defined: save it with 8 or 16 bits, "
            "or `accept` it for models that read its bytes"
        )
    ends = [
        sum(pair)
        for offsets_tag, lengths_tag in ((273, 279), (324, 325))
        for pair in zip(values.get(offsets_tag, ()), values.get(lengths_tag, ()), strict=False)
    ]
    return _check_length(content, max(ends), "TIFF") if ends else "is a damaged TIFF: it has no offsets of its pixels"


def _check_riff(content: bytes, name: str) -> str:
    return _check_length(content, 8 + int.from_bytes(content[4:8], "little"), name)


def _check_length(content: bytes, size: int, name: str) -> str:
    if size <= len(content):
        return ""
    return f"is cut off: a {name} of {len(content):,} bytes whose header says {size:,}"


def find_audio_problem(content: bytes) -> str:
    """Return what is wrong with an audio file (WAV, FLAC, Ogg or MP3); "" if nothing is."""
    if not content:
        return "has no bytes"
    if content.startswith(b"RIFF") and content[8:12] == b"WAVE":
        return _check_wav(content)
    if content.startswith((b"fLaC", b"OggS", b"ID3")) or (content[0] == 0xFF and content[1:2] > b"\xe0"):
        return ""
    return f"is not an audio file (WAV, FLAC, Ogg, MP3): it begins with {content[:8].hex(' ')}"


def _check_wav(content: bytes) -> str:
    """Walk the chunks up to the samples. Streamed recordings do not state the samples' length (0 or all ones)."""
    at, formed = 12, False
    while at + 8 <= len(content):
        kind, length = content[at : at + 4], int.from_bytes(content[at + 4 : at + 8], "little")
        if kind == b"fmt ":
            channels, rate = struct.unpack("<HI", content[at + 10 : at + 16].ljust(6, b"\0"))
            if not (channels and rate):
                return f"is a damaged WAV of {channels} channels at {rate} Hz"
            formed = True
        if kind == b"data":
            if not formed:
                return "is a damaged WAV: it has no format chunk before its samples"
            return "" if length == 0xFFFFFFFF else _check_length(content, at + 8 + length, "WAV")
        at += 8 + length + length % 2
    return "is cut off: a WAV without samples"
