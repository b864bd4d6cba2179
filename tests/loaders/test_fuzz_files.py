"""Whatever becomes of a data file in a format that is read for others: its rows, or an error of one line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from encoded_files import picture, sound, tarred, zipped
from farshift.loaders.batching.audio import read_samples
from farshift.loaders.batching.images import decode_images
from farshift.loaders.files.reader_errors import convert_reader_errors
from farshift.loaders.readers import arrays, image_folder, table
from fuzz.folders import CASES, failures

pytestmark = pytest.mark.attack("host", "hundreds of damaged data files")

ROWS = 50


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    numbers = np.arange(ROWS, dtype=np.float64).reshape(ROWS, 1) * np.ones(3)
    texts = [f"row {row % 5}" for row in range(ROWS)]
    pq.write_table(pa.table({"x": texts, "n": np.arange(ROWS)}), folder / "a.parquet")
    (folder / "a.json").write_text(json.dumps([{"x": text} for text in texts]))
    (folder / "a.jsonl").write_text("".join(f"{json.dumps({'x': text})}\n" for text in texts))
    (folder / "a.csv.gz").write_bytes(gzip.compress("\n".join(["x", *texts]).encode()))
    np.save(folder / "a.npy", numbers)
    np.savez_compressed(folder / "a.npz", x=numbers)
    pytest.importorskip("scipy.io").savemat(folder / "a.mat", {"x": numbers}, do_compression=True)
    with pytest.importorskip("h5py").File(folder / "a.h5", "w") as file:
        file.create_dataset("x", data=numbers, compression="gzip")
    pictures = {f"cat/{number}.png": picture(number, "PNG") for number in range(3)}
    zipped(folder / "a.zip", pictures)
    tarred(folder / "a.tar.gz", pictures, "gz")
    for kind in ("JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP"):
        (folder / f"a.{kind.lower()}").write_bytes(picture(1, kind))
    (folder / "a.wav").write_bytes(sound())
    return folder


def read_all(folder: Path) -> str:
    """What `farshift splits build` does with such files, one after the other."""
    try:
        for path in sorted(folder.iterdir()):
            with convert_reader_errors(path.name):
                read_one(path)
    except FileNotFoundError:
        return "refused"
    return "read"


def read_one(path: Path) -> None:
    name, given = path.name, {path.name: path}
    if path.suffix in (".npy", ".npz", ".mat", ".h5"):
        list(arrays.read(given, fields={"x": name if path.suffix == ".npy" else f"{name}:x"}))
    elif name in ("a.zip", "a.tar.gz"):
        list(image_folder.read(given, pattern="{kind}/{file}"))
    elif path.suffix == ".wav":
        read_samples(path.read_bytes(), 16_000, name)
    elif path.suffix in (".parquet", ".json", ".jsonl", ".gz"):
        table.read_table(given, columns={"x": "x"})
    else:
        decode_images([path.read_bytes()], 8)


def check(folder: Path, cases: int, name: str) -> None:
    failed, seen = failures(folder, cases, name, lambda: read_all(folder))
    assert failed == {}
    assert seen == {"refused", "read"}


def test_40_damaged_files_are_read_or_refused(files):
    check(files, 40, "files")


@pytest.mark.slow
def test_many_damaged_files_are_read_or_refused(files):
    check(files, CASES, "many files")
