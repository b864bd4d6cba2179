"""Tables with a file for each row, in the layouts of WILDS, Waterbirds and CelebA; and tables joined by a key."""

from __future__ import annotations

from pathlib import Path

import pytest
from encoded_files import folder, picture, sound, tarred, zipped
from farshift.core.errors import BadData, BadDefinition
from farshift.loaders.acquire.archive_files import open_archive
from farshift.loaders.readers.files_of_table import pieces, read
from farshift.loaders.readers.table import read as read_table
from farshift.splits.schema import Field, Schema

PATCHES = [("004", "4", x, hospital) for hospital in (1, 2) for x in (32, 64, 96)]
CAMELYON = {
    "metadata.csv": (
        ",patient,node,x_coord,tumor,clinic\n"
        + "".join(f"{row},{p},{n},{x},{x // 32 % 2},{c}\n" for row, (p, n, x, c) in enumerate(PATCHES[:3]))
        + "".join(f"{row + 3},{p},5,{x},1,{c}\n" for row, (p, n, x, c) in enumerate(PATCHES[3:]))
    ).encode()
} | {
    f"patches/patient_004_node_{4 if position < 3 else 5}/patch_x_{x}.png": picture(position, "PNG")
    for position, (_, _, x, _) in enumerate(PATCHES)
}
OPTIONS = {
    "file": "patches/patient_{patient}_node_{node}/patch_x_{x_coord}.png",
    "table": {"file": "metadata.csv", "columns": {"tumor": "tumor", "hospital": "clinic"}},
}
SCHEMA = Schema(
    (Field("image", "image", "input"), Field("tumor", "int64", "label"), Field("hospital", "string", "meta"))
)


def rows(files: dict, schema: Schema = SCHEMA, **options) -> list[dict]:
    result = schema.conform(read(files, schema=schema, **(OPTIONS | options)), "here")
    return sorted(result.to_pylist(), key=lambda row: row[schema.fields[0].name])


