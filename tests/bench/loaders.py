"""How fast are the loaders? Beside a plain memmap (the limit) and the loaders that people use, in the same run.

make bench-loaders

Rows: 50,000 images 32x32x3 with a label each, in batches of 256. All readers give the same rows (checked before
anything is timed). Interleaved rounds, medians; a reader whose pass takes more than a second has fewer rounds. Limits:
a copy of each slice of a memmap; its fancy indexing where the order is another. Goals
stand beside what was measured.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from loaders_peers import image_peers
from loaders_rows import BATCH, Rows, make_rows

ROUNDS = 15

Pass = Callable[[], Iterator[int]]


def seconds(read: Pass) -> float:
    start = time.perf_counter()
    for _ in read():
        pass
    return time.perf_counter() - start


def interleaved(readers: dict[str, Pass]) -> dict[str, float]:
    """The median time of a pass of each reader."""
    times: dict[str, list[float]] = {name: [seconds(read)] for name, read in readers.items()}  # warms caches
    fast = {name: 3 if result[0] > 1 else ROUNDS for name, result in times.items() if result[0] < 5}
    for turn in range(ROUNDS):
        for name, rounds in fast.items():
            if turn < rounds:
                times[name].append(seconds(readers[name]))
    return {name: statistics.median(result[1:] or result) for name, result in times.items()}


def report(title: str, medians: dict[str, float], rows: int, limit: str, goals: dict[str, float]) -> None:
    """Each reader's rows a second and ratio to the limit; for peers also how many times ours is faster."""
    ours = medians["farshift"]
    print(f"\n{title}")
    for name, result in medians.items():
        line = f"{name:>42} {rows / result / 1e3:>10,.0f} k rows/s  {result / medians[limit]:>9.2f} x the limit"
        if name == "farshift" and limit in goals:
            line += f"   goal: at most {goals[limit]:g}"
        elif name not in ("farshift", limit):
            line += f"   ours is {result / ours:,.1f} x faster"
            line += f", goal: {goals[name]:g}" if name in goals else ""
        print(line)


def sequential(rows: Rows) -> None:
    images, labels = rows.arrays["image"], rows.arrays["label"]

    def memmap() -> Iterator[int]:
        for start in range(0, len(images), BATCH):
            yield len(images[start : start + BATCH].copy()) + len(labels[start : start + BATCH].copy())

    def ours() -> Iterator[int]:
        return (len(batch["image"]) for batch in rows.images.batches(BATCH, columns=["image", "label"]))

    limit = "npy memmap, each batch copied (limit)"
    goals = {limit: 1.25, "datasets, numpy": 15, "webdataset": 300, "torch DataLoader, default collate": 15}
    result = interleaved({limit: memmap, "farshift": ours, **image_peers(rows)})
    report("images, in order", result, len(images), limit, goals)


def shuffled(rows: Rows) -> None:
    images, labels = rows.arrays["image"], rows.arrays["label"]
    order = np.random.default_rng(1).permutation(len(images))

    def memmap() -> Iterator[int]:
        for start in range(0, len(images), BATCH):
            some = order[start : start + BATCH]
            yield len(images[some]) + len(labels[some])

    def ours() -> Iterator[int]:
        batches = rows.images.batches(BATCH, seed=1, columns=["image", "label"])
        return (len(batch["image"]) for batch in batches)

    limit = "npy memmap, fancy indexing (limit)"
    result = interleaved({limit: memmap, "farshift": ours})
    report("images, shuffled (its permutation included)", result, len(images), limit, {limit: 1.5})


def subsets(rows: Rows) -> None:
    images, labels = rows.arrays["image"], rows.arrays["label"]
    for percent in (1, 10, 50):
        chosen = np.sort(np.random.default_rng(percent).permutation(len(images))[: len(images) * percent // 100])
        part = rows.images.select(chosen)

        def memmap(chosen: np.ndarray = chosen) -> Iterator[int]:
            for start in range(0, len(chosen), BATCH):
                some = chosen[start : start + BATCH]
                yield len(images[some]) + len(labels[some])

        def held(chosen: np.ndarray = chosen) -> Iterator[int]:
            for start in range(0, len(chosen), BATCH):
                some = chosen[start : start + BATCH]
                batch = images[some], labels[some]
                yield len(batch[0])

        def ours(part=part) -> Iterator[int]:
            return (len(batch["image"]) for batch in part.batches(BATCH, columns=["image", "label"]))

        limit = "npy memmap, fancy indexing (limit)"
        result = interleaved({limit: memmap, "the same, a batch held while the next is read": held, "farshift": ours})
        report(f"a subset of {percent} % of the images, by row id", result, len(chosen), limit, {limit: 1.0})


def main() -> None:
    requested = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    requested.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = make_rows(Path(folder))
        sequential(rows)
        shuffled(rows)
        subsets(rows)


if __name__ == "__main__":
    main()
