"""How fast are the loaders? Beside a plain memmap (the limit) and the loaders that people use, in the same run.

make bench-loaders

Rows: 50,000 images 32x32x3 with a label each, in batches of 256, in the same order for each reader; Farshift's are
checked to be those of the memmaps before anything is timed. Interleaved rounds, medians; a reader whose pass takes more
than a second has fewer rounds. Limits: a copy of each slice of a memmap; its fancy indexing where the order is another.
Goals stand beside what was measured. A peer that is not installed is left out.
"""

from __future__ import annotations

import io
import os
import statistics
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from farshift.loaders.acquire.own_data import Data
from farshift.loaders.part import Part
from own_source import pin_source

BATCH, ROUNDS = 256, 15
IMAGES, PIXELS = 50_000, 32 * 32 * 3
COLUMNS = ["image", "label"]
Pass = Callable[[], Iterator[int]]


def make_rows(folder: Path) -> tuple[Part, np.ndarray, np.ndarray]:
    """A part, and memmaps of its images and labels. `folder` becomes the cache too."""
    os.environ["FARSHIFT_CACHE"] = str(folder / "cache")
    images = np.random.default_rng(0).integers(0, 256, (IMAGES, PIXELS), dtype=np.uint8)
    flat = pa.FixedSizeListArray.from_arrays(pa.array(images.ravel()), PIXELS)
    pq.write_table(pa.table({"image": flat, "label": np.arange(IMAGES) % 10}), folder / "given.parquet")
    data = Data(files=[str(folder / "given.parquet")], inputs=["image"], labels=["label"])
    source = pin_source(data, "image", folder, folder / "home")
    table = source.table()
    rows = np.arange(table.num_rows)
    part = Part("bench/image", source.definition.digest, "train", source.schema, "label", table, rows, {})
    for name, values in part.numpy(COLUMNS).items():
        np.save(folder / f"{name}.npy", values.reshape(IMAGES, -1) if name == "image" else values)
    image, label = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in COLUMNS)
    seen = 0
    for batch in part.batches(BATCH, columns=COLUMNS):
        count = len(batch["label"])
        assert (batch["image"].reshape(count, PIXELS) == image[seen : seen + count]).all()
        seen += count
    assert seen == IMAGES
    return part, image, label


def list_peers(images: np.ndarray, labels: np.ndarray, folder: Path) -> dict[str, Pass]:
    """The loaders that people use: `datasets` from Arrow files on disk, Parquet, webdataset, torch's DataLoader."""
    parquet, tar = folder / "images.parquet", folder / "images.tar"
    pq.write_table(pa.table({"row": [bytes(image) for image in images], "label": labels}), parquet)
    peers: dict[str, Pass] = {}
    if datasets := find_peer("datasets"):
        column = pa.FixedSizeListArray.from_arrays(pa.array(np.asarray(images).ravel()), PIXELS)
        row = datasets.List(datasets.Value("uint8"), length=PIXELS)
        kinds = datasets.Features({"row": row, "label": datasets.Value("int64")})
        datasets.disable_progress_bars()
        table = pa.table({"row": column, "label": labels}).cast(kinds.arrow_schema)
        datasets.Dataset(table).save_to_disk(folder / "hf-images")
        stored = datasets.load_from_disk(folder / "hf-images")
        for kind in ("numpy", "torch", "arrow"):
            peers[f"datasets, {kind}"] = lambda kind=kind: (
                len(batch["label"]) for batch in stored.with_format(kind).iter(BATCH)
            )
    peers["pyarrow Parquet, iter_batches"] = lambda: (
        batch.num_rows for batch in pq.ParquetFile(parquet).iter_batches(BATCH)
    )
    if webdataset := find_peer("webdataset"):
        with tarfile.open(tar, "w") as written:
            for number, (image, label) in enumerate(zip(images, labels.tolist(), strict=True)):
                for name, content in (("bin", image.tobytes()), ("cls", str(label).encode())):
                    member = tarfile.TarInfo(f"{number:08d}.{name}")
                    member.size = len(content)
                    written.addfile(member, io.BytesIO(content))

        def stream() -> Iterator[int]:
            samples = webdataset.WebDataset(str(tar), shardshuffle=False).to_tuple("bin", "cls")
            for batch in samples.batched(BATCH, collation_fn=None):
                yield len(np.stack([np.frombuffer(image, np.uint8) for image, _ in batch]))

        peers["webdataset"] = stream
    rows = _MapImages(images, labels)
    peers["torch DataLoader, default collate"] = lambda: (
        len(batch) for _, batch in torch.utils.data.DataLoader(rows, BATCH)
    )
    return peers


