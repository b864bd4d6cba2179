"""Labels that people gave: read without unpickling, held to the images' own order, annotators kept apart."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from farshift.core.errors import BadData, BadDefinition
from farshift.loaders.readers.cifar import NOBODY, cifar, read_pickled_integers
from farshift.splits.rules import noise_human

TRAIN, TEST, CLASSES = 60, 20, 10


def torch_zip(path: Path, content: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", content)
        archive.writestr("archive/version", "3\n")
    return path


def published_labels(path: Path, arrays: dict[str, np.ndarray]) -> Path:
    """A file in the form of CIFAR-N's: a dictionary of arrays, saved by torch."""
    torch.save({name: values.astype("<i8") for name, values in arrays.items()}, path)
    return path


@pytest.fixture
def own_copy(tmp_path):
    """A CIFAR of 80 images in the published binary form, its human labels, and who gave them."""
    generator = np.random.default_rng(5)
    records = generator.integers(0, 256, (TRAIN + TEST, 1 + 3072), dtype=np.uint8)
    records[:, 0] = np.arange(TRAIN + TEST) % CLASSES
    with tarfile.open(tmp_path / "images.tar.gz", "w:gz") as tape:
        for name, rows in (("a.bin", records[:30]), ("b.bin", records[30:TRAIN]), ("t.bin", records[TRAIN:])):
            info = tarfile.TarInfo(name)
            info.size = rows.nbytes
            tape.addfile(info, io.BytesIO(rows.tobytes()))
    truth = records[:TRAIN, 0].astype(np.int64)
    human = np.where(np.arange(TRAIN) % 3 == 0, (truth + 1) % CLASSES, truth)
    published_labels(tmp_path / "human.pt", {"clean_label": truth, "worse_label": human})
    lines = ["Image-batch,Worker-id,Work-time-in-seconds"]
    lines += [f"{start}--{start + 4},{start // 5 % 6},40" for start in range(0, TRAIN, 5)]
    (tmp_path / "workers.csv").write_text("\n".join(lines) + "\n")
    return tmp_path, records, human


def options(**change):
    return {
        "archive": "images.tar.gz",
        "labels": ["object"],
        "train": ["a.bin", "b.bin"],
        "test": ["t.bin"],
        "true": "object",
        "human": "human.pt",
        "given": {"worst": "worse_label"},
        "workers": "workers.csv",
    } | change


def read(folder, **change):
    return cifar({path.name: path for path in folder.iterdir()}, **options(**change))


def test_images_true_labels_and_human_labels_stand_side_by_side(own_copy):
    folder, records, human = own_copy
    table = read(folder)
    images = table["image"].combine_chunks().flatten().to_numpy().reshape(TRAIN + TEST, 3072)
    assert np.array_equal(images, records[:, 1:])
    assert np.array_equal(table["object"].to_numpy(), records[:, 0])
    assert table["worst"].to_pylist() == [*human.tolist(), *[NOBODY] * TEST]
    assert table["published"].to_pylist() == ["train"] * TRAIN + ["test"] * TEST
    assert table["worker"].to_pylist()[:12] == ["0"] * 5 + ["1"] * 5 + ["2"] * 2


def test_human_labels_in_another_order_are_refused(own_copy):
    folder, records, human = own_copy
    turned = records[:TRAIN, 0].astype(np.int64)[::-1]
    published_labels(folder / "human.pt", {"clean_label": turned, "worse_label": human})
    with pytest.raises(
        BadData, match=r"human\.pt is in another order than images\.tar\.gz: 60 of 60 true labels differ"
    ):
        read(folder)


