"""The memory of an epoch over many encoded pictures: of the process that trains, and of a DataLoader's workers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
from farshift.loaders.cache.store import make_write_options
from loaders_pictures import made

WORKERS = 2
GOAL = 700

_COMMON = """
import sys, threading, time
from pathlib import Path
import numpy as np
import pyarrow as pa
import torch
from farshift.loaders.part import Part
from farshift.splits.schema import Field, Schema

torch.set_num_threads(1)
table = pa.ipc.open_file(pa.memory_map(sys.argv[1])).read_all()
count = table.num_rows

def anonymous():
    # What no file backs, of this process and its children; pages that both still share count twice.
    total = 0
    pids = {"self"}
    for task in Path("/proc/self/task").iterdir():
        try:
            pids |= set((task / "children").read_text().split())
        except OSError:  # a thread that ended
            continue
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024
    return total

peak, stop = 0.0, threading.Event()
def watch():
    global peak
    while not stop.wait(0.05):
        peak = max(peak, anonymous())

def measured(before, work):
    watcher = threading.Thread(target=watch); watcher.start()
    start = time.perf_counter(); work(); took = time.perf_counter() - start
    stop.set(); watcher.join()
    print(before, peak, took)
"""

_LOADER = """
schema = Schema((Field("image", "bytes", "input"), Field("label", "int64", "label")))
part = Part("bench/jpegs", "0" * 64, "train", schema, "label", table, np.arange(count), {})
stream = part.torch(256, seed=0, columns=["image", "label"])
def epoch():
    loader = torch.utils.data.DataLoader(stream, batch_size=None, num_workers=WORKERS)
    assert sum(len(batch["label"]) for batch in loader) == count
measured(anonymous(), epoch)
"""

_TRAINING = """
from farshift.baselines.baseline import Baseline
from farshift.baselines.recipe import Recipe, RecipeBudget
from farshift.benchmarks.model_inputs.rows import ModelRows
from farshift.benchmarks.model import Budget, Task
from farshift.loaders.batching.encoded import EncodedFiles

spend = RecipeBudget(steps=-(-count // 256))
settings = {"batch_size": 256, "side": 32, "feed": "streamed", "width": 4}
recipe = Recipe(name="bench", title="Bench", citation="none", network="mlp", algorithm="erm", settings=settings,
                quick=spend, full=spend)
columns = {"image": EncodedFiles(table["image"]), "label": np.array(table["label"]), "weight": np.ones(count)}
rows = ModelRows(columns, table["row_id"].to_numpy())
model = Baseline(recipe, Task("classification", ("image",), "label", classes=10), 0, "bench/jpegs")
measured(anonymous(), lambda: model.fit(rows, None, Budget()))
"""


def encoded_epochs(folder: Path, count: int) -> None:
    """An epoch over JPEGs of 10 kB: bytes by a DataLoader's workers, and a training that decodes them, without and with
    room for the decoded ones in the cache."""
    path = folder / "jpegs.arrow"
    size = _write(path, count)
    print(f"\nan epoch over {count:,} JPEGs ({size / 1e9:.2f} GB): memory that no file backs, all processes together")
    for name, code, limit in (
        (f"bytes by a DataLoader with {WORKERS} workers", _LOADER, ""),
        ("training, decoded into the cache", _TRAINING, ""),
        ("training, decoded on the fly", _TRAINING, "1kB"),
    ):
        environment = {"FARSHIFT_CACHE": str(folder / "memory-cache" / name.replace(" ", "-"))}
        code = code.replace("WORKERS", str(WORKERS))
        before, peak, took = measure_epoch(code, path, environment | {"FARSHIFT_CACHE_LIMIT": limit})
        print(f"{name:>42} {peak:6.0f} MB at most, {before:.0f} MB before the epoch; {took:.0f} s   goal: {GOAL} MB")
    path.unlink()


def measure_epoch(code: str, path: Path, environment: dict[str, str] | None = None) -> tuple[float, float, float]:
    """Megabytes that no file backs before the epoch of `code` over the table at `path`, and at most; its seconds."""
    done = subprocess.run(
        [sys.executable, "-c", _COMMON + code, str(path)],
        capture_output=True,
        text=True,
        env=os.environ | (environment or {}),
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    before, peak, took = map(float, done.stdout.split()[-3:])
    return before, peak, took


def write_record_batch(path: Path, table: pa.Table) -> None:
    """An Arrow file of one record batch."""
    with (
        pa.OSFile(str(path), "wb") as sink,
        pa.ipc.new_file(sink, table.schema, options=make_write_options()) as writer,
    ):
        writer.write_table(table, max_chunksize=table.num_rows)


def _write(path: Path, count: int) -> int:
    """One record batch of JPEGs, by big writes, never whole in memory: 256 different pictures, each file made another
    by the bytes after its end."""
    pictures = made(256, 176)
    raw, sizes = path.with_suffix(".raw"), np.zeros(count + 1, np.int64)
    with raw.open("wb") as file:
        for row in range(count):
            sizes[row + 1] = file.write(pictures[row % 256] + row.to_bytes(8, "little"))
    content = pa.py_buffer(np.memmap(raw, np.uint8, "r"))
    ends = pa.py_buffer(np.cumsum(sizes))
    table = pa.table(
        {
            "image": pa.Array.from_buffers(pa.large_binary(), count, [None, ends, content]),
            "label": np.arange(count) % 10,
            "row_id": np.arange(count, dtype=np.uint64),
        }
    )
    write_record_batch(path, table)
    raw.unlink()
    return int(sizes.sum())
