"""Sources derived from others: pictures under the common corruptions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
import tomli_w
from farshift import load
from farshift.core.errors import BadDefinition
from farshift.loaders.acquire.source import find_source, load_sources
from farshift.loaders.corrupt import corrupt
from farshift.loaders.derivations import corrupted_pictures
from farshift.loaders.freezing.freeze import freeze
from farshift.loaders.readers._arrow_types import to_tensor_column
from farshift.splits.rules.corruptions import corrupted
from farshift.splits.schema import Field, Schema

OPTIONS = {
    "image": "image",
    "published": "published",
    "train": "train",
    "test": "test",
    "validation": 30,
    "corruptions": ["contrast", "gaussian_noise"],
    "validation_corruptions": ["speckle_noise"],
    "seed": "s",
}


def schema(picture: str) -> Schema:
    fields = [("image", picture, "input"), ("what", "int64", "label")]
    fields += [("published", "string", "meta"), ("corruption", "string", "meta"), ("level", "int64", "meta")]
    return Schema(tuple(Field(*field) for field in fields))


def base(*shape: int, rows: int = 200) -> pa.Table:
    count = np.arange(rows, dtype=np.uint64)
    pictures = ((count[:, None] * 13 + np.arange(np.prod(shape), dtype=np.uint64)) % 251).astype(np.uint8)
    published = ["train" if number < rows // 2 else "test" for number in range(rows)]
    columns = {"image": to_tensor_column(pictures), "what": (count % 3).astype(np.int64), "published": published}
    return pa.table(columns | {"row_id": count * 7})


def derived(picture: str, *shape: int, order: slice = slice(None), **changes) -> pa.Table:
    table = base(*shape)
    table = table.take(np.arange(len(table))[order])
    return corrupted_pictures.rows(table, schema(picture), **(OPTIONS | changes))


def pixels(table: pa.Table, *shape: int) -> np.ndarray:
    return table["image"].combine_chunks().flatten().to_numpy().reshape(-1, *shape)


def test_test_pictures_are_dealt_out_evenly_to_corruptions_and_severities():
    table = derived("uint8[8,8]", 8, 8)
    cells = Counter(zip(*(table[name].to_pylist() for name in ("published", "corruption", "level")), strict=True))
    assert cells[("train", "none", 0)] == 70
    assert cells[("validation", "none", 0)] == 30 and cells[("test", "none", 0)] == 100
    for level in (1, 2, 3, 4, 5):
        assert cells[("validation", "speckle_noise", level)] == 6
        assert cells[("test", "contrast", level)] == cells[("test", "gaussian_noise", level)] == 10
    assert len(table) == 70 + 2 * 30 + 2 * 100


def test_every_corruption_at_every_severity():
    table = derived("uint8[8,8]", 8, 8, every=True)
    assert len(table) == 70 + 30 + 100 + 30 * 5 + 100 * 10


def test_test_pictures_are_drawn_where_none_are_published():
    table = derived("uint8[8,8]", 8, 8, test=60, published="", train="")
    assert Counter(table["published"].to_pylist()) == {"train": 110, "validation": 60, "test": 120}


def test_the_order_of_the_base_decides_nothing():
    def rows(table: pa.Table) -> list[str]:
        return sorted(map(str, table.to_pylist()))

    assert rows(derived("uint8[8,8]", 8, 8)) == rows(derived("uint8[8,8]", 8, 8, order=slice(None, None, -1)))


def test_channels_may_come_first_or_last():
    last = derived("uint8[8,8,3]", 8, 8, 3)
    table = base(8, 8, 3)
    first = np.moveaxis(pixels(table, 8, 8, 3), -1, 1)
    turned = table.set_column(0, "image", to_tensor_column(first))
    built = corrupted_pictures.rows(turned, schema("uint8[3,8,8]"), **OPTIONS)
    assert (np.moveaxis(pixels(built, 3, 8, 8), 1, -1) == pixels(last, 8, 8, 3)).all()


def test_encoded_pictures_are_decoded():
    from io import BytesIO

    from PIL import Image

    plain, files = base(8, 8, 3), []
    for picture in pixels(plain, 8, 8, 3):
        file = BytesIO()
        Image.fromarray(picture).save(file, "PNG")
        files.append(file.getvalue())
    encoded = plain.set_column(0, "image", pa.array(files, pa.binary()))
    built = corrupted_pictures.rows(encoded, schema("uint8[8,8,3]"), **OPTIONS)
    assert built.equals(derived("uint8[8,8,3]", 8, 8, 3))
    with pytest.raises(BadDefinition, match="decoded images are"):
        corrupted_pictures.rows(encoded, schema("uint8[3,8,8]"), **OPTIONS)


def test_noise_is_drawn_by_the_row_id_of_the_clean_picture():
    table = derived("uint8[8,8]", 8, 8, every=True)
    clean = base(8, 8)
    at = np.flatnonzero(np.array(table["corruption"]) == "gaussian_noise")[:100]
    ids = clean["row_id"].to_numpy()[100:]
    expected = corrupt(pixels(clean, 8, 8)[100:], "gaussian_noise", 1, ids)
    assert (pixels(table, 8, 8)[at] == expected).all()


def test_what_cannot_be_derived_is_refused():
    with pytest.raises(
        BadDefinition, match="100 training rows, 0 test rows, and 30 of the training rows for validation"
    ):
        derived("uint8[8,8]", 8, 8, test="later")
    with pytest.raises(BadDefinition, match=r"'image' is float32\[8,8\]"):
        derived("float32[8,8]", 8, 8)
    with pytest.raises(BadDefinition, match="has no field 'what'|has no field what"):
        corrupted_pictures.rows(base(8, 8).drop_columns(["what"]), schema("uint8[8,8]"), **OPTIONS)


def test_clean_rows_train_and_corrupted_ones_test():
    table = derived("uint8[8,8]", 8, 8)
    result = corrupted(table)
    assert Counter(result.part.tolist()) == {"train": 70, "id_val": 30, "ood_val": 30, "id_test": 100, "ood_test": 100}
    assert set(result.group[result.part == "ood_test"]) == {"contrast", "gaussian_noise"}
    assert result.severity is not None
    assert set(result.severity[result.part == "ood_test"]) == {1, 2, 3, 4, 5}
    assert set(result.severity[result.part == "train"]) == {0}
    wrong = pa.table({"published": ["train"], "corruption": ["fog"], "level": [1]})
    with pytest.raises(BadDefinition, match="rows are corrupted 'train': a row is train"):
        corrupted(wrong)


GENERATOR = """
import numpy as np
import pyarrow as pa
from farshift.core.draws import draw_below


