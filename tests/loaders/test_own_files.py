"""Splits of files of one's own that are not CSV: databases, workbooks, arrays, texts, and files that a table names."""

from __future__ import annotations

import gzip
import json
import sqlite3
import zipfile
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from encoded_files import folder, picture, sound
from farshift.benchmarks.boxes import read_boxes
from farshift.core.documents import parse_messages
from farshift.core.errors import FarshiftError, MissingGeneratorPackage
from farshift.loaders.acquire.own_data import Data
from farshift.loaders.acquire.source import Source
from farshift.loaders.freezing.freeze import freeze, read_drafts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from own_source import pin_source
from pydantic import ValidationError

ROWS = [(f"text {number}", number % 3, f"site{number // 15}") for number in range(60)]
FIELDS = {"inputs": ["text"], "labels": ["stars"], "meta": ["site"]}


def pin(home: Path, name: str = "own", **data) -> Source:
    return pin_source(Data(**{**FIELDS, **data}), name, home, home)


def read_rows(source: Source) -> list[tuple]:
    table = source.table()
    return sorted(zip(*(table[field.name].to_pylist() for field in source.schema.fields), strict=True))


def write_database(path: Path, rows=ROWS, tables=("reviews",)) -> Path:
    database = sqlite3.connect(path)
    for table in tables:
        database.execute(f"CREATE TABLE [{table}] (text TEXT, stars INTEGER, site TEXT, picture BLOB)")
        database.executemany(f"INSERT INTO [{table}] VALUES (?, ?, ?, ?)", [(*row, b"\0\xff") for row in rows])
    database.execute("CREATE VIEW every AS SELECT * FROM sqlite_master")
    database.commit()
    database.close()
    return path


@pytest.fixture
def home(tmp_path, cache) -> Path:
    return tmp_path


def test_a_database_is_a_table(home):
    write_database(home / "own.db")
    source = pin(home, files=["own.db"])
    assert read_rows(source) == sorted(ROWS)
    assert [field.type for field in source.schema.fields] == ["string", "int64", "string"]
    (home / "own.db").write_bytes(b"")  # the rows are pinned, and cached
    assert read_rows(source) == sorted(ROWS)


def test_a_compressed_database_is_read_in_memory(home):
    write_database(home / "plain.db")
    (home / "own.db.gz").write_bytes(gzip.compress((home / "plain.db").read_bytes()))
    assert read_rows(pin(home, files=["own.db.gz"])) == sorted(ROWS)


def test_a_database_whose_last_rows_are_in_a_log_beside_it_is_refused_until_they_are_in_it(home):
    writer = sqlite3.connect(write_database(home / "own.db", ROWS[:30]))
    writer.execute("PRAGMA journal_mode = WAL")
    writer.executemany("INSERT INTO reviews VALUES (?, ?, ?, NULL)", ROWS[30:])
    writer.commit()
    with pytest.raises(FarshiftError, match=r"still in own\.db-wal, .* sqlite3 own\.db 'PRAGMA wal_checkpoint"):
        pin(home, files=["own.db"])
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert read_rows(pin(home, files=["own.db"])) == sorted(ROWS)
    writer.close()
    (home / "own.db.gz").write_bytes(gzip.compress((home / "own.db").read_bytes()))
    assert read_rows(pin(home, files=["own.db.gz"])) == sorted(ROWS)


def test_a_table_of_several_is_chosen(home):
    write_database(home / "own.sqlite", tables=("reviews", 'odd "name"'))
    with pytest.raises(
        FarshiftError, match=r'has 2 tables \(odd "name", reviews\): name one with options = \{ records'
    ):
        pin(home, files=["own.sqlite"])
    with pytest.raises(FarshiftError, match="has no table 'every'"):  # a view
        pin(home, files=["own.sqlite"], options={"records": "every"})
    assert len(read_rows(pin(home, files=["own.sqlite"], options={"records": 'odd "name"'}))) == 60


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
            st.integers(-(2**63), 2**63 - 1),
            st.floats(allow_nan=False, allow_infinity=False),
        ),
        min_size=1,
        max_size=20,
    )
)
def test_a_database_and_parquet_of_the_same_rows_are_the_same_source(rows, tmp_path_factory):
    home = tmp_path_factory.mktemp("rows")
    database = sqlite3.connect(home / "own.db")
    database.execute("CREATE TABLE reviews (text TEXT, stars INTEGER, site REAL)")
    database.executemany("INSERT INTO reviews VALUES (?, ?, ?)", rows)
    database.commit()
    database.close()
    text, stars, site = zip(*rows, strict=True)
    table = {"text": text, "stars": pa.array(stars, pa.int64()), "site": pa.array(site, pa.float64())}
    pq.write_table(pa.table(table), home / "own.parquet")
    types = {"types": {"text": "string", "stars": "int64", "site": "float64"}}
    digests = {pin(home, name, files=[f"own.{name}"], **types).definition.digest for name in ("db", "parquet")}
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([("a", None, "x"), ("b", 1, "y")], "row 1: stars is missing: set `if_missing`"),
        ([(b"\xff", 1, "x")], "row 1: text is binary: save its values as files"),
    ],
)
def test_a_cell_that_cannot_be_used_is_named_by_its_row(home, rows, complaint):
    write_database(home / "own.db", rows)
    with pytest.raises(FarshiftError, match=complaint):
        pin(home, files=["own.db"], types={"stars": "int64"})


