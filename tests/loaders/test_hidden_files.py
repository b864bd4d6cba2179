"""Files that notebooks, Macs and Windows leave beside data: left out and counted, whatever the data lie in."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from encoded_files import folder, picture, tarred, zipped
from farshift.core.progress import report_to
from farshift.loaders.acquire.archive_files import open_archive
from farshift.loaders.acquire.own_data import Data
from farshift.loaders.acquire.trees import fetch_tree, list_tree_hashes
from farshift.splits.manifest import TreePin
from own_source import pin_source

PICTURES = {
    f"photos/{site}/{kind}/{number}.png": picture(ord(site) * 100 + ord(kind[0]) + number, "PNG", 4)
    for site in "AB"
    for kind in ("cat", "dog")
    for number in (1, 2)
}
HIDDEN = {
    "photos/A/.ipynb_checkpoints/1.png": picture(0, "PNG", 4),
    "photos/.DS_Store": b"\0",
    "photos/A/cat/._1.png": b"\0\5\x16\7",
    "photos/A/cat/Thumbs.db": b"\0",
    "photos/B/dog/desktop.ini": b"\0",
    "__MACOSX/photos/A/cat/._1.png": b"\0\5\x16\7",
}


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("kind", ["folder", "zip", "tar.gz"])
def test_pictures_have_no_class_of_hidden_files_and_their_number_is_said_once(tmp_path, kind):
    archive = tmp_path / f"p.{kind}"
    if kind == "folder":
        folder(archive, PICTURES | HIDDEN)
    else:
        zipped(archive, PICTURES | HIDDEN) if kind == "zip" else tarred(archive, PICTURES | HIDDEN, "gz")
    images = f"{archive.name}/photos/{{site}}/{{y}}/{{file}}"
    lines: list[str] = []
    with report_to(SimpleNamespace(say=lines.append, advance=lambda *_: None)):
        data = Data(images=images, inputs=["image"], labels=["y"], meta=["site"])
        source = pin_source(data, "mine", tmp_path, tmp_path)
    assert source.definition.rows == len(PICTURES)
    assert source.class_names("y") == ["cat", "dog"]
    assert [line for line in lines if "hidden" in line] == (
        [f"{tmp_path}/p.folder/photos: 5 hidden files are ignored, such as .DS_Store"]
        if kind == "folder"
        else [f"p.{kind}: 6 hidden files are ignored, such as __MACOSX/photos/A/cat/._1.png"]
    )


@pytest.mark.usefixtures("cache")
def test_a_table_of_an_archive_is_the_one_that_is_not_hidden(tmp_path):
    rows = b"x,y,site\n" + b"".join(b"t%d,%d,A\n" % (row, row % 2) for row in range(9))
    zipped(tmp_path / "t.zip", {"t.csv": rows, "__MACOSX/._t.csv": b"\0", "._t.csv": b"\0", ".cache/u.csv": b"\0"})
    lines: list[str] = []
    with report_to(SimpleNamespace(say=lines.append, advance=lambda *_: None)):
        data = Data(files=["t.zip"], inputs=["x"], labels=["y"], meta=["site"])
        assert pin_source(data, "mine", tmp_path, tmp_path).definition.rows == 9
    assert [line for line in lines if "hidden" in line] == ["t.zip: 3 hidden files are ignored, such as ._t.csv"]


@pytest.mark.usefixtures("cache")
def test_a_folder_is_the_pinned_one_with_hidden_files_and_without(tmp_path):
    clean = folder(tmp_path / "clean", PICTURES)
    dirty = folder(tmp_path / "dirty", PICTURES | HIDDEN)
    published = folder(tmp_path / "published", PICTURES | {"photos/.gitattributes": b"*.png binary\n"})
    for pinned, count, copies in (
        (open_archive(clean), len(PICTURES), (clean, dirty, published)),
        (open_archive(published), len(PICTURES) + 1, (published,)),
    ):
        pin = TreePin(name="photos", tree=list_tree_hashes(pinned.subdir("photos"))[0][0], files=count)
        for copy in copies:
            assert fetch_tree(pin, (copy,))[1].visible().names() == sorted(path[7:] for path in PICTURES), copy


@pytest.mark.usefixtures("cache")
def test_a_draft_pins_no_hidden_file(tmp_path):
    pins = []
    for name, files in (("one", PICTURES), ("two", PICTURES | HIDDEN)):
        home = folder(tmp_path / name, files)
        data = Data(images="photos/{site}/{y}/{file}", inputs=["image"], labels=["y"], meta=["site"])
        pins.append(pin_source(data, "mine", home, home).definition)
    assert pins[0] == pins[1]