def find_peer(name: str) -> Any:
    if find_spec(name) is None:
        print(f"{name} is not installed, and left out (pip install {name})")
        return None
    return import_module(name)


class _MapImages(torch.utils.data.Dataset):
    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, place: int) -> tuple[np.ndarray, int]:
        return self.images[place].copy(), int(self.labels[place])


def measure(title: str, rows: int, readers: dict[str, Pass], goals: dict[str, float]) -> None:
    """Print the rows a second of each reader and its ratio to the first, the limit; for peers how many times Farshift is
    faster."""

    def seconds(read: Pass) -> float:
        start = time.perf_counter()
        for _ in read():
            pass
        return time.perf_counter() - start

    times: dict[str, list[float]] = {name: [seconds(read)] for name, read in readers.items()}  # warms caches
    rounds = {name: 3 if result[0] > 1 else ROUNDS for name, result in times.items() if result[0] < 5}
    for turn in range(ROUNDS):
        for name, count in rounds.items():
            if turn < count:
                times[name].append(seconds(readers[name]))
    medians = {name: statistics.median(result[1:] or result) for name, result in times.items()}
    limit, ours = medians[next(iter(readers))], medians["farshift"]
    print(f"\n{title}")
    for number, (name, result) in enumerate(medians.items()):
        line = f"{name:>46} {rows / result / 1e3:>10,.0f} k rows/s  {result / limit:>9.2f} x the limit"
        if number and name != "farshift":
            line += f"   ours is {result / ours:,.1f} x faster"
        print(line + (f"   goal: {goals[name]:g}" if name in goals else ""))


def pick(images: np.ndarray, labels: np.ndarray, order: np.ndarray) -> Pass:
    """Fancy indexing of memmaps, batch by batch."""
    return lambda: (
        len(images[order[start : start + BATCH]]) + len(labels[order[start : start + BATCH]])
        for start in range(0, len(order), BATCH)
    )


def hold(images: np.ndarray, labels: np.ndarray, order: np.ndarray) -> Iterator[int]:
    """The same, a batch held while the next is read."""
    for start in range(0, len(order), BATCH):
        some = order[start : start + BATCH]
        batch = images[some], labels[some]
        yield len(batch[0])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        part, images, labels = make_rows(Path(folder))

        def read(some: Part, **order: int) -> Pass:
            return lambda: (len(batch["image"]) for batch in some.batches(BATCH, columns=COLUMNS, **order))

        def copy() -> Iterator[int]:
            for start in range(0, IMAGES, BATCH):
                yield len(images[start : start + BATCH].copy()) + len(labels[start : start + BATCH].copy())

        goals = {"farshift": 1.25, "datasets, numpy": 15, "webdataset": 300, "torch DataLoader, default collate": 15}
        peers = list_peers(images, labels, Path(folder))
        readers = {"npy memmap, each batch copied (limit)": copy, "farshift": read(part), **peers}
        measure("images, in order", IMAGES, readers, goals)
        order, indexing = np.random.default_rng(1).permutation(IMAGES), "npy memmap, fancy indexing (limit)"
        readers = {indexing: pick(images, labels, order), "farshift": read(part, seed=1)}
        measure("images, shuffled (its permutation included)", IMAGES, readers, {"farshift": 1.5})
        for percent in (1, 10, 50):
            chosen = np.sort(np.random.default_rng(percent).permutation(IMAGES)[: IMAGES * percent // 100])
            readers = {
                indexing: pick(images, labels, chosen),
                "the same, a batch held while the next is read": lambda some=chosen: hold(images, labels, some),
                "farshift": read(part.select(chosen)),
            }
            measure(f"a subset of {percent} % of the images, by row id", len(chosen), readers, {"farshift": 1.0})


if __name__ == "__main__":
    main()