def test_values_that_are_not_in_the_database_are_bounded(home):
    database = sqlite3.connect(home / "own.db")
    made = "text TEXT GENERATED ALWAYS AS (hex(zeroblob(length)))"
    database.execute(f"CREATE TABLE reviews (length INTEGER, stars INTEGER, site TEXT, {made})")
    database.execute("INSERT INTO reviews VALUES (5000000, 1, 'a')")
    database.commit()
    database.close()
    with pytest.raises(FarshiftError, match="own.db: not a readable SQLite database: string or blob too big"):
        pin(home, files=["own.db"])


@pytest.mark.parametrize("name", ["own.db", "own.npz", "own.xlsx"])
@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0" + bytes(50), b"text,stars,site\na,1,b\n", b"PK\3\4 cut"])
def test_a_file_of_another_format_is_refused(home, name, content):
    if name == "own.xlsx":
        pytest.importorskip("openpyxl")
    (home / name).write_bytes(content)
    with pytest.raises(FarshiftError, match=name) as caught:
        pin(home, files=[name])
    assert "\n" not in str(caught.value)


def test_a_workbook_is_a_table(home):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "notes"
    sheet = book.create_sheet("reviews")
    for row in [["text", "stars", "site", "sold"], *([*row, datetime(2024, 5, 1)] for row in ROWS), [None] * 4]:
        sheet.append(row)
    book.save(home / "own.xlsx")
    with pytest.raises(FarshiftError, match=r"has 2 sheets \(notes, reviews\)"):
        pin(home, files=["own.xlsx"])
    source = pin(home, files=["own.xlsx"], options={"records": "reviews"}, meta=["site", "sold"])
    assert [row[:3] for row in read_rows(source)] == sorted(ROWS)
    assert source.schema["sold"].type == "timestamp"
    sheet["B3"] = None
    book.save(home / "own.xlsx")
    with pytest.raises(FarshiftError, match="own.xlsx, row 3: stars is missing"):
        pin(home, "other", files=["own.xlsx"], options={"records": "reviews"})


