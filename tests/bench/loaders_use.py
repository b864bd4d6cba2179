"""What else users wait for: verification, the first batch, and the memory of an epoch larger than memory likes."""

from __future__ import annotations

import statistics
import time
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
from farshift.loaders.cache import store
from loaders_memory import measure_epoch, write_record_batch
from loaders_rows import BATCH, PIXELS, Rows

_EPOCH = """
schema = Schema((Field("image", "uint8[3072]", "input"), Field("label", "int64", "label")))
part = Part("bench/large", "0" * 64, "train", schema, "label", table, np.arange(count), {})
for _ in part.select(np.arange(1000)).batches(256, columns=["image", "label"]):
    pass
def epoch():
    assert sum(len(batch["label"]) for batch in part.batches(256, seed=SEED, columns=["image", "label"])) == count
measured(anonymous(), epoch)
"""


def verification(rows: Rows) -> None:
    """The first use of a file in a process compares its sha256; later ones compare nothing."""
    path = next(path for path in (rows.folder / "cache" / "sources").glob("image*.arrow"))
    first, again, plain = [], [], []
    for _ in range(5):
        start = time.process_time()
        sha256(np.memmap(path, np.uint8, "r")).hexdigest()
        plain.append(time.process_time() - start)
        store._compared.clear()
        for accepted in (first, again):
            start = time.process_time()
            assert store.is_intact(path)
            accepted.append(time.process_time() - start)
    size = path.stat().st_size
    once, later, item = map(statistics.median, (first, again, plain))
    print(
        f"\nverification of {size / 1e6:.0f} MB: {once * 1e3:.0f} ms of the processor when first opened, "
        f"{once / item:.2f} passes of sha256 at {size / item / 1e9:.2f} GB/s (goal: 1); later {later * 1e6:.0f} us"
    )


def first_batch(rows: Rows) -> None:
    """From a part with its order to be made, to the first batch of a shuffled epoch."""
    times = []
    for turn in range(15):
        start = time.perf_counter()
        next(rows.images.batches(BATCH, seed=turn, columns=["image", "label"]))
        times.append(time.perf_counter() - start)
    print(f"\nfirst batch of 50,000 rows, shuffled: {statistics.median(times) * 1e3:.1f} ms (goal: 20 ms)")


def large_epoch(folder: Path, gigabytes: float) -> None:
    path = folder / "large.arrow"
    count = int(gigabytes * 1e9 / (PIXELS + 8))
    _write_large(path, count)
    for seed in ("None", "1"):
        before, peak, took = measure_epoch(_EPOCH.replace("SEED", seed), path)
        order = "in order" if seed == "None" else "shuffled"
        print(
            f"\nan epoch over {path.stat().st_size / 1e9:.1f} GB ({count:,} images), {order}: {took:.1f} s, "
            f"{peak - before:.0f} MB of memory beyond the mapped file (goal: 300 MB)"
        )
    path.unlink()


def _write_large(path: Path, count: int) -> None:
    """One record batch of random images, by big writes, never whole in memory."""
    raw = path.with_suffix(".raw")
    block = np.random.default_rng(0).integers(0, 256, 64 * 2**20, dtype=np.uint8)
    left = count * PIXELS
    with raw.open("wb") as file:
        while left:
            left -= file.write(memoryview(block[: min(left, len(block))]))
    flat = pa.Array.from_buffers(pa.uint8(), count * PIXELS, [None, pa.py_buffer(np.memmap(raw, np.uint8, "r"))])
    table = pa.table(
        {
            "image": pa.FixedSizeListArray.from_arrays(flat, PIXELS),
            "label": np.arange(count) % 10,
            "row_id": np.arange(count, dtype=np.uint64),
        }
    )
    write_record_batch(path, table)
    raw.unlink()
