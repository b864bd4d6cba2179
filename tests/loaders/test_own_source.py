"""A split over data of one's own, by a ten-line file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import own_source
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomli_w
from encoded_files import folder, picture, tarred, zipped
from farshift import FarshiftError, load
from farshift.core.errors import BadData, BadDefinition, Unavailable
from farshift.core.progress import report_to
from farshift.loaders.acquire.own_data import Data
from farshift.loaders.acquire.source import read_source
from own_rows import DRAFT, texts
from own_source import pin_source
from support import Heard


@pytest.fixture
def home(tmp_path, cache):
    pq.write_table(texts(60), tmp_path / "rows-0.parquet")
    pq.write_table(texts(40, 60), tmp_path / "rows-1.parquet")
    (tmp_path / "long.toml").write_text(DRAFT)
    return tmp_path


def build(command, home: Path, *more: str):
    return command("splits", "build", home / "long.toml", "--out", home / "splits/manifests", "--json", *more)


def verified(command) -> list[dict]:
    return json.loads(command("splits", "verify", "mine/long", "--json").stdout)


def test_ten_lines_make_a_split_with_a_source_that_is_used_like_any_other(command, home, monkeypatch):
    frozen = json.loads(build(command, home).stdout)
    assert frozen["split"] == "mine/long@1"
    assert frozen["audit"]["why"] == "training reaches severity 10, ood_test begins at 11"
    again = json.loads(build(command, home).stdout)
    assert again["identity"] == frozen["identity"], "a second build uses the source as it was pinned"
    monkeypatch.setenv("FARSHIFT_PATH", str(home))
    assert load("mine/long", part="train").numpy(["text"])["text"][0].startswith("w")
    assert verified(command)[0]["state"] == "verified"
    source = read_source(home / "loaders/sources/mine.toml").definition
    assert source.rows == 100
    assert [(field.name, field.type, field.role) for field in source.fields] == [
        ("text", "string", "input"),
        ("topic", "int64", "label"),
        ("year", "int64", "meta"),
    ]


def test_the_source_has_a_place_to_lie_in(command, home):
    done = command("splits", "build", home / "long.toml", "--out", home / "elsewhere")
    assert done.returncode == 2
    assert "--out must end in splits/manifests" in done.stderr


def data(**changes) -> Data:
    output = {"files": ["rows-*.parquet"], "inputs": {"text": "The Text"}, "labels": ["topic"]}
    return Data.model_validate(output | changes)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"labels": ["topik"]}, r"rows-0\.parquet has no column 'topik' \(it has The Text, topic, year, tags\)"),
        (
            {"meta": ["tags"]},
            r"column 'tags' is list<.*no field type supports: read it as text with types = { tags = \"string\" }",
        ),
        ({"labels": ["topic"], "meta": ["topic"]}, "names the field 'topic' twice"),
        ({"inputs": ["text", "Review Text"]}, r'inputs = { text = "text", review_text = "Review Text" }$'),
        ({"meta": ["weight"]}, r'except row_id, .*: write meta = { x_weight = "weight" }$'),
        ({"classes": ["kinds"]}, r"\[data\] classes: there is no field 'kinds' \(fields: text"),
        (
            {"inputs": ["The Text"]},
            r"'The Text' is not a valid field name.*: write inputs = { the_text = \"The Text\" }$",
        ),
    ],
)
def test_data_that_do_not_fit_are_refused_before_anything_is_written(home, changes, complaint):
    with pytest.raises((BadDefinition, BadData), match=complaint):
        pin_source(data(**changes), "mine", home, home)
    assert not (home / "loaders").exists()


def test_files_that_are_not_there_are_named(home):
    with pytest.raises(Unavailable, match=r"no file .*/absent\.parquet"):
        pin_source(data(files=["absent.parquet"]), "mine", home, home)
    (home / "more").mkdir()
    pq.write_table(texts(5), home / "more" / "rows-0.parquet")
    with pytest.raises(BadDefinition, match=r"two files have the same name, rows-0\.parquet"):
        pin_source(data(files=["rows-*.parquet", "more/*.parquet"]), "mine", home, home)


def test_rows_that_changed_upstream_are_refused(command, home, monkeypatch):
    """The files behind a pinned source have other rows now."""
    assert build(command, home).returncode == 0
    monkeypatch.setenv("FARSHIFT_PATH", str(home))
    path = home / "loaders/sources/mine.toml"
    pq.write_table(texts(99), home / "rows-2.parquet")
    other = pin_source(data(files=["rows-2.parquet"], meta=["year"]), "other", home, home)
    old = tomllib.loads(path.read_text())
    old["distributions"] = tomllib.loads(other.path.read_text())["distributions"]
    path.write_text(tomli_w.dumps(old))
    monkeypatch.setenv("FARSHIFT_CACHE", str(home / "another-cache"))
    monkeypatch.setenv("FARSHIFT_MIRRORS", str(home))
    done = command("splits", "verify", "mine/long", "--json")
    assert done.returncode == 1
    assert "gives 99 rows of digest" in json.loads(done.stdout)[0]["why"]


def test_rows_that_are_equal_in_every_field_prove_too(command, home, monkeypatch):
    twice = pa.concat_tables([texts(60), texts(15).slice(3, 5)])
    pq.write_table(twice, home / "rows-0.parquet")
    done = build(command, home)
    assert done.returncode == 0, done.stderr
    monkeypatch.setenv("FARSHIFT_PATH", str(home))
    assert json.loads(done.stdout)["audit"]["duplicate_inputs"]["within"]["train"] == 5
    assert verified(command)[0]["state"] == "verified"


@pytest.mark.parametrize("name", ["My-Data", "../mine", ""])
def test_a_source_is_named_by_small_letters(home, name):
    with pytest.raises(BadDefinition, match="use lower-case letters, digits and _"):
        pin_source(data(), name, home, home)


PIN = """
import sys
from pathlib import Path
from farshift.loaders.acquire.own_data import Data
from own_source import pin_source
home = Path(sys.argv[1])
data = Data(files=["rows-*.parquet"], inputs={"text": "The Text"}, labels=["topic"])
print(len(pin_source(data, "mine", home, home).table()))
"""


def test_two_processes_that_pin_one_source_make_it_once(home):
    command, tests = [sys.executable, "-c", PIN, str(home)], str(Path(own_source.__file__).parent)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([tests, *filter(None, [os.environ.get("PYTHONPATH")])])}
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(2)]
    assert [process.communicate(timeout=180)[0] for process in started] == ["100\n", "100\n"]
    assert not list((home / "cache" / "sources").glob(".*.tmp"))


CSV = "id,text,stars,year,ok,price,kind\n" + "".join(
    f"{row:03},{' '.join('w' * (1 + row % 20))} {row},{row % 5},{2000 + row % 9},{row % 2 == 0},{row}.5,{'ab'[row % 2]}\n"
    for row in range(60)
)


def table_data(**changes) -> Data:
    output = {
        "files": ["rows.csv"],
        "inputs": ["text"],
        "labels": ["stars"],
        "meta": ["id", "year", "ok", "price", "kind"],
    }
    return Data.model_validate(output | changes)


def kinds(source) -> dict[str, str]:
    return {field.name: field.type for field in source.schema.fields}


KINDS = {
    "text": "string",
    "stars": "int64",
    "id": "string",  # 007 is not 7
    "year": "int64",
    "ok": "bool",
    "price": "float64",
    "kind": "string",
}


def test_a_csv_has_the_types_that_all_its_rows_look_like_and_they_are_told(home):
    (home / "rows.csv").write_text(CSV)
    output = Heard()
    with report_to(output):
        built = pin_source(table_data(), "mine", home, home)
    assert kinds(built) == KINDS
    assert "[data] read as text string (input), stars int64 (label), id string (meta)" in output.lines[1]
    assert "[data] id is text: numbers such as '000' begin with a zero" in output.lines[0]
    assert built.table().num_rows == 60
    assert kinds(pin_source(table_data(types={"stars": "string"}), "other", home, home))["stars"] == "string"
    (home / "rows.csv").write_text(CSV + "60,last,five,x,maybe,much,c\n")
    again = pin_source(table_data(), "again", home, home)
    assert kinds(again) == dict.fromkeys(KINDS, "string")
    (home / "rows.csv").write_text(CSV.split("\n")[0])
    with pytest.raises(FarshiftError, match=r"\[data\] rows\.csv has no rows, or `where`"):
        pin_source(table_data(), "empty", home, home)
    assert not (home / "loaders/sources/empty.toml").exists()


def test_several_columns_are_one_tensor(home):
    (home / "rows.csv").write_text(CSV)
    data = table_data(inputs={"x": ["price", "year"]}, meta=[])
    built = pin_source(data, "mine", home, home)
    assert kinds(built) == {"x": "float32[2]", "stars": "int64"}
    assert [0.5, 2000.0] in built.table()["x"].to_pylist()


NAMES = [f"{position}/{kind}/{n}.jpg" for position in ("farm", "zoo") for kind in ("cat", "dog") for n in range(4)]


PHOTOS = {name: picture(number) for number, name in enumerate(NAMES)}


def image_data(**changes) -> Data:
    output = {"images": "photos/{place}/{kind}/{file}", "inputs": ["image"], "labels": ["kind"], "meta": ["place"]}
    return Data.model_validate(output | changes)


@pytest.mark.parametrize("packed", ["folder", "zip", "tar.gz"])
def test_a_folder_or_an_archive_of_pictures_is_a_source(home, monkeypatch, packed):
    if packed == "folder":
        folder(home / "photos", PHOTOS)
        built = pin_source(image_data(), "mine", home, home)
    else:
        path = home / f"photos.{packed}"
        zipped(path, PHOTOS) if packed == "zip" else tarred(path, PHOTOS, "gz")
        built = pin_source(image_data(images=f"photos.{packed}/{{place}}/{{kind}}/{{file}}"), "mine", home, home)
    assert kinds(built) == {"image": "image", "kind": "int64", "place": "string"}
    rows = built.table().to_pylist()
    assert {(row["image"], row["kind"], row["place"]) for row in rows} == {
        (content, int("dog" in name), name.split("/")[0]) for name, content in PHOTOS.items()
    }
    assert built.definition.distributions[0].options["maps"] == {"kind": ["cat", "dog"]}
    monkeypatch.setenv("FARSHIFT_CACHE", str(home / "another-cache"))
    with pytest.raises(Unavailable, match=r"photos(\.\S+)? is not available"):
        read_source(built.path).table()
    assert read_source(built.path).table((home,)).num_rows == 16


def test_all_damaged_pictures_are_in_one_report_with_the_line_that_leaves_them_out(home):
    damaged = {f"zoo/cat/bad [{number}].jpg": PHOTOS["zoo/cat/1.jpg"][: -30 - number] for number in range(7)}
    folder(home / "photos", PHOTOS | damaged | {"farm/dog/empty.jpg": b""})
    with pytest.raises(FarshiftError, match=r"photos: 8 of 24 files are damaged, beginning with: farm/dog") as refused:
        pin_source(image_data(), "mine", home, home)
    output = str(refused.value)
    assert "farm/dog/empty.jpg has no bytes; zoo/cat/bad [0].jpg is cut off" in output
    assert output.count("\n") == 0
    first = tomllib.loads(output.split("leave them out with ")[1].split(", or keep")[0].replace(", ..]", "]"))[
        "options"
    ]
    assert first["ignore"][:2] == ["farm/dog/empty.jpg", "zoo/cat/bad [0].jpg"]
    built = pin_source(image_data(options={"ignore": ["bad*.jpg", "empty.jpg"]}), "mine", home, home)
    assert built.definition.rows == 16
    with pytest.raises(Unavailable, match=r"\[data\] no folder or archive .*pictures"):
        pin_source(image_data(images="pictures/{place}/{kind}/{file}"), "other", home, home)
    left = [*first["ignore"], "bad*[456].jpg", "bad ?[456]?.jpg"]
    assert pin_source(image_data(options={"ignore": left}), "mine", home, home).definition.rows == 16
