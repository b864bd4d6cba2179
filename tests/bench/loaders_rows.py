"""The rows of `make bench-loaders`: a part of Farshift's, and the same rows in the files that the peers read."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from farshift.loaders.acquire.own_data import Data
from farshift.loaders.part import Part
from own_source import pin_source

BATCH = 256
IMAGES, PIXELS = 50_000, 32 * 32 * 3
TEXTS = 200_000


@dataclass
class Rows:
    """Both parts, and their columns in the same order as memmaps, in one big file each."""

    folder: Path
    images: Part
    texts: Part

    def memmap(self, name: str) -> np.ndarray:
        return np.load(self.folder / f"{name}.npy", mmap_mode="r")

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return {name: self.memmap(name) for name in ("image", "label")}


def make_rows(folder: Path) -> Rows:
    """Write the rows under `folder`, which becomes the cache too."""
    os.environ["FARSHIFT_CACHE"] = str(folder / "cache")
    draw = np.random.default_rng(0)
    images = draw.integers(0, 256, (IMAGES, PIXELS), dtype=np.uint8)
    words = np.array([f"word{number}" for number in range(5000)])
    texts = [f"{number} " + " ".join(words[draw.integers(0, 5000, 11)]) for number in range(TEXTS)]
    flat = pa.FixedSizeListArray.from_arrays(pa.array(images.ravel()), PIXELS)
    parts = {}
    for name, column in (("image", flat), ("text", pa.array(texts))):
        file = folder / f"given-{name}.parquet"
        pq.write_table(pa.table({name: column, "label": np.arange(len(column)) % 10}), file)
        data = Data(files=[str(file)], inputs=[name], labels=["label"])
        source = pin_source(data, name, folder, folder / "home")
        table = source.table()
        every = np.arange(table.num_rows)
        parts[name] = Part(f"bench/{name}", source.definition.digest, "train", source.schema, "label", table, every, {})
    rows = Rows(folder, parts["image"], parts["text"])
    _write_memmaps(rows)
    _check(rows)
    return rows


def _write_memmaps(rows: Rows) -> None:
    images = rows.images.numpy(["image", "label"])
    texts = next(rows.texts.batches(TEXTS, columns=["text", "label"], text="bytes"))
    for name, values in (
        ("image", images["image"].reshape(IMAGES, PIXELS)),
        ("label", images["label"]),
        ("text", texts["text"]),
        ("ends", texts["text.offsets"]),
        ("text_label", texts["label"]),
    ):
        np.save(rows.folder / f"{name}.npy", values)


def _check(rows: Rows) -> None:
    """Ours is what the memmaps hold."""
    seen = 0
    for batch in rows.images.batches(BATCH, columns=["image", "label"]):
        count = len(batch["label"])
        assert (batch["image"].reshape(count, PIXELS) == rows.memmap("image")[seen : seen + count]).all()
        seen += count
    assert seen == IMAGES
