"""Decoding and resizing JPEGs on all cores, in batches: ours beside torch's DataLoader, webdataset and datasets.

All of them decode by Pillow and resize bilinearly to 224 x 224 uint8; all get as many workers as there are cores, and
ours, which decodes in threads, also with workers. Rounds are interleaved. Seconds of the clock say what other work on
the machine left; seconds of the processor (workers included) say what a picture costs.
"""

from __future__ import annotations

import io
import os
import resource
import statistics
import tarfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from farshift.loaders.batching.images import iterate_decoded
from farshift.loaders.decoders import load_decoder
from farshift.loaders.part import Part
from farshift.splits.schema import Field, Schema
from loaders_peers import datasets, torch, webdataset
from loaders_pictures import BATCH, SIDE, made
from PIL import Image

Decode = Callable[[], Iterator[Any]]

GOAL = 0.9


def pictures(count: int, archive: Path | None) -> list[bytes]:
    """JPEGs made here, or so many of a tar of published ones, drawn at random."""
    if archive is None:
        return made(count)
    with tarfile.open(archive) as tar:
        result = [tar.extractfile(item).read() for item in tar if item.name.lower().endswith((".jpg", ".jpeg"))]  # type: ignore[union-attr]
    return [result[position] for position in np.random.default_rng(0).permutation(len(result))[:count]]


def plain(content: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(content)) as item:
        return np.asarray(item.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR))


def resized(pixels: Any) -> np.ndarray:
    picture = Image.fromarray(np.asarray(pixels)).convert("RGB")
    return np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BILINEAR))


class _Files:
    """A map-style data set of files."""

    def __init__(self, files: list[bytes]) -> None:
        self.files = files

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, place: int) -> np.ndarray:
        return plain(self.files[place]).copy()


def _resized_rows(rows: list[dict[str, Any]]) -> np.ndarray:
    # Formats of torch give channels first.
    arrays = [np.asarray(row["image"]) for row in rows]
    return np.stack([resized(item.transpose(1, 2, 0) if item.shape[0] == 3 else item) for item in arrays])


def readers(files: list[bytes], folder: Path, cores: int) -> dict[str, Decode]:
    """What decodes all files once, batch by batch, by its name."""
    result: dict[str, Decode] = {
        "a bare loop over Pillow, one core": lambda: map(plain, files),
        "farshift, threads": lambda: iterate_decoded(files, SIDE, load_decoder()),
    }
    loader = partial(torch.utils.data.DataLoader, num_workers=cores)
    table = pa.table({"image": pa.array(files, pa.binary()), "row_id": np.arange(len(files), dtype=np.uint64)})
    schema = Schema((Field("image", "image", "input"),))
    part = Part("bench/jpegs", "0" * 64, "train", schema, "image", table, np.arange(len(files)), {})
    stream = part.torch(BATCH, seed=None, columns=["image"], images=SIDE)
    result["farshift, Part.torch"] = lambda: iter(stream)
    result["farshift, Part.torch with workers"] = lambda: iter(loader(stream, batch_size=None))
    result["torch DataLoader"] = lambda: iter(loader(_Files(files), batch_size=BATCH))
    if webdataset is not None:
        shards = _shards(files, folder, cores)
        result["webdataset"] = lambda: iter(
            loader(
                webdataset.WebDataset(shards, shardshuffle=False).to_tuple("jpg").map_tuple(plain).batched(BATCH),
                batch_size=None,
            )
        )
    if datasets is not None:
        kinds = datasets.Features({"image": datasets.Image()})
        rows = pa.table({"image": [{"bytes": content, "path": None} for content in files]})
        stored = datasets.Dataset(rows.cast(kinds.arrow_schema))
        for kind in ("torch", "numpy"):
            result[f"datasets, with_format({kind!r})"] = lambda kind=kind: iter(
                loader(stored.with_format(kind), batch_size=BATCH, collate_fn=_resized_rows)
            )
    return result


def _shards(files: list[bytes], folder: Path, count: int) -> list[str]:
    """As many tar files as there are workers."""
    paths = [folder / f"jpegs-{number}.tar" for number in range(count)]
    for number, path in enumerate(paths):
        with tarfile.open(path, "w") as tar:
            for position in range(number, len(files), count):
                member = tarfile.TarInfo(f"{position:08d}.jpg")
                member.size = len(files[position])
                tar.addfile(member, io.BytesIO(files[position]))
    return [str(path) for path in paths]


def _cpu() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(item.ru_utime + item.ru_stime for item in used)


def timed(read: Decode) -> tuple[float, float]:
    """Seconds of the clock and of the processor."""
    start, before = time.perf_counter(), _cpu()
    for _ in read():
        pass
    return time.perf_counter() - start, _cpu() - before


def beside_peers(count: int, folder: Path, archive: Path | None, rounds: int = 3) -> None:
    files, cores = pictures(count, archive), os.cpu_count() or 1
    every = readers(files, folder, cores)
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in every}
    for _ in range(rounds):
        for name, read in every.items():
            spent[name].append(timed(read))
    clock = {name: statistics.median(item[0] for item in result) for name, result in spent.items()}
    cpu = {name: statistics.median(item[1] for item in result) for name, result in spent.items()}
    bare = next(iter(every))
    size = sum(map(len, files)) / len(files) / 1e3
    load = ", ".join(f"{item:.1f}" for item in os.getloadavg())
    print(f"\ndecode and resize to {SIDE}: {len(files):,} JPEGs of {size:.0f} kB, {cores} cores, load {load}")
    for name in every:
        share = clock[bare] / clock[name] / cores
        output = (
            f"{len(files) / clock[name]:>8,.0f} pictures/s {1e3 * cpu[name] / len(files):>7.2f} ms of the processor"
        )
        print(
            f"{name:>42} {output}  {share:.2f} of cores x the loop by the clock, {cpu[bare] / cpu[name]:.2f} by the processor"
        )
    print(f"{'goal':>42} {GOAL} of cores x the loop; ours faster than each of the others")
