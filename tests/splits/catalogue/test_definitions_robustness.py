"""Corrupted, adversarial and recollected tests in their real layouts, made small: trained on the clean set."""

from __future__ import annotations

import io
import tarfile

import numpy as np
import pytest
from farshift.core.errors import BadData
from farshift.loaders.acquire.source import find_source
from farshift.splits.catalogue import find_manifest
from twins import laid, npy, picture, pulled, tar, twin, values, zipped

BINARY = {
    "cifar-10": (1, [f"data_batch_{n}.bin" for n in range(1, 6)], "test_batch.bin"),
    "cifar-100": (2, ["train.bin"], "test.bin"),
}
FOLDER = {"cifar-10": "cifar-10-batches-bin", "cifar-100": "cifar-100-binary"}
FIFTEEN = [
    "gaussian_noise",
    "shot_noise",
    "impulse_noise",
    "defocus_blur",
    "glass_blur",
    "motion_blur",
    "zoom_blur",
    "snow",
    "frost",
    "fog",
    "brightness",
    "contrast",
    "elastic_transform",
    "pixelate",
    "jpeg_compression",
]
FOUR = ["speckle_noise", "gaussian_blur", "spatter", "saturate"]


ACCEPTED = "ImageNet (non-commercial research)"
"""The licences that `place` agrees to."""


def pixels(number, shape=(3, 32, 32)):
    return (np.arange(np.prod(shape), dtype=np.int64) * (number + 3) + number).astype(np.uint8).reshape(shape)


def cifar(name, rows=4):
    """The binary version: label bytes, then the pixels of each colour."""
    labels, train, test = BINARY[name]
    files, number = {}, 0
    for member in [*train, test]:
        records = []
        for _ in range(rows):
            records.append(bytes([number % 3] * labels) + pixels(number).tobytes())
            number += 1
        files[f"{FOLDER[name]}/{member}"] = b"".join(records)
    return {f"{name}-binary.tar.gz": tar(files)}


def corrupted(name, rows=4):
    """Nineteen arrays, rows first and colours last, five severities end to end; and the labels five times."""
    files = {f"{name}/labels.npy": npy(np.tile(np.arange(rows) % 3, 5))}
    for position, corruption in enumerate([*FIFTEEN, *FOUR]):
        every = [pixels(1000 + 100 * position + row).transpose(1, 2, 0) for row in range(5 * rows)]
        files[f"{name}/{corruption}.npy"] = npy(np.stack(every))
    return {f"{name}.tar": tar(files, mode="w")}


@pytest.mark.parametrize(("split", "base", "name", "train"), [
    ("cifar10_c/common", "cifar-10", "CIFAR-10-C", 20),
    ("cifar100_c/common", "cifar-100", "CIFAR-100-C", 4),
])  # fmt: skip
def test_cifar_c_has_five_severities_end_to_end(place, tmp_path, split, base, name, train):
    data = laid(tmp_path / "data", cifar(base) | corrupted(name))
    result, parts = pulled(twin(split, place), data)
    assert parts == {"train": train, "id_test": 4, "ood_test": 15 * 20, "ood_val": 4 * 20}
    assert set(values(result, "ood_test", "corruption")) == set(FIFTEEN)
    assert set(values(result, "ood_val", "corruption")) == set(FOUR)
    assert values(result, "ood_test", "strength") == sorted([1, 2, 3, 4, 5] * 60)
    rows = result.part("ood_test").numpy(["image", "corruption", "strength", "object"])
    worst = (rows["corruption"] == "shot_noise") & (rows["strength"] == 5) & (rows["object"] == 2)
    assert (rows["image"][worst].reshape(3, 32, 32) == pixels(1000 + 100 + 18)).all()


def test_a_corruption_that_is_not_there_is_named(place, tmp_path):
    files = cifar("cifar-10") | corrupted("CIFAR-10-C")
    locked = {}
    with tarfile.open(fileobj=io.BytesIO(files["CIFAR-10-C.tar"])) as archive:
        for member in archive:
            if "frost" not in member.name:
                locked[member.name] = archive.extractfile(member).read()
    with pytest.raises(BadData, match="frost"):
        pulled(
            twin("cifar10_c/common", place), laid(tmp_path / "data", files | {"CIFAR-10-C.tar": tar(locked, mode="w")})
        )


