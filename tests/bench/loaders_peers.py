"""The loaders that people use, over the same rows in the same order: datasets, webdataset, Parquet, torch's DataLoader."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from loaders_rows import BATCH, PIXELS, Rows

Pass = Callable[[], Iterator[int]]


def peer(name: str) -> Any:
    """A loader to compare with; None where it is not installed, which is said."""
    if find_spec(name) is None:
        print(f"{name} is not installed, and left out (pip install {name})")
        return None
    return import_module(name)


datasets, webdataset = peer("datasets"), peer("webdataset")


def image_peers(rows: Rows) -> dict[str, Pass]:
    images, labels = rows.memmap("image"), rows.memmap("label")
    column = pa.FixedSizeListArray.from_arrays(pa.array(np.asarray(images).ravel()), PIXELS)
    parquet = rows.folder / "images.parquet"
    pq.write_table(pa.table({"row": [bytes(image) for image in images], "label": labels}), parquet)
    tar = rows.folder / "images.tar"
    _write_tar(tar, images, labels)
    return {
        **_of_datasets(pa.table({"row": column, "label": labels}), rows.folder / "hf-images"),
        "pyarrow Parquet, iter_batches": lambda: _parquet(parquet),
        **({} if webdataset is None else {"webdataset": lambda: _webdataset(tar)}),
        "torch DataLoader, default collate": lambda: _data_loader(_MapImages(images, labels)),
    }


def _of_datasets(table: pa.Table, folder: Path) -> dict[str, Pass]:
    """Map and iterable, in three formats, from Arrow files on disk as a user's data set is."""
    if datasets is None:
        return {}
    row = datasets.List(datasets.Value("uint8"), length=PIXELS)
    kinds = datasets.Features({"row": row, "label": datasets.Value("int64")})
    datasets.disable_progress_bars()
    datasets.Dataset(table.cast(kinds.arrow_schema)).save_to_disk(folder)
    stored = datasets.load_from_disk(folder)
    result: dict[str, Pass] = {}
    for kind in ("numpy", "torch", "arrow"):
        for name, built in (
            (f"datasets, {kind}", stored),
            (f"datasets iterable, {kind}", stored.to_iterable_dataset()),
        ):
            result[name] = lambda made=built, kind=kind: (
                len(batch["label"]) for batch in made.with_format(kind).iter(BATCH)
            )
    return result


def _parquet(path: Path) -> Iterator[int]:
    for batch in pq.ParquetFile(path).iter_batches(BATCH):
        yield batch.num_rows


def _write_tar(path: Path, images: np.ndarray, labels: np.ndarray) -> None:
    with tarfile.open(path, "w") as tar:
        for number, (image, label) in enumerate(zip(images, labels.tolist(), strict=True)):
            for name, content in (("bin", image.tobytes()), ("cls", str(label).encode())):
                member = tarfile.TarInfo(f"{number:08d}.{name}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))


def _webdataset(path: Path) -> Iterator[int]:
    stream = webdataset.WebDataset(str(path), shardshuffle=False).to_tuple("bin", "cls")
    for batch in stream.batched(BATCH, collation_fn=None):
        yield len(np.stack([np.frombuffer(image, np.uint8) for image, _ in batch]))


class _MapImages(torch.utils.data.Dataset):
    def __init__(self, images: np.ndarray, labels: np.ndarray) -> None:
        self.images, self.labels = images, labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, place: int) -> tuple[np.ndarray, int]:
        return self.images[place].copy(), int(self.labels[place])


def _data_loader(data: torch.utils.data.Dataset) -> Iterator[int]:
    for _, labels in torch.utils.data.DataLoader(data, BATCH):
        yield len(labels)
