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


@dataclass
class Rows:
    """A part, and its columns in the same order as memmaps, in one big file each."""

    folder: Path
    images: Part

    def memmap(self, name: str) -> np.ndarray:
        return np.load(self.folder / f"{name}.npy", mmap_mode="r")

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return {name: self.memmap(name) for name in ("image", "label")}


def make_rows(folder: Path) -> Rows:
    """Write the rows under `folder`, which becomes the cache too."""
    os.environ["FARSHIFT_CACHE"] = str(folder / "cache")
    images = np.random.default_rng(0).integers(0, 256, (IMAGES, PIXELS), dtype=np.uint8)
    flat = pa.FixedSizeListArray.from_arrays(pa.array(images.ravel()), PIXELS)
    file = folder / "given-image.parquet"
    pq.write_table(pa.table({"image": flat, "label": np.arange(IMAGES) % 10}), file)
    source = pin_source(Data(files=[str(file)], inputs=["image"], labels=["label"]), "image", folder, folder / "home")
    table, identity = source.table(), source.definition.digest
    rows = Rows(
        folder, Part("bench/image", identity, "train", source.schema, "label", table, np.arange(table.num_rows), {})
    )
    for name, values in rows.images.numpy(["image", "label"]).items():
        np.save(folder / f"{name}.npy", values.reshape(IMAGES, -1) if name == "image" else values)
    _check(rows)
    return rows


def _check(rows: Rows) -> None:
    """Ours is what the memmaps hold."""
    seen = 0
    for batch in rows.images.batches(BATCH, columns=["image", "label"]):
        count = len(batch["label"])
        assert (batch["image"].reshape(count, PIXELS) == rows.memmap("image")[seen : seen + count]).all()
        seen += count
    assert seen == IMAGES