@pytest.mark.parametrize("version", ["v4", "v6"])
def test_cifar_10_1_is_two_arrays(place, tmp_path, version):
    images = npy(np.stack([pixels(500 + row).transpose(1, 2, 0) for row in range(6)]))
    files = {f"cifar10.1_{version}_data.npy": images, f"cifar10.1_{version}_labels.npy": npy(np.arange(6) % 3)}
    data = laid(tmp_path / "data", cifar("cifar-10") | files)
    split, parts = pulled(twin(f"cifar10_1_{version}/recollected", place), data)
    assert parts == {"train": 20, "id_test": 4, "ood_test": 6}
    assert values(split, "ood_test", "object") == [0, 0, 1, 1, 2, 2]


LAYOUTS = ("cifar10_1_v4/recollected", "cifar10_1_v6/recollected")


def test_cifar_10_2_is_a_zip_of_arrays(place, tmp_path):
    buffer = io.BytesIO()
    images = np.stack([pixels(700 + row).transpose(1, 2, 0) for row in range(6)])
    np.savez(buffer, images=images, labels=np.arange(6) % 3)
    data = laid(tmp_path / "data", cifar("cifar-10") | {"cifar102_test.npz": buffer.getvalue()})
    _, parts = pulled(twin("cifar10_2/recollected", place), data)
    assert parts == {"train": 20, "id_test": 4, "ood_test": 6}


def test_mnist_c_has_a_folder_for_each_corruption(place, tmp_path):
    corruptions = [
        "brightness",
        "canny_edges",
        "dotted_line",
        "fog",
        "glass_blur",
        "impulse_noise",
        "motion_blur",
        "rotate",
        "scale",
        "shear",
        "shot_noise",
        "spatter",
        "stripe",
        "translate",
        "zigzag",
    ]
    files = {}
    for number, corruption in enumerate(["identity", *corruptions]):
        for part, rows in (("train", 4), ("test", 3)):
            digits = [pixels(100 * number + row + 50 * (part == "test"), (28, 28, 1)) for row in range(rows)]
            files[f"mnist_c/{corruption}/{part}_images.npy"] = npy(np.stack(digits))
            files[f"mnist_c/{corruption}/{part}_labels.npy"] = npy(np.arange(rows))
    split, parts = pulled(twin("mnist_c/common", place), laid(tmp_path / "data", {"mnist_c.zip": zipped(files)}))
    assert parts == {"train": 4, "id_test": 3, "ood_test": 45}
    assert set(values(split, "ood_test", "corruption")) == set(corruptions)


SYNSETS = ["n01440764", "n01443537", "n02120079"]


def imagenet(tmp_path, rows=2):
    files = {}
    for part in ("train", "val"):
        for synset in SYNSETS:
            for number in range(rows):
                files[f"{part}/{synset}/{synset}_{number}.JPEG"] = picture(len(files))
    return laid(tmp_path / "data", files)


@pytest.mark.parametrize(
    ("split", "archive", "root", "synsets"),
    [
        ("imagenet_a/adversarial", "imagenet-a.tar", "imagenet-a", SYNSETS[:2]),
        ("imagenet_r/renditions", "imagenet-r.tar", "imagenet-r", SYNSETS[1:]),
        ("imagenet_sketch/sketches", "ImageNet-Sketch.zip", "sketch", SYNSETS),
    ],
)
def test_what_came_after_imagenet_is_tested_by_its_classes(place, tmp_path, split, archive, root, synsets):
    data = imagenet(tmp_path)
    files = {
        f"{root}/{synset}/{n}.jpg": picture(500 + 10 * position + n)
        for position, synset in enumerate(synsets)
        for n in range(2)
    }
    if root != "sketch":
        files[f"{root}/README.txt"] = b"read me"
    (data / archive).write_bytes(zipped(files) if archive.endswith("zip") else tar(files, mode="w"))
    result, parts = pulled(twin(split, place), data)
    assert parts == {"train": 6, "id_test": 6, "ood_test": 2 * len(synsets)}
    assert set(values(result, "ood_test", "synset")) == set(synsets)
    assert set(values(result, "ood_test", "category")) == {SYNSETS.index(synset) for synset in synsets}