def test_a_workbook_names_the_extra_that_reads_it(home, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with zipfile.ZipFile(home / "own.xlsx", "w"):
        pass
    with pytest.raises(MissingGeneratorPackage, match=r"farshift\[excel\]"):
        pin(home, files=["own.xlsx"])


def test_arrays_are_columns_of_their_own_types(home):
    draws = np.random.default_rng(0)
    pixels = draws.integers(0, 255, (60, 4, 5, 3), dtype=np.uint8)
    np.savez_compressed(
        home / "own.npz",
        pixels=pixels,
        halves=draws.normal(size=(60, 2)).astype(np.float16),
        stars=(np.arange(60) % 3).astype(">i4"),
        site=np.array([row[2] for row in ROWS]),
        unused=np.arange(7),
    )
    source = pin(home, files=["own.npz"], inputs=["pixels", "halves"])
    kinds = {field.name: field.type for field in source.schema.fields}
    assert kinds == {"pixels": "uint8[4,5,3]", "halves": "float32[2]", "stars": "int64", "site": "string"}
    stored = np.asarray(source.table()["pixels"].to_pylist(), np.uint8)
    assert {row.tobytes() for row in stored} == {row.tobytes() for row in pixels}
    with pytest.raises(FarshiftError, match=r"different numbers of rows \(.*unused 7"):
        pin(home, "other", files=["own.npz"], inputs=["pixels", "unused"])


@pytest.mark.parametrize(
    ("array", "complaint"),
    [
        (np.array([None, 1], object), "not a readable"),
        (np.zeros(2, complex), "complex128"),
        (np.array([["a"], ["b"]]), "2 axes cannot be a column"),
    ],
)
def test_an_array_that_is_no_column_is_refused(home, array, complaint):
    np.savez(home / "own.npz", text=array, stars=np.arange(2), site=np.arange(2))
    with pytest.raises(FarshiftError, match=complaint):
        pin(home, files=["own.npz"])


TEXTS = {f"{site}/{stars}/{number}.txt": f"{site} {stars}\nno. {number}\n".encode() for site in "ab" for stars in "pq" for number in range(6)}  # fmt: skip
PATTERN = {"texts": "mails/{site}/{stars}/{file}"}


def test_texts_of_one_name_in_folders_of_their_classes_are_rows(home):
    folder(home / "mails", TEXTS)
    source = pin(home, **PATTERN)
    assert source.class_names("stars") == ["p", "q"]
    expected = {(text.decode(), "pq".index(name.split("/")[1]), name[0]) for name, text in TEXTS.items()}
    assert {*read_rows(source)} == expected
    with pytest.raises(FarshiftError, match=r"two files have the same name, 0.txt.*texts = "):
        pin(home, "other", files=["mails/*/*/*.txt"])


def test_texts_have_an_encoding_and_may_have_no_suffix(home):
    folder(home / "mails", {name.removesuffix(".txt"): text + b"\xe9" for name, text in TEXTS.items()})
    options = {"suffixes": [""]}
    with pytest.raises(FarshiftError, match=r'is not utf-8 text \(byte 10; options = \{ encoding = "latin-1" \}\)'):
        pin(home, **PATTERN, options=options)
    source = pin(home, **PATTERN, options={**options, "encoding": "latin-1"})
    assert all(row[0].endswith("é") for row in read_rows(source))
    with pytest.raises(FarshiftError, match="unknown encoding 'klingon'"):
        pin(home, "other", **PATTERN, options={**options, "encoding": "klingon"})


PICTURES = {f"{number % 2}/{number}.png": picture(number) for number in range(20)}
LISTED = {"files": ["labels.csv"], "inputs": ["image"]}


def write_list(home: Path, paths, name: str = "labels.csv") -> None:
    lines = [f"{path},{number % 3},site{number // 10}" for number, path in enumerate(paths)]
    (home / name).write_text("\n".join(["file,stars,site", *lines]) + "\n")


@pytest.mark.parametrize(
    ("before", "pattern"),
    [("", "photos/{file}"), ("photos/", "{file}"), ("photos\\", "./{file}"), ("./photos/", "{file}")],
)
def test_pictures_that_a_table_names_are_rows_with_their_bytes(home, before, pattern):
    folder(home / "photos", PICTURES)
    write_list(home, (before + name for name in PICTURES))
    source = pin(home, **LISTED, images=pattern)
    assert source.schema["image"].type == "image"
    expected = {(content, number % 3, f"site{number // 10}") for number, content in enumerate(PICTURES.values())}
    assert {*read_rows(source)} == expected
    (tree,) = source.definition.distributions[0].trees
    assert (tree.name, tree.files) == ("photos", 20)
    assert [row[0] for row in read_rows(source)] == [row[0] for row in sorted(expected)]


def test_pictures_that_a_table_names_may_be_in_an_archive_and_in_several_rows(home):
    with zipfile.ZipFile(home / "photos.zip", "w") as archive:
        for name, content in PICTURES.items():
            archive.writestr(f"all/{name}", content)
    write_list(home, [*PICTURES, *PICTURES])
    source = pin(home, **LISTED, images="photos.zip/all/{file}")
    assert len(read_rows(source)) == 40
    assert [item.name for item in source.definition.distributions[0].files] == ["labels.csv", "photos.zip"]


def test_sounds_and_texts_that_a_table_names_are_rows(home):
    folder(home / "clips", {f"{number}.wav": sound(300 + number) for number in range(20)})
    folder(home / "notes", {f"{number}.txt": f"note {number}".encode() for number in range(20)})
    write_list(home, (f"clips/{number}.wav" for number in range(20)), "sounds.csv")
    write_list(home, (str(number) for number in range(20)), "notes.csv")
    heard = pin(home, "heard", files=["sounds.csv"], audio="{file}", inputs=["audio"])
    assert {row[0] for row in read_rows(heard)} == {sound(300 + number) for number in range(20)}
    read = pin(home, "read", files=["notes.csv"], texts="notes/{file}.txt")
    assert {row[0] for row in read_rows(read)} == {f"note {number}" for number in range(20)}


def test_audio_in_folders_keeps_its_bytes_and_what_its_paths_say(home):
    names = [f"{site}/{word}/{n}.wav" for site in ("ann", "bob") for word in ("no", "yes") for n in range(6)]
    clips = {name: sound(300 + number) for number, name in enumerate(names)}
    folder(home / "clips", clips)
    listed = {"audio": "clips/{site}/{stars}/{file}", "inputs": ["audio"]}
    source = pin(home, **listed)
    assert source.schema["audio"].type == "audio"
    assert {*read_rows(source)} == {(clips[name], int("yes" in name), name[:3]) for name in names}
    for changes, complaint in (
        ({"inputs": ["file"]}, r'no field for the audio clip itself: add it by inputs = \["audio"\]'),
        ({"audio": "clips/{site}/*/{file}"}, r"has no part \{stars\} \(it has \{site\}, \{file\}\)"),
        ({"classes": ["audio"]}, "classes: 'audio' is not a field of a part"),
        ({"images": "clips/{file}"}, "give `files`, or one of `images`, `audio` and `texts`"),
        ({"hub": "owner/name"}, "`audio` is for local files"),
    ):
        with pytest.raises((FarshiftError, ValidationError), match=complaint):
            pin(home, "other", **{**listed, **changes})
    (home / "clips/bob/no/3.wav").write_bytes(picture())
    with pytest.raises(FarshiftError, match="bob/no/3.wav"):
        pin(home, "other", **listed)


@pytest.mark.parametrize(
    ("paths", "pattern", "complaint"),
    [
        (["0/0.png", "none.png"], "photos/{file}", r"photos has no file none.png \(1 of 2 are missing\)"),
        (["0/0.png"], "elsewhere/{file}", "no folder or archive .*elsewhere"),
        (["photos/0/0.png", "labels.csv"], "{file}", "are not in one folder beside the draft"),
        (["/photos/0/0.png"], "{file}", "are not in one folder beside the draft"),
        (["../photos/0/0.png"], "{file}", "are not in one folder beside the draft"),
        (["0/0.png", ""], "photos/{file}", "photos has no file"),
        (["0/0.png"], "photos/{name}", r"has no column 'name' \(it has file, stars, site\)"),
        (["cut.png"], "photos/{file}", "cut.png is cut off"),
    ],
)
def test_files_that_cannot_be_read_are_named(home, paths, pattern, complaint):
    folder(home / "photos", {**PICTURES, "cut.png": picture()[:30]})
    write_list(home, paths)
    with pytest.raises(FarshiftError, match=complaint) as caught:
        pin(home, **LISTED, images=pattern)
    assert "\n" not in str(caught.value)


def test_a_listed_source_is_read_again_from_a_copy_in_another_place(home, monkeypatch):
    folder(home / "photos", PICTURES)
    write_list(home, PICTURES)
    source = pin(home, **LISTED, images="photos/{file}")
    (home / "copy").mkdir()
    for name in ("photos", "labels.csv"):
        (home / name).rename(home / "copy" / name)
    monkeypatch.setenv("FARSHIFT_CACHE", str(home / "cache2"))
    assert source.table((home / "copy",)).num_rows == 20
    assert json.loads(json.dumps(source.definition.distributions[0].options["tables"])) == ["labels.csv"]


def write_draft(home: Path, rule: str, parameters: str, label: str = "topic") -> Path:
    rows = [f"a{n // 10} b{n % 10},{('news', 'sport', 'art')[n % 3]},{('a', 'b')[n // 3 % 2]}" for n in range(60)]
    (home / "own.csv").write_text("\n".join(["text,topic,site", *rows]) + "\n")
    (home / "draft.toml").write_text(f"""
name = "own/held"
version = 1
kind = "{"compositional" if rule.startswith("factors") else "domain"}"
title = "A class that is held out"
label = "{label}"
rule = "{rule}"
parameters = {{ {parameters} }}
data = {{ files = ["own.csv"], inputs = ["text"], labels = ["topic"], meta = ["site"] }}
""")
    return home / "draft.toml"


def test_a_class_of_the_label_is_held_out_by_its_name(home):
    path = write_draft(home, "domain/hold_out", 'field = "topic", ood = ["sport"]')
    manifest, _ = freeze(path, home / "splits" / "manifests")
    assert manifest.definition.label_names == ["art", "news", "sport"]
    assert {name: pin.rows for name, pin in manifest.definition.parts.items()} == {"train": 40, "ood_test": 20}
    assert manifest.definition.parameters["ood"] == ["2"]


def test_a_combination_with_a_class_is_held_out_by_its_name(home):
    path = write_draft(home, "factors/combination", 'factors = ["site", "topic"], values = [["b", "sport"]]')
    assert read_drafts(path)[0].parameters["values"] == [["b", "sport"]]
    manifest, _ = freeze(path, home / "splits" / "manifests")
    assert manifest.definition.parts["ood_test"].rows == 10


def test_a_class_that_there_is_none_of_is_refused(home):
    path = write_draft(home, "domain/hold_out", 'field = "topic", ood = ["sports"]')
    with pytest.raises(FarshiftError, match="no class of topic named 'sports': did you mean sport?"):
        freeze(path, home / "splits" / "manifests")


CHATS = [
    [{"role": "system", "content": "Be kind."}] * (number % 2)
    + [{"role": "user", "content": f"Nr. {number}, ünïcode"}, {"role": "assistant", "content": "Yes?"}]
    for number in range(30)
]
TYPED = {"inputs": ["messages"], "labels": ["stars"], "meta": [], "types": {"messages": "messages"}}


def test_chats_are_a_typed_field_alike_in_json_lines_and_parquet(home):
    rows = [{"messages": chat, "stars": number % 3} for number, chat in enumerate(CHATS)]
    (home / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), home / "own.parquet")
    lines = pin(home, "lines", **TYPED, files=["own.jsonl"])
    assert lines.schema["messages"].type == "messages"
    assert sorted(map(parse_messages, lines.table()["messages"].to_pylist()), key=str) == sorted(CHATS, key=str)
    assert pin(home, "parquet", **TYPED, files=["own.parquet"]).definition.digest == lines.definition.digest