def test_a_pickle_that_would_run_code_is_only_read(tmp_path):
    class Touches:
        def __reduce__(self):
            return Path.touch, (tmp_path / "ran",)

    path = tmp_path / "human.pt"
    torch.save({"clean_label": Touches()}, path)
    with pytest.raises(BadData, match="no array of 60 whole numbers named clean_label"):
        read_pickled_integers(path, ["clean_label"], TRAIN)
    assert not (tmp_path / "ran").exists()
    torch.load(path, weights_only=False)
    assert (tmp_path / "ran").exists(), "unpickling it would have run it"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"no zip", "not a file that torch saved"),
        (None, "not a file that torch saved"),
        (b"\x80\x02X", "cannot be read"),
    ],
)
def test_a_damaged_label_file_is_named(tmp_path, content, complaint):
    path = tmp_path / "human.pt"
    if content == b"no zip":
        path.write_bytes(content)
    elif content is None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/version", "3")
    else:
        torch_zip(path, content)
    with pytest.raises(BadData, match=complaint):
        read_pickled_integers(path, ["clean_label"], TRAIN)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"train": ["a.bin", "c.bin"]}, "filename 'c.bin' not found"),
        ({"labels": ["superclass", "object"]}, "a.bin has 92190 bytes, which is not a multiple of 3074"),
        ({"given": {"worst": "worst_label"}}, "no array of 60 whole numbers named worst_label"),
    ],
)
def test_a_copy_that_is_not_the_published_one_says_where(own_copy, change, complaint):
    with pytest.raises(BadData, match=complaint):
        read(own_copy[0], **change)


def test_a_file_that_is_not_pinned_is_named(own_copy):
    with pytest.raises(BadDefinition, match=r"cifar reads labels\.pt, but the files are human\.pt, images\.tar\.gz"):
        read(own_copy[0], human="labels.pt")


@pytest.mark.parametrize("line", ["0--4", "0-4,7,40", "58--61,7,40", "9--5,7,40"])
def test_a_line_that_names_no_worker_is_quoted(own_copy, line):
    folder, _, _ = own_copy
    (folder / "workers.csv").write_text(f"Image-batch,Worker-id\n{line}\n")
    with pytest.raises(BadData, match="is not a line of images, worker and seconds"):
        read(folder)


def identified(table: pa.Table) -> pa.Table:
    return table.append_column("row_id", [np.arange(table.num_rows, dtype=np.uint64)])


def test_training_labels_are_the_people_s_and_test_labels_true(own_copy):
    folder, _, human = own_copy
    table = identified(read(folder))
    outcome = noise_human.annotated(table, label="object", given="worst", classes=CLASSES, train={"published": "train"})
    wrong = ~np.ma.getmaskarray(outcome.label)
    assert outcome.part.tolist() == ["train"] * TRAIN + ["id_test"] * TEST
    assert np.flatnonzero(wrong).tolist() == [row for row in range(TRAIN) if row % 3 == 0]
    assert np.array_equal(outcome.label.data[:TRAIN], human)


def test_no_annotator_stands_on_both_sides(own_copy):
    table = identified(read(own_copy[0]))
    settings = {"label": "object", "given": "worst", "annotator": "worker", "classes": CLASSES, "seed": "test"}
    outcome = noise_human.annotators_apart(table, share=0.5, train={"published": "train"}, **settings)
    sides = {part: set(outcome.group[outcome.part == part].tolist()) for part in ("train", "ood_test", "id_test")}
    assert sides["id_test"] == {"none"}
    assert len(sides["train"]) == len(sides["ood_test"]) == 3
    assert not sides["train"] & sides["ood_test"]
    assert np.ma.getmaskarray(outcome.label)[outcome.part != "train"].all()
    assert (~np.ma.getmaskarray(outcome.label)[outcome.part == "train"]).any()
    with pytest.raises(BadDefinition, match="share = 1"):
        noise_human.annotators_apart(table, share=1, train={"published": "train"}, **settings)


def test_labels_of_rows_that_nobody_labelled_are_refused(own_copy):
    table = identified(read(own_copy[0]))
    with pytest.raises(BadDefinition, match=r"labels of 'worst' run from -1 to -1"):
        noise_human.annotated(table, label="object", given="worst", classes=CLASSES, train={"published": "test"})