@pytest.mark.parametrize(
    ("split", "archive"), [("imagenet_a/adversarial@2", "imagenet-a"), ("imagenet_r/renditions@2", "imagenet-r")]
)
def test_both_tests_have_the_classes_of_the_published_protocol(place, tmp_path, split, archive):
    source = find_source(find_manifest(split).definition.source.name)
    tested = source.definition.distributions[0].options["where"]["synset"]
    assert len(set(tested)) == 200
    data = imagenet(tmp_path)
    files = {f"{archive}/{synset}/{synset}.jpg": picture(500 + n) for n, synset in enumerate(SYNSETS[1:])}
    (data / f"{archive}.tar").write_bytes(tar(files, mode="w"))
    result, parts = pulled(twin(split, place, options={"where": {"synset": SYNSETS[1:]}}), data)
    assert parts == {"train": 4, "id_test": 4, "ood_test": 2}
    for part in parts:
        assert set(values(result, part, "category")) == {0, 1}


@pytest.mark.parametrize(
    ("split", "name"),
    [
        ("imagenet_v2_matched_frequency/recollected", "imagenetv2-matched-frequency"),
        ("imagenet_v2_threshold/recollected", "imagenetv2-threshold0.7"),
        ("imagenet_v2_top_images/recollected", "imagenetv2-top-images"),
    ],
)
def test_folders_of_imagenet_v2_are_called_by_the_number_of_the_class(place, tmp_path, split, name):
    data = imagenet(tmp_path)
    files = {f"{name}-format-val/{n}/{n}.jpeg": picture(600 + n) for n in (0, 2, 10)}
    (data / f"{name}.tar.gz").write_bytes(tar(files))
    result, parts = pulled(twin(split, place), data)
    assert parts == {"train": 6, "id_test": 6, "ood_test": 3}
    assert values(result, "ood_test", "category") == [0, 2, 10]


def test_imagenet_c_is_five_archives_of_corruptions_and_severities(place, tmp_path):
    data = imagenet(tmp_path)
    kinds = {"noise": ["gaussian_noise"], "blur": ["glass_blur"], "weather": ["fog"], "digital": ["pixelate"]}
    number = 700
    for name, corruptions in (kinds | {"extra": ["spatter"]}).items():
        files = {}
        for corruption in corruptions:
            for severity in range(1, 6):
                for synset in SYNSETS:
                    files[f"{corruption}/{severity}/{synset}/val_{number}.JPEG"] = picture(number)
                    number += 1
        (data / f"{name}.tar").write_bytes(tar(files, mode="w"))
    result, parts = pulled(twin("imagenet_c/common", place), data)
    assert parts == {"train": 6, "id_test": 6, "ood_test": 60, "ood_val": 15}
    assert set(values(result, "ood_val", "corruption")) == {"spatter"}
    assert set(values(result, "ood_test", "strength")) == {"1", "2", "3", "4", "5"}


def test_tiny_imagenet_c_is_tested_by_the_classes_of_the_training_folders(place, tmp_path):
    train = {
        f"tiny-imagenet-200/train/{s}/images/{s}_{n}.JPEG": picture(10 * k + n)
        for k, s in enumerate(SYNSETS)
        for n in range(3)
    }
    train |= {f"tiny-imagenet-200/train/{s}/{s}_boxes.txt": b"x" for s in SYNSETS}
    train |= {"tiny-imagenet-200/val/images/val_0.JPEG": picture(99), "tiny-imagenet-200/wnids.txt": b"x"}
    test = {
        f"Tiny-ImageNet-C/fog/{v}/{s}/test_{v}.JPEG": picture(200 + 10 * k + v)
        for k, s in enumerate(SYNSETS)
        for v in range(1, 6)
    }
    laid(tmp_path / "data", {"tiny-imagenet-200.zip": zipped(train), "Tiny-ImageNet-C.tar": tar(test, mode="w")})
    result, parts = pulled(twin("tiny_imagenet_c/common", place), tmp_path / "data")
    assert parts == {"train": 9, "ood_test": 15}
    assert values(result, "ood_test", "category") == [0] * 5 + [1] * 5 + [2] * 5