@pytest.mark.parametrize(
    "wrong", [[], "text", {"role": "user", "content": "a"}, [{"from": "human", "value": "a"}], [1]]
)
def test_what_is_no_chat_is_refused_with_its_line(home, wrong):
    rows = [{"messages": chat, "stars": 0} for chat in (CHATS[0], wrong)]
    (home / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(
        FarshiftError, match=r"own.jsonl, line 2: messages is not a chat, a list of \{ role, content \}"
    ):
        pin(home, **TYPED, files=["own.jsonl"])


COCO = {
    "images": [{"id": 7, "file_name": "0/0.png", "site": "a"}, {"id": 9, "file_name": "1/1.png", "site": "b"}],
    "categories": [{"id": 90, "name": "dog"}, {"id": 3, "name": "cat"}],
    "annotations": [
        {"image_id": 7, "category_id": 90, "bbox": [1, 2, 3.5, 4]},
        {"image_id": 7, "category_id": 3, "bbox": [0.1, 0, 0.2, 1], "iscrowd": 0},
        {"image_id": 7, "category_id": 3, "bbox": [0, 0, 9, 9], "iscrowd": 1},
    ],
}
DETECTION = {
    "files": ["own.json"],
    "images": "photos/{file_name}",
    "inputs": ["image"],
    "labels": ["boxes"],
    "types": {"boxes": "string"},
    "options": {"format": "coco"},
}


def test_boxes_of_coco_are_joined_to_their_images(home):
    folder(home / "photos", PICTURES)
    (home / "own.json").write_text(json.dumps(COCO))
    expected = [(PICTURES["0/0.png"], "1 2 4.5 6 1;0.1 0 0.3 1 0", "a"), (PICTURES["1/1.png"], "", "b")]
    rows = read_rows(pin(home, **DETECTION))
    assert rows == sorted(expected)
    boxes = read_boxes(dict((row[2], row[1]) for row in rows)["a"], scored=False)
    assert boxes.classes.tolist() == [1, 0] and boxes.corners.tolist()[0] == [1, 2, 4.5, 6]
    (home / "own.json").write_text(
        json.dumps({**COCO, "categories": COCO["categories"][:1], "annotations": COCO["annotations"][:1]})
    )
    assert [row[1] for row in read_rows(pin(home, "one", **DETECTION)) if row[2] == "a"] == ["1 2 4.5 6"]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"images": None}, "no lists 'images' and 'annotations', so it is not a COCO file"),
        (
            {"annotations": [{"image_id": 7, "category_id": 3, "bbox": [1, 2, -3, 4]}]},
            "annotation 1: .* is not x, y, width",
        ),
        ({"annotations": [{"image_id": 8, "category_id": 3, "bbox": [1, 2, 3, 4]}]}, "not a COCO file: KeyError: 8"),
        ({"annotations": [{"image_id": 7, "category_id": 3, "bbox": [1, 2]}]}, "not a COCO file: ValueError"),
        ({"images": [1]}, "not a COCO file: TypeError"),
    ],
)
def test_a_file_that_is_not_coco_is_refused(home, changes, complaint):
    folder(home / "photos", PICTURES)
    (home / "own.json").write_text(json.dumps({**COCO, **changes}))
    with pytest.raises(FarshiftError, match=f"own.json.*{complaint}"):
        pin(home, **DETECTION)