def rows(*, count):
    number = np.arange(count)
    pictures = draw_below("tiny", np.arange(count * 64, dtype=np.uint64), 256).astype(np.uint8)
    image = pa.FixedSizeListArray.from_arrays(pa.array(pictures.ravel()), 64)
    return pa.table({"image": image, "what": number % 2, "published": ["train", "test"] * (count // 2)})
"""
HEAD = {"version": 1, "title": "Pictures", "licence": "CC0", "citation": "none"}
OWN = {"image": ("uint8[8,8]", "input"), "what": ("int64", "label"), "published": ("string", "meta")}
ADDED = {"corruption": ("string", "meta"), "level": ("int64", "meta")}
SPLIT = {"name": "tiny_corrupted/common", "version": 1, "kind": "domain", "title": "Tiny", "label": "what"}
SPLIT |= {"rule": "corruptions/corrupted", "source": {"name": "tiny_corrupted"}}


def write_source(home, name: str, fields: dict[str, tuple[str, str]], distribution: dict, **pin) -> None:
    listed = [{"name": field, "type": kind, "role": role} for field, (kind, role) in fields.items()]
    source = {"name": name, **HEAD, **pin, "fields": listed, "distributions": [distribution]}
    (home / f"loaders/sources/{name}.toml").write_text(tomli_w.dumps(source))


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home of one's own with a source of pictures, and what is derived from it."""
    for folder in ("loaders/sources", "loaders/generators"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "loaders/generators/tiny_pictures.py").write_text(GENERATOR)
    write_source(tmp_path, "tiny", OWN, {"name": "made", "generator": "tiny_pictures", "options": {"count": 240}})
    (tmp_path / "split.toml").write_text(tomli_w.dumps(SPLIT))
    write_derived(tmp_path, "tiny")
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    return tmp_path


def write_derived(home, of: str, **pin) -> None:
    options = OPTIONS | {"validation": 24, "corruptions": ["contrast", "fog"]}
    options |= {"validation_corruptions": ["gaussian_blur"]}
    derived = {"name": "derived", "of": of, "derivation": "corrupted_pictures", "options": options}
    write_source(home, "tiny_corrupted", OWN | ADDED, derived, **pin)


def test_a_source_of_ones_own_under_corruptions_in_a_split(home):
    from farshift.loaders.acquire.source import add_row_ids

    source = find_source("tiny_corrupted")
    assert not source.needs_network
    table, digest = add_row_ids(source.compute_rows(source.definition.distributions[0]), source.schema)
    write_derived(home, "tiny", rows=len(table), digest=digest)
    manifest, audit = freeze(home / "split.toml", home / "splits" / "manifests")
    rows = {"train": 96, "id_val": 24, "id_test": 120, "ood_val": 24, "ood_test": 120}
    assert audit["holds"] and audit["rows"] == rows
    part = load("tiny_corrupted/common", part="ood_test")
    assert set(part.row_metadata["group"]) == {"contrast", "fog"}
    assert set(part.row_metadata["severity"].tolist()) == {1, 2, 3, 4, 5}
    assert part.numpy(["image"])["image"].shape == (120, 8, 8)
    assert manifest.full_name == "tiny_corrupted/common@1"


def test_a_derived_source_names_another_that_is_not_derived_itself(home):
    write_derived(home, "tiny_corrupted")
    with pytest.raises(BadDefinition, match="`of` names another source, for a `derivation`"):
        load_sources()
    write_derived(home, "mnist_corrupted")
    with pytest.raises(BadDefinition, match="source mnist_corrupted is itself derived: name its base"):
        find_source("tiny_corrupted").table()


def test_a_share_of_the_pictures_is_drawn_and_stays_the_same_in_any_order():
    share = {"train": 50, "test": 20}
    table = derived("uint8[8,8]", 8, 8, share=share)
    cells = Counter(zip(*(table[name].to_pylist() for name in ("published", "corruption")), strict=True))
    assert cells == {
        ("train", "none"): 20, ("validation", "none"): 30, ("validation", "speckle_noise"): 30,
        ("test", "none"): 20, ("test", "contrast"): 10, ("test", "gaussian_noise"): 10,
    }  # fmt: skip
    again = derived("uint8[8,8]", 8, 8, share=share, order=slice(None, None, -1))
    assert sorted(map(str, table.to_pylist())) == sorted(map(str, again.to_pylist()))


@pytest.mark.parametrize("share", [{"train": 101}, {"test": 0}, {"validation": 3}])
def test_a_share_of_more_than_there_is_is_refused(share):
    with pytest.raises(BadDefinition, match="share"):
        derived("uint8[8,8]", 8, 8, share=share)
