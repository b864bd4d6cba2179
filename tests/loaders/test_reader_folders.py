"""Pictures and sounds in folders and archives: what their paths say, and that a file that is not whole is named."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pytest
from encoded_files import folder, picture, sound, tarred, zipped
from farshift.core.errors import BadData, BadDefinition
from farshift.loaders.acquire.archive_files import open_archive
from farshift.loaders.readers import _layout, image_folder
from farshift.loaders.readers._file_checks import find_audio_problem, find_image_problem
from PIL import Image

PATTERN = "{domain}/{category}/{file}"
PLACES = [(domain, kind, number) for domain in ("photo", "sketch") for kind in ("dog", "horse") for number in (0, 1)]
PACS = {
    f"{domain}/{kind}/pic_{number:03}.{'JPG' if number else 'png'}": picture(position, "JPEG" if number else "PNG")
    for position, (domain, kind, number) in enumerate(PLACES)
}


def rows(files: dict[str, Path], **options) -> list[dict]:
    return pa.concat_tables(image_folder.read(files, **{"pattern": PATTERN} | options)).to_pylist()


def by_path(found: list[dict]) -> dict[str, dict]:
    return {row["path"]: row for row in found}


def test_a_folder_a_zip_and_tars_give_the_same_rows(tmp_path):
    tree = folder(tmp_path / "kfold", PACS)
    copies = [open_archive(tree), zipped(tmp_path / "a.zip", PACS)]
    copies += [tarred(tmp_path / f"a.tar.{kind}", PACS, kind) for kind in ("gz", "zst", "xz", "bz2")]
    for copy in [*copies, tarred(tmp_path / "a.tar", PACS)]:
        result = by_path(rows({"it": copy}, path="path"))
        assert {path: row["image"] for path, row in result.items()} == PACS
        item = result["sketch/horse/pic_001.JPG"]
        assert (item["domain"], item["category"], item["file"]) == ("sketch", "horse", "pic_001.JPG")


def test_parts_become_fields_of_other_names_and_labels(tmp_path):
    files = {"a.zip": zipped(tmp_path / "a.zip", {f"all/{path}": content for path, content in PACS.items()})}
    options = {"folder": "all", "fields": {"label": "category", "name": "category"}, "constants": {"set": "PACS"}}
    result = rows(files, maps={"label": ["horse", "dog"]}, **options)
    assert {(row["label"], row["name"], row["set"]) for row in result} == {(0, "horse", "PACS"), (1, "dog", "PACS")}
    assert list(result[0]) == ["image", "label", "name", "set"]
    assert {row["label"] for row in rows(files, maps={"label": {"dog": 7, "horse": 9}}, **options)} == {7, 9}
    result = rows(files, maps={"label": "sorted"}, **options)
    assert {(row["label"], row["name"]) for row in result} == {(0, "dog"), (1, "horse")}
    with pytest.raises(
        BadData, match=r"a\.zip/all: photo/horse/pic_000\.png has the category 'horse', which is not one of dog"
    ):
        rows(files, maps={"label": ["dog"]}, **options)


def test_sorted_places_are_those_of_all_archives_together(tmp_path):
    """A class that one domain lacks does not shift the labels of that domain."""
    files = {
        "clipart.zip": zipped(
            tmp_path / "clipart.zip", {"ant/1.png": picture(1, "PNG"), "bee/1.png": picture(2, "PNG")}
        ),
        "sketch.zip": zipped(tmp_path / "sketch.zip", {"bee/1.png": picture(3, "PNG")}),
    }
    each = {"clipart.*": {"constants": {"domain": "clipart"}}, "sketch.zip": {"constants": {"domain": "sketch"}}}
    result = rows(files, pattern="{label}/{file}", maps={"label": "sorted"}, each=each)
    assert [(row["domain"], row["label"]) for row in result] == [("clipart", 0), ("clipart", 1), ("sketch", 1)]


def test_files_are_chosen_by_their_parts_and_others_have_to_be_named(tmp_path):
    files = {"a.zip": zipped(tmp_path / "a.zip", PACS | {"photo/list.txt": b"", "README": b"", ".DS_Store": b""})}
    with pytest.raises(
        BadData, match=r"a\.zip: 2 of 10 files do not fit .*: README, photo/list\.txt; leave them out with"
    ):
        rows(files)
    ignore = ["*.txt", "README"]
    assert len(rows(files, ignore=ignore)) == 8
    result = rows(files, ignore=ignore, where={"domain": "photo"}, without={"category": ["dog"]}, path="path")
    assert sorted(by_path(result)) == ["photo/horse/pic_000.png", "photo/horse/pic_001.JPG"]
    with pytest.raises(BadData, match=r"a\.zip has no file that fits"):
        rows(files, ignore=ignore, where={"domain": "art"})


def test_tables_are_of_bounded_size(tmp_path, monkeypatch):
    monkeypatch.setattr(_layout, "_PIECE", 2000)
    tables = list(image_folder.read({"a.zip": zipped(tmp_path / "a.zip", PACS)}, pattern=PATTERN))
    assert len(tables) > 2
    assert sum(table.num_rows for table in tables) == 8


@pytest.mark.parametrize("form", ["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF"])
def test_a_whole_picture_is_whole_and_a_piece_of_it_is_not(form):
    content = picture(3, form)
    assert find_image_problem(content) == ""
    assert find_image_problem(content + b"\0" * 5) == ""
    for length in (len(content) - 20, len(content) // 2, 30):
        assert "cut off" in find_image_problem(content[:length]), length


def test_a_jpeg_with_a_thumbnail_is_cut_off_behind_the_thumbnails_end():
    out, exif = io.BytesIO(), Image.Exif()
    exif[0x010E] = "made here"
    Image.open(io.BytesIO(picture(1, side=64))).save(out, "JPEG", progressive=True, exif=exif.tobytes() + picture(2))
    content = out.getvalue()
    assert content.count(b"\xff\xd9") == 2
    assert find_image_problem(content) == ""
    assert find_image_problem(content[:-30]) == "is cut off: a JPEG without an end marker"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "has no bytes"),
        (b"\0" * 900, "is not an image .*: it begins with 00 00"),
        (bytes(range(200)), "is not an image"),
        (
            picture(1, "PNG").replace(b"IDAT", b"IDAB"),
            "is a damaged PNG: the checksum of its 'IDAB' at byte 33 differs",
        ),
        (b"<html>not found</html>", "is not an image"),
    ],
)
def test_a_damaged_picture_is_named_with_its_path(tmp_path, content, problem):
    files = {"a.zip": zipped(tmp_path / "a.zip", PACS | {"photo/dog/bad.jpg": content})}
    with pytest.raises(BadData, match=rf"^a\.zip: photo/dog/bad\.jpg {problem}"):
        rows(files)
    assert len(rows(files, accept=["photo/dog/bad.*"])) == 9, "a picture that is published so"


def test_folders_that_differ_by_case_only_are_named(tmp_path):
    files = {"a.zip": zipped(tmp_path / "a.zip", PACS | {"photo/Dog/1.png": picture(1, "PNG")})}
    with pytest.raises(BadData, match=r"a\.zip: the category 'Dog' and the category 'dog' differ by case only"):
        rows(files)
    assert {row["category"] for row in rows(files, maps={"category": [["dog", "Dog"], "horse"]})} == {0, 1}


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"pattern": "{domain}/{domain}"}, r"names \{domain\} twice"),
        ({"pattern": "{Domain}/{file}"}, r"a part is \{name\} or \{name:REGEX\}"),
        ({"pattern": "{a:[}/{file}"}, "unterminated character set"),
        ({"fields": {"label": "klass"}}, r"has no part \{klass\}"),
        (
            {"maps": {"label": "sorted"}},
            r"maps\.label: no field has this name \(the fields are domain, category, file\)",
        ),
        ({"where": {"label": "a"}}, r"has no part \{label\}"),
        ({"endings": ["png"]}, "a folder of files: option endings: no such key: choose from "),
    ],
)
def test_options_that_are_none_are_refused(tmp_path, options, complaint):
    with pytest.raises(BadDefinition, match=complaint):
        rows({"a.zip": zipped(tmp_path / "a.zip", PACS)}, **options)


def test_sounds_are_named_by_their_paths_and_have_to_be_whole(tmp_path):
    digits = {f"recordings/{digit}_{who}_0.wav": sound(digit) for digit in (3, 7) for who in ("ann", "bob")}
    files = {"it.zip": zipped(tmp_path / "it.zip", digits | {"README.md": b""})}
    options = {"folder": "recordings", "pattern": "{digit:[0-9]}_{speaker}_{take}.wav"}
    result = pa.concat_tables(image_folder.wav(files, **options)).to_pylist()
    assert {(row["digit"], row["speaker"]) for row in result} == {
        ("3", "ann"),
        ("3", "bob"),
        ("7", "ann"),
        ("7", "bob"),
    }
    assert {row["audio"] for row in result} == {sound(3), sound(7)}
    for content, problem in (
        (sound()[:-7], "is cut off: a WAV of 77 bytes whose header says 84"),
        (sound()[:40], "is cut off: a WAV without samples"),
        (b"", "has no bytes"),
        (b"RIFX", "is not an audio file"),
    ):
        assert problem in find_audio_problem(content)
        files = {"bad.zip": zipped(tmp_path / "bad.zip", digits | {"recordings/1_ann_0.wav": content})}
        with pytest.raises(BadData, match=r"bad\.zip/recordings: 1_ann_0\.wav (is|has) "):
            list(image_folder.wav(files, **options))
