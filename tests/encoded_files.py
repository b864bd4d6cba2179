"""Small pictures and sounds in their published encodings, and archives of them."""

from __future__ import annotations

import io
import struct
import tarfile
import wave
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
from PIL import Image


def picture(number: int = 0, form: str = "JPEG", side: int = 16) -> bytes:
    """A picture that no other number gives."""
    pixels = np.random.default_rng(number).integers(0, 256, (side, side, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, form)
    return out.getvalue()


def sound(number: int = 0, rate: int = 8000) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(struct.pack("<20h", *range(number, number + 20)))
    return out.getvalue()


def column(*values: object) -> np.ndarray:
    """Values of any kind as a column of objects."""
    result = np.empty(len(values), object)
    result[:] = values
    return result


def folder(where: Path, files: Mapping[str, bytes]) -> Path:
    for name, content in files.items():
        path = where / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return where


def zipped(path: Path, files: Mapping[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def tarred(path: Path, files: Mapping[str, bytes], compression: str = "") -> Path:
    """A tar, compressed as `compression` says: gz, bz2, xz or zst."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{'' if compression == 'zst' else compression}") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    if compression == "zst":
        with pa.CompressedOutputStream(str(path), "zstd") as packed:
            packed.write(out.getvalue())
    else:
        path.write_bytes(out.getvalue())
    return path