EXPECTED = sorted(
    (
        {"image": picture(position, "PNG"), "tumor": x // 32 % 2 if position < 3 else 1, "hospital": str(clinic)}
        for position, (_, _, x, clinic) in enumerate(PATCHES)
    ),
    key=lambda row: row["image"],
)


def test_pictures_and_their_table_come_from_one_archive_or_from_two(tmp_path):
    pictures = {name: content for name, content in CAMELYON.items() if name != "metadata.csv"}
    (tmp_path / "metadata.csv").write_bytes(CAMELYON["metadata.csv"])
    for files in (
        {"it.tar.gz": tarred(tmp_path / "it.tar.gz", CAMELYON, "gz")},
        {"it.zip": zipped(tmp_path / "it.zip", CAMELYON)},
        {"it": open_archive(folder(tmp_path / "it", CAMELYON))},
        {"p.tar": tarred(tmp_path / "p.tar", pictures), "metadata.csv": tmp_path / "metadata.csv"},
    ):
        assert rows(files) == EXPECTED


def test_a_row_that_names_no_file_is_counted_and_a_name_in_another_case_is_said(tmp_path):
    short = {name: content for name, content in CAMELYON.items() if "node_5" not in name}
    with pytest.raises(
        BadData,
        match=r"metadata\.csv names 3 of 6 files that are not in a\.zip: patches/patient_004_node_5/patch_x_32\.png, ",
    ):
        rows({"a.zip": zipped(tmp_path / "a.zip", short)})
    other = {name.replace("node_5", "Node_5"): content for name, content in CAMELYON.items()}
    with pytest.raises(
        BadData, match=r"\(there is patches/patient_004_Node_5/patch_x_32\.png, which differs by case only\)"
    ):
        rows({"b.zip": zipped(tmp_path / "b.zip", other)})
    with pytest.raises(BadData, match=r"no file meta\.csv: the files are metadata\.csv, patches/"):
        rows({"c.zip": zipped(tmp_path / "c.zip", CAMELYON)}, table={"file": "meta.csv"})


def test_a_picture_that_is_cut_off_or_empty_is_named(tmp_path):
    for content, problem in ((picture(3, "PNG")[:-5], "is cut off"), (b"", "has no bytes")):
        bad = CAMELYON | {"patches/patient_004_node_5/patch_x_64.png": content}
        files = {"a.tar": tarred(tmp_path / "a.tar", bad)}
        with pytest.raises(BadData, match=rf"^a\.tar: patches/patient_004_node_5/patch_x_64\.png {problem}"):
            rows(files)
        assert len(rows(files, accept=["*_x_64.png"])) == 6


def test_a_renamed_column_and_a_table_without_rows_are_named(tmp_path):
    renamed = CAMELYON | {"metadata.csv": CAMELYON["metadata.csv"].replace(b"tumor", b"tumour")}
    with pytest.raises(
        BadData,
        match=r"a\.zip: metadata\.csv has no column 'tumor' \(it has , patient, node, x_coord, tumour, clinic\)",
    ):
        rows({"a.zip": zipped(tmp_path / "a.zip", renamed)})
    with pytest.raises(BadDefinition, match="`table` needs `file`"):
        rows({}, table={})


def test_rows_are_named_by_their_place_as_in_fmow_and_several_rows_may_share_a_file(tmp_path):
    files = {
        "a.zip": zipped(
            tmp_path / "a.zip", {"m.csv": b"y\n1\n0\n", **{f"rgb_{n}.png": picture(n, "PNG") for n in (0, 1)}}
        )
    }
    schema = Schema((Field("image", "image", "input"), Field("y", "int64", "label"), Field("at", "string", "meta")))
    result = rows(files, schema, file="rgb_{#}.png", table={"file": "m.csv"}, path="at")
    assert {(row["at"], row["y"], row["image"]) for row in result} == {
        ("rgb_0.png", 1, picture(0, "PNG")),
        ("rgb_1.png", 0, picture(1, "PNG")),
    }
    assert [row["at"] for row in rows(files, schema, file="rgb_0.png", table={"file": "m.csv"}, path="at")] == [
        "rgb_0.png"
    ] * 2


def test_sounds_and_other_files_belong_to_rows_too(tmp_path):
    files = {"a.zip": zipped(tmp_path / "a.zip", {"m.csv": b"f\na\n", "a.wav": sound(1)})}
    schema = Schema((Field("audio", "audio", "input"), Field("f", "string", "meta")))
    assert rows(files, schema, file="{f}.wav", table={"file": "m.csv"}, field="audio", kind="audio") == [
        {"audio": sound(1), "f": "a"}
    ]
    raw = Schema((Field("raw", "bytes", "input"), Field("f", "string", "meta")))
    assert rows(files, raw, file="{f}.wav", table={"file": "m.csv"}, field="raw", kind="bytes")[0]["raw"] == sound(1)
    with pytest.raises(BadData, match=r"a\.zip: a\.wav is not an image"):
        rows(files, raw, file="{f}.wav", table={"file": "m.csv"}, field="raw")


def test_celeba_has_its_labels_and_parts_in_two_tables_in_any_order(tmp_path):
    (tmp_path / "attr.txt").write_text("2\nBlond Male\n000001.jpg  1 -1\n000002.jpg -1  1\n")
    (tmp_path / "parts.txt").write_text("000002.jpg 2\n000003.jpg 1\n000001.jpg 0\n")
    pictures = {f"img/00000{number}.jpg": picture(number) for number in (1, 2, 3)}
    files = {
        "attr.txt": tmp_path / "attr.txt",
        "parts.txt": tmp_path / "parts.txt",
        "img.zip": zipped(tmp_path / "img.zip", pictures),
    }
    spaces = {"format": "csv", "separator": "spaces"}
    table = {
        "file": "attr.txt",
        "skip": 2,
        "header": ["image_id", "blond", "male"],
        "join": [{"file": "parts.txt", "on": "image_id", "header": ["image_id", "partition"], **spaces}],
        "maps": {"published": {"0": "train", "1": "val", "2": "test"}, "blond": ["-1", "1"]},
        "columns": {"blond": "blond", "published": "partition"},
        **spaces,
    }
    schema = Schema(
        (Field("image", "image", "input"), Field("blond", "int64", "label"), Field("published", "string", "meta"))
    )
    result = rows(files, schema, file="img/{image_id}", table=table)
    assert {(row["image"], row["blond"], row["published"]) for row in result} == {
        (picture(1), 1, "train"),
        (picture(2), 0, "test"),
    }


@pytest.fixture
def regions(tmp_path) -> dict[str, Path]:
    (tmp_path / "rows.csv").write_text("code,n\nFRA,1\nXXX,2\nDEU,3\nFRA,4\n")
    (tmp_path / "codes.csv").write_text("alpha-3,region,n\nDEU,Europe,0\nFRA,Europe,0\nUSA,Americas,0\n")
    return {name: tmp_path / name for name in ("rows.csv", "codes.csv")}


def test_a_joined_table_gives_its_columns_by_a_key_and_what_is_not_in_it_is_missing(regions):
    join = [{"file": "codes.csv", "on": {"code": "alpha-3"}, "prefix": "its_"}]
    columns = {"n": "n", "region": "its_region"}
    with pytest.raises(BadData, match=r"^rows\.csv, line 3: region \(column 'its_region'\) is missing"):
        read_table(regions, columns=columns, join=join)
    assert read_table(regions, columns=columns, join=join, if_missing={"region": "Other"}).to_pydict() == {
        "n": ["1", "2", "3", "4"],
        "region": ["Europe", "Other", "Europe", "Europe"],
    }


def test_a_join_that_is_not_one_to_one_is_refused(regions):
    with pytest.raises(
        BadDefinition, match=r"rows\.csv has a column 'n', and so has codes\.csv: rename that one with `prefix`"
    ):
        read_table(regions, columns={"n": "n"}, join=[{"file": "codes.csv", "on": {"code": "alpha-3"}}])
    with pytest.raises(BadData, match=r"rows\.csv has several rows whose 'code' is 'FRA'"):
        read_table(regions, join=[{"file": "rows.csv", "on": {"alpha-3": "code"}}])
    with pytest.raises(BadData, match=r"no file Codes\.csv \(codes\.csv differs by case only\)"):
        read_table(regions, join=[{"file": "Codes.csv", "on": "code"}])


def test_the_pieces_together_are_every_row_once(tmp_path, monkeypatch):
    monkeypatch.setattr("farshift.loaders.readers._layout._PIECE", 1500)
    tables = list(pieces({"it.tar": tarred(tmp_path / "it.tar", CAMELYON)}, schema=SCHEMA, **OPTIONS))
    assert len(tables) > 1
    assert sum(table.num_rows for table in tables) == 6
