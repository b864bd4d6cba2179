"""How fast does a frozen network make features of pictures, beside a bare loop over the same network?

make bench-encode [ARGS="--encoder efficientnet-lite0 --pictures 256"]

The pictures are JPEGs of 227 x 227 pixels, as PACS has. The bare loop decodes, transforms and encodes 32 at a time, in
the same process and with the same memory format. Farshift's includes the digests of the files, and the features' way
into the cache. Both run three times in turn; seconds are this process's processor time and wall clock.
"""

from __future__ import annotations

import argparse
import io
import os
import tempfile
import time
from collections.abc import Callable
from unittest.mock import patch

import numpy as np
import torch
from farshift.baselines.encoding import frozen
from farshift.baselines.encoding.checkpoint import ModuleCheckpoint, find_checkpoint
from farshift.benchmarks.model import Task
from PIL import Image

TASK = Task("classification", ("picture",), "kind", classes=2)
AT_ONCE = 32


def make_pictures(count: int) -> list[bytes]:
    """Smooth coloured noise, about 20 kB each."""
    draws = np.random.default_rng(0)
    files = []
    for _ in range(count):
        small = Image.fromarray(draws.integers(0, 256, (57, 57, 3), np.uint8))
        out = io.BytesIO()
        small.resize((227, 227), Image.Resampling.BICUBIC).save(out, "JPEG", quality=90)
        files.append(out.getvalue())
    return files


def measure(work: Callable[[], object]) -> np.ndarray:
    """Processor and wall-clock seconds."""
    start = np.array([time.process_time(), time.perf_counter()])
    work()
    return np.array([time.process_time(), time.perf_counter()]) - start


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("--encoder", default="efficientnet-lite0")
    given.add_argument("--pictures", type=int, default=256)
    requested = given.parse_args()
    torch.set_num_threads(1)
    files = make_pictures(requested.pictures)
    columns = {"picture": np.array(files, object), "kind": np.zeros(len(files))}
    checkpoint = find_checkpoint(requested.encoder)
    assert isinstance(checkpoint, ModuleCheckpoint), "a network of images that is not of transformers"
    network = checkpoint.build().eval().to(memory_format=torch.channels_last)

    @torch.no_grad()
    def loop() -> np.ndarray:
        return np.concatenate(
            [
                network(torch.from_numpy(checkpoint.transform.pixels(files[start : start + AT_ONCE]))).numpy()
                for start in range(0, len(files), AT_ONCE)
            ]
        )

    def encode() -> np.ndarray:
        with tempfile.TemporaryDirectory() as cache, patch.dict(os.environ, FARSHIFT_CACHE=cache):
            return encoder.columns(columns)["picture"]

    encoder = frozen.FrozenColumns(requested.encoder, TASK, columns)
    assert np.allclose(loop(), encode(), atol=1e-4)
    shares = []
    for _ in range(3):
        frozen._load_encoder.cache_clear()  # it knows the features that it has computed
        encoder = frozen.FrozenColumns(requested.encoder, TASK, columns)
        bare, ours = measure(loop), measure(encode)
        shares.append(bare / ours)
        print(
            f"bare loop {bare[0]:6.1f} s CPU {bare[1]:6.1f} s wall   "
            f"farshift {ours[0]:6.1f} s CPU {ours[1]:6.1f} s wall   "
            f"speed {shares[-1][0]:.2f} (CPU) {shares[-1][1]:.2f} (wall)",
            flush=True,
        )
    print(
        f"{len(files)} pictures, {len(files) / ours[1]:.0f} a second; median speed {np.median(shares, axis=0).round(2)}"
    )


if __name__ == "__main__":
    main()
