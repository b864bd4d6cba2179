"""How far do splits scale? A split of ten million rows of Parquet, built and proven again, with its memory.

make bench-splits

Goals: under 2 GiB of memory, 150,000 short rows a second on two cores, and a proof in under 60 s. Memory is the
highest anonymous memory of the process (pages of mapped files are the operating system's to take back). Beside it, a
bare loop in the same run: one sha256 of each row's canonical bytes, which lie ready in memory. Both in seconds of the
processor too (of all processes), which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from farshift.splits.rows import iterate_canonical_rows
from farshift.splits.schema import Field

FILES = 8
GROUP = 1 << 17

DRAFT = """
name = "bench/long"
version = 1
kind = "length"
title = "short texts, long texts"
label = "label"
rule = "length/threshold"
parameters = { field = "text", at_most = 12 }
source = { name = "bench" }
ships_rows = true
data = { files = ["rows-*.parquet"], inputs = ["text"], labels = ["label"], meta = ["year"] }
"""

MEASURED = """
import json, resource, sys, threading, time
from pathlib import Path

def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) / 2**20

peak, stop = 0.0, threading.Event()
def watch():
    global peak
    while not stop.wait(0.02):
        peak = max(peak, anonymous())
watcher = threading.Thread(target=watch); watcher.start()
folder, out = Path(sys.argv[2]), Path(sys.argv[2]) / sys.argv[3] / "splits" / "manifests"
def processor():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)

start, cpu = time.perf_counter(), processor()
if sys.argv[1] == "build":
    from farshift.loaders.freezing.freeze import freeze
    manifest, _ = freeze(folder / "long.toml", out)
    said = manifest.identity
else:
    from farshift.loaders.freezing.verify import verify_each
    from farshift.splits.manifest import read_manifest
    from farshift.core.plugins import add_plugin_folder
    with add_plugin_folder(folder / sys.argv[3]):
        (verdict,) = verify_each([read_manifest(out / "bench" / "long" / "v1" / "split.toml")])
    said = verdict.state
took, cpu = time.perf_counter() - start, processor() - cpu
stop.set(); watcher.join()
print(json.dumps({"said": said, "seconds": took, "cpu": cpu, "gib": peak}))
"""


def write(folder: Path, rows: int) -> None:
    draw = np.random.default_rng(0)
    words = pa.array([f"word{number}" for number in range(2000)])
    for file in range(FILES):
        writer = None
        for start in range(file * rows // FILES, (file + 1) * rows // FILES, GROUP):
            count = min(GROUP, (file + 1) * rows // FILES - start)
            numbers = pa.array(np.arange(start, start + count)).cast(pa.string())
            pieces = [numbers] + [words.take(pa.array(draw.integers(0, 2000, count))) for _ in range(8)]
            text = pc.binary_join_element_wise(*pieces, " ")
            more = pc.if_else(pa.array(draw.random(count) < 0.2), pc.binary_join_element_wise(text, text, " "), text)
            columns = {"text": more, "label": draw.integers(0, 7, count), "year": 2000 + draw.integers(0, 20, count)}
            table = pa.table(columns)
            writer = writer or pq.ParquetWriter(folder / f"rows-{file}.parquet", table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()


def measured(what: str, folder: Path, home: str) -> dict[str, float | str]:
    command = [sys.executable, "-c", MEASURED, what, str(folder), home]
    environment = {"FARSHIFT_CACHE": str(folder / f"cache-{home}"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    result: dict[str, float | str] = json.loads(done.stdout)
    return result


def bare_loop(folder: Path) -> float:
    """Seconds of the processor that one sha256 of one row's canonical bytes takes, the bytes lying in memory."""
    fields = (Field("text", "string", "input"), Field("label", "int64", "label"), Field("year", "int64", "meta"))
    table = pq.ParquetFile(folder / "rows-0.parquet").read_row_group(0)
    some = list(iterate_canonical_rows(table, fields))
    times = []
    for _ in range(5):
        start = time.process_time()
        for row in some:
            sha256(row).digest()
        times.append((time.process_time() - start) / len(some))
    return statistics.median(times)


def main() -> None:
    requested = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    requested.add_argument("--rows", type=float, default=1e7)
    rows = int(requested.parse_args().rows)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, rows)
        size = sum(path.stat().st_size for path in folder.glob("*.parquet"))
        bare = bare_loop(folder)
        print(f"{rows:,} rows in {FILES} Parquet files, {size / 1e9:.2f} GB")
        print(f" bare loop: {bare * 1e6:.2f} us a row, {1 / bare:,.0f} rows/s")
        (folder / "long.toml").write_text(DRAFT)
        result = measured("build", folder, "home")
        each = float(result["cpu"]) / rows
        print(
            f"     built in {result['seconds']:.0f} s, {rows / float(result['seconds']):,.0f} rows/s (goal on two cores: "
            f"150,000); {each * 1e6:.2f} us of the processor a row, {1 / each:,.0f} rows/s of one core, "
            f"{each / bare:.1f} x the bare loop; {result['gib']:.2f} GiB (goal: 2)"
        )
        proof = measured("verify", folder, "home")
        print(
            f"    proven: {proof['said']} in {proof['seconds']:.0f} s (goal: 60), {proof['cpu']:.0f} s of the processor, {proof['gib']:.2f} GiB"
        )


if __name__ == "__main__":
    main()
