"""Pictures: decoding on all cores beside a bare loop, and epochs from the decoded cache."""

from __future__ import annotations

import io
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from farshift.core.files import get_cache_root
from farshift.loaders.batching.images import decode_images
from farshift.loaders.batching.pixels import open_pixels
from farshift.loaders.cache.entries import clear_cache
from PIL import Image

SIDE, BATCH = 224, 64


def made(count: int, side: int = 256) -> list[bytes]:
    """JPEGs: smooth shapes and some noise, about 20 kB each of 256 x 256."""
    draw, result = np.random.default_rng(0), []
    for _ in range(count):
        coarse = Image.fromarray(draw.integers(0, 256, (12, 12, 3), dtype=np.uint8)).resize((side, side))
        pixels = np.asarray(coarse).astype(int) + draw.integers(-16, 17, (side, side, 3))
        out = io.BytesIO()
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(out, "JPEG", quality=85)
        result.append(out.getvalue())
    return result


def interleaved(works: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(rounds + 1):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            if turn:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(result) for name, result in times.items()}


def loop(files: list[bytes]) -> None:
    """A bare loop over Pillow."""
    for content in files:
        with Image.open(io.BytesIO(content)) as item:
            np.asarray(item.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR))


def decoding(count: int) -> None:
    """Decode and resize: a bare loop over Pillow on one core, the same in a process for each core, which other work on
    the machine slows as much, and ours on all."""
    files = made(count)
    cores = os.cpu_count() or 1

    def into_the_cache() -> None:
        clear_cache(["images"])
        open_pixels(files, SIDE)

    with ProcessPoolExecutor(cores) as pool:
        works: dict[str, Callable[[], Any]] = {
            "bare": lambda: loop(files),
            "processes": lambda: list(pool.map(loop, [files[core::cores] for core in range(cores)])),
            "threads": lambda: decode_images(files, SIDE),
            "cache": into_the_cache,
        }
        result = interleaved(works, 5)
    size = sum(map(len, files)) / count / 1e3
    print(f"\ndecode and resize to {SIDE}: {count:,} JPEGs of {size:.0f} kB, {cores} cores")
    print(f"{'a bare loop over Pillow, one core':>42} {count / result['bare']:>10,.0f} pictures/s")
    for name, title in (
        ("processes", "the loop in a process for each core"),
        ("threads", "farshift, in memory"),
        ("cache", "farshift, into the cache, hashed, flushed"),
    ):
        share = result["bare"] / result[name] / cores
        print(f"{title:>42} {count / result[name]:>10,.0f} pictures/s  {share:.2f} of cores x the loop   goal: 0.9")
    _epoch(files)


def _epoch(files: list[bytes]) -> None:
    """A shuffled epoch from the decoded cache, and fancy indexing of the same file as a memmap."""
    pixels = open_pixels(files, SIDE)
    plain = np.load(next((get_cache_root() / "images").glob("*.npy")), mmap_mode="r")
    order = np.random.default_rng(1).permutation(len(files))
    room = np.empty((BATCH, *plain.shape[1:]), np.uint8)

    def memmap() -> None:
        for start in range(0, len(order), BATCH):
            plain[order[start : start + BATCH]]

    def ours() -> None:
        for start in range(0, len(order), BATCH):
            some = order[start : start + BATCH]
            pixels.take(some, room[: len(some)])

    result = interleaved({"limit": memmap, "ours": ours}, 9)
    print(
        f"\nepoch from the decoded cache, shuffled, batches of {BATCH}: {len(files) / result['ours']:,.0f} pictures/s, "
        f"{result['ours'] / result['limit']:.2f} x memmap fancy indexing   goal: at most 1.15"
    )
