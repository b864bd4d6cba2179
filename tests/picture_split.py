"""A small benchmark of pictures in folders, frozen in this process: two domains, two classes."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from encoded_files import folder, picture
from farshift.benchmarks.benchmark import Benchmark, find_benchmark
from farshift.loaders.freezing.freeze import freeze
from own_benchmark import write_benchmark

NAMES = ("left", "right")
SIDE = 8
SPLIT = """
name = "photos/sketch"
version = 1
kind = "domain"
title = "Tested on sketches"
label = "kind"
rule = "domain/hold_out"
parameters = { field = "domain", ood = ["sketch"] }
data = { images = "photos/{domain}/{kind}/{file}", inputs = ["image"], labels = ["kind"], meta = ["domain"] }
"""
DRAFT = f"{SPLIT}benchmark = {{}}\n"


def unreadable() -> bytes:
    """A PNG that is whole, and whose pixels are none."""
    chunks = {b"IHDR": struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0), b"IDAT": b"no pixels", b"IEND": b""}
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks.items()
    )


def split(
    home: Path, monkeypatch: pytest.MonkeyPatch, each: int = 12, broken: tuple[int, ...] = (), **said: Any
) -> Benchmark:
    """The benchmark, frozen in `home`, which is put into FARSHIFT_PATH.

    each: pictures of a class and domain, PNG; those of the numbers `broken` have no pixels. said: of its definition."""
    monkeypatch.chdir(home)
    monkeypatch.setenv("FARSHIFT_PATH", str(home))
    names = [f"{position}/{kind}/{n}.png" for position in ("photo", "sketch") for kind in NAMES for n in range(each)]
    files = {name: picture(number, "PNG", SIDE) for number, name in enumerate(names)}
    files |= {names[number]: unreadable() for number in broken}
    folder(home / "photos", files)
    (home / "draft.toml").write_text(SPLIT)
    manifest, _ = freeze(home / "draft.toml", home / "splits" / "manifests")
    write_benchmark(manifest, said, home)
    return find_benchmark("photos/sketch")
