"""What else users wait for: verification, the first batch, and the memory of an epoch larger than memory likes."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
from farshift.loaders.cache import store
from farshift.loaders.cache.store import make_write_options
from loaders_rows import BATCH, PIXELS, Rows

_MEMORY = """
import resource, sys, threading, time
from pathlib import Path
import numpy as np
import pyarrow as pa
from farshift.loaders.part import Part
from farshift.splits.schema import Field, Schema

def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) / 1024

table = pa.ipc.open_file(pa.memory_map(sys.argv[1])).read_all()
schema = Schema((Field("image", "uint8[3072]", "input"), Field("label", "int64", "label")))
part = Part("bench/large", "0" * 64, "train", schema, "label", table, np.arange(table.num_rows), {})
for _ in part.select(np.arange(1000)).batches(256, columns=["image", "label"]):
    pass
before, peak, stop = anonymous(), 0.0, threading.Event()
def watch():
    global peak
    while not stop.wait(0.01):
        peak = max(peak, anonymous())
watcher = threading.Thread(target=watch); watcher.start()
start = time.perf_counter()
seen = sum(len(batch["label"]) for batch in part.batches(256, seed=SEED, columns=["image", "label"]))
took = time.perf_counter() - start
stop.set(); watcher.join()
assert seen == table.num_rows
print(f"{peak - before:.0f} {took:.1f}")
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
        done = subprocess.run(
            [sys.executable, "-c", _MEMORY.replace("SEED", seed), str(path)], capture_output=True, text=True, check=True
        )
        peak, took = done.stdout.split()
        order = "in order" if seed == "None" else "shuffled"
        print(
            f"\nan epoch over {path.stat().st_size / 1e9:.1f} GB ({count:,} images), {order}: {took} s, "
            f"{peak} MB of memory beyond the mapped file (goal: 300 MB)"
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
    with (
        pa.OSFile(str(path), "wb") as sink,
        pa.ipc.new_file(sink, table.schema, options=make_write_options()) as writer,
    ):
        writer.write_table(table, max_chunksize=count)
    raw.unlink()
