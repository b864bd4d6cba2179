"""The files of folders, zips and tars: the same whatever holds them, none hidden, and nothing that leads out."""

from __future__ import annotations

import os
import stat
import subprocess
import tarfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from encoded_files import folder, picture, tarred, zipped
from farshift.core import limits
from farshift.core.errors import BadData
from farshift.core.progress import report_to
from farshift.loaders.acquire import archive_files
from farshift.loaders.acquire.archive_files import open_archive
from farshift.loaders.acquire.own_data import Data
from farshift.loaders.acquire.trees import fetch_tree, list_tree_hashes
from farshift.splits.manifest import TreePin
from own_source import pin_source

FILES = {
    "photo/dog/1.jpg": b"one",
    "photo/dog/2.jpg": b"two" * 999,
    "photo/Dog.txt": b"",
    "a b/ü.csv": b"n\n1\n",
    "README": bytes(range(256)),
}


KINDS = ["folder", "zip", "tar", "tar.gz", "tar.bz2", "tar.xz", "tar.zst"]


def packed(where: Path, kind: str, files: dict[str, bytes] = FILES) -> Path:
    if kind == "folder":
        return folder(where / "it", files)
    path = where / f"it.{kind}"
    return zipped(path, files) if kind == "zip" else tarred(path, files, kind.removeprefix("tar").removeprefix("."))


@pytest.mark.parametrize("kind", KINDS)
def test_every_way_of_packing_gives_the_same_files(tmp_path, kind):
    with open_archive(packed(tmp_path, kind)) as locked:
        assert locked.names() == sorted(FILES)
        assert dict(locked.walk()) == FILES
        assert dict(locked.walk()) == FILES, "as often as one likes"
        assert dict(locked.walk(lambda name: name.endswith(".jpg"))) == {
            name: FILES[name] for name in ("photo/dog/1.jpg", "photo/dog/2.jpg")
        }
        assert locked.read("a b/ü.csv") == b"n\n1\n"
        below = locked.subdir("photo/dog")
        assert dict(below.walk(lambda name: name != "1.jpg")) == {"2.jpg": b"two" * 999}
        assert (below.names(), below.read("1.jpg")) == (["1.jpg", "2.jpg"], b"one")
        assert locked.subdir("") is locked
        for absent in ("photo", "photo/dog/3.jpg", "../README"):
            with pytest.raises(BadData, match=r"it(\.\S+)? has no file"):
                locked.read(absent)
        with pytest.raises(BadData, match=r"it(\.\S+)? has no folder sketch"):
            locked.subdir("sketch")


@pytest.mark.parametrize("kind", KINDS)
def test_what_an_operating_system_leaves_is_no_member(tmp_path, kind):
    desktop_files = {".DS_Store": b"x", "photo/Thumbs.db": b"x", "photo/desktop.ini": b"x"}
    desktop_files |= {"__MACOSX/photo/._1.jpg": b"x"} if kind != "folder" else {".git/HEAD": b"x"}
    assert open_archive(packed(tmp_path, kind, FILES | desktop_files)).names() == sorted(FILES)


HIDDEN = {
    "photo/.ipynb_checkpoints/1-checkpoint.jpg": b"x",
    "photo/dog/._1.jpg": b"x",
    "photo/@eaDir/1.jpg": b"x",
    "photo/dog/Desktop.ini": b"x",
    ".gitattributes": b"x",
}


@pytest.mark.parametrize("kind", KINDS)
def test_hidden_files_are_members_as_git_has_them_and_no_data(tmp_path, kind):
    locked = open_archive(packed(tmp_path, kind, FILES | HIDDEN | {".DS_Store": b"x", "photo/Thumbs.db": b"x"}))
    assert locked.names() == sorted(FILES | HIDDEN)
    seen = locked.visible()
    assert (seen.names(), dict(seen.walk())) == (sorted(FILES), FILES)
    assert seen.read(".gitattributes") == b"x", "by its name"
    assert seen.subdir("photo").names() == locked.subdir("photo").visible().names()
    lines = []
    with report_to(SimpleNamespace(say=lines.append)):
        locked.announce_hidden()
        locked.subdir("photo/dog").announce_hidden()
        seen.announce_hidden()
    assert lines == [
        f"{locked.where}: 7 hidden files are ignored, such as .DS_Store",
        f"{locked.where}/photo/dog: 2 hidden files are ignored, such as ._1.jpg",
    ]


def with_link(path: Path, kind: int, target: str) -> Path:
    with tarfile.open(path, "w") as archive:
        info = tarfile.TarInfo("photo/link")
        info.type, info.linkname = bytes([kind]), target
        archive.addfile(info)
    return path


@pytest.mark.parametrize("kind", [ord(b) for b in "12346"], ids=["hard", "soft", "character", "block", "fifo"])
def test_links_and_devices_in_a_tar_are_refused(tmp_path, kind):
    with pytest.raises(
        BadData, match=r"a\.tar: photo/link is a link, a device or sparse: only regular files are supported"
    ):
        open_archive(with_link(tmp_path / "a.tar", kind, "/etc/passwd"))


def test_a_link_in_a_zip_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        info = zipfile.ZipInfo("photo/link")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(BadData, match=r"a\.zip: photo/link is a link"):
        open_archive(tmp_path / "a.zip")


def test_a_link_in_a_folder_may_stay_inside_and_not_lead_out(tmp_path):
    tree = folder(tmp_path / "tree", {"a.txt": b"a"})
    (tree / "b.txt").symlink_to("a.txt")
    assert dict(open_archive(tree).walk()) == {"a.txt": b"a", "b.txt": b"a"}
    (tmp_path / "secret").write_bytes(b"s")
    for name, target in (("c.txt", "../secret"), ("d", tmp_path), ("e.txt", "/etc/hostname"), ("f.txt", "nothing")):
        (tree / name).symlink_to(target)
        if name != "f.txt":
            with pytest.raises(
                BadData, match=rf"tree/{name} is a link to a file outside .*tree: replace it by the file itself"
            ):
                open_archive(tree)
        else:
            assert "f.txt" not in open_archive(tree).names(), "a link to nothing is no file"
        (tree / name).unlink()


@pytest.mark.parametrize(
    "name", ["../out", "a/../../out", "/etc/passwd", "a//b", "C:/windows", "..\\out", "a\\b", "a/./b", "a/.."]
)
@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_names_that_lead_out_are_refused(tmp_path, kind, name):
    with pytest.raises(BadData, match=rf"it\.{kind}: the path .* is invalid or leaves the archive"):
        open_archive(packed(tmp_path, kind, {"fine": b"", name: b"x"}))


def test_a_name_that_begins_with_a_dot_and_a_slash_is_the_plain_one(tmp_path):
    locked = open_archive(tarred(tmp_path / "a.tar", {"./photo/1.jpg": b"1", "./2": b"2"}))
    assert (locked.names(), locked.read("photo/1.jpg")) == (["2", "photo/1.jpg"], b"1")


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar.zst"])
def test_an_archive_that_would_grow_beyond_reason_is_refused(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(limits, "EXPANDED_BYTES", 2 << 20)
    assert open_archive(packed(tmp_path, kind, {"a": b"\0" * (1 << 20)})).names() == ["a"], "below, nobody asks"
    monkeypatch.setattr(archive_files, "MEMBERS", 2)
    with pytest.raises(BadData, match=rf"it\.{kind} has over 2 files: divide it"):
        open_archive(packed(tmp_path, kind, dict.fromkeys("abc", b"")))
    monkeypatch.undo()
    monkeypatch.setattr(limits, "EXPANDED_BYTES", 2 << 20)
    bomb = packed(tmp_path, kind, {f"{number}": b"\0" * (1 << 20) for number in range(4)})
    with pytest.raises(BadData, match=rf"it\.{kind} unpacks to more than [\d,]+ bytes from [\d,]+: refused"):
        open_archive(bomb)


def test_a_zip_that_says_less_than_it_holds_is_refused(tmp_path):
    """The sizes of the directory are what the size of a bomb is judged by: they cannot be lied about."""
    path = zipped(tmp_path / "a.zip", {"a": b"\0" * 5000})
    content = path.read_bytes()
    path.write_bytes(content.replace((5000).to_bytes(4, "little"), (50).to_bytes(4, "little")))
    with pytest.raises(BadData, match=r"a\.zip: a cannot be read: Bad CRC-32"):
        open_archive(path).read("a")


@pytest.mark.parametrize("kind", KINDS[1:])
def test_an_archive_that_is_cut_off_or_none_is_one_error(tmp_path, kind):
    files = {"a": os.urandom(50_000), "b": os.urandom(50_000)}
    path = packed(tmp_path, kind, files)
    full = path.read_bytes()
    for content in (
        full[: len(full) // 3],
        b"<html>not found</html>" * 99,
        b"PK\x03\x04" + bytes(999),
        b"\x1f\x8b" + bytes(99),
    ):
        path.write_bytes(content)
        with pytest.raises(BadData, match=rf"it\.{kind} is (not a readable|truncated)"), open_archive(path) as locked:
            list(locked.walk())


def test_a_zip_with_a_password_says_so(tmp_path):
    path = zipped(tmp_path / "a.zip", {"a": b"secret"})
    content = bytearray(path.read_bytes())
    content[6] |= 1  # the flag of the file's own head, and of the directory
    content[content.rfind(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(BadData, match=r"a\.zip: a cannot be read: .*(encrypted|password)"):
        open_archive(path).read("a")


def test_a_file_that_may_not_be_read_is_named(tmp_path):
    tree = folder(tmp_path / "tree", {"a/b.txt": b"a"})
    locked = open_archive(tree)
    (tree / "a" / "b.txt").unlink()
    with pytest.raises(BadData, match=r"tree/a/b\.txt cannot be read: No such file"):
        list(locked.walk())


def git(where: Path, *command: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(where), "-c", "core.autocrlf=false", *command], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


TREES = {
    "plain": {"a.txt": b"a", "b/c.txt": b"c", "b/d/e.txt": b"", "b.txt": b"sorted after b/"},
    "odd names": {"b-": b"1", "b/x": b"2", "b0": b"3", "ü/ñ": b"4", "a b": b"5", "B": b"6", "b.": b"7"},
    "many": {f"{number % 7}/{number:03}": bytes([number]) for number in range(200)},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tree", TREES)
def test_the_hash_of_a_tree_is_gits(tmp_path, tree, kind):
    repository = folder(tmp_path / "repository", TREES[tree])
    git(repository, "init", "-q")
    git(repository, "add", "-A")
    expected = git(repository, "write-tree")
    hashes, count, total = list_tree_hashes(open_archive(packed(tmp_path, kind, TREES[tree])))
    assert expected in hashes
    assert (count, total) == (len(TREES[tree]), sum(map(len, TREES[tree].values())))
    assert expected in list_tree_hashes(open_archive(repository))[0], "the folder .git is no part of it"


def test_files_that_may_be_run_have_another_hash_and_a_zip_may_have_lost_who(tmp_path):
    files = {"run.sh": b"#!/bin/sh\n", "data/a.txt": b"a"}
    repository = folder(tmp_path / "repository", files)
    (repository / "run.sh").chmod(0o755)
    git(repository, "init", "-q")
    git(repository, "add", "-A")
    expected = git(repository, "write-tree")
    assert list_tree_hashes(open_archive(repository))[0][0] == expected
    git(repository, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "it")
    for kind in ("zip", "tar.gz"):
        git(repository, "archive", f"--format={kind}", "--prefix=it-1/", "-o", str(tmp_path / f"a.{kind}"), "HEAD")
        hashes = list_tree_hashes(open_archive(tmp_path / f"a.{kind}").subdir("it-1"))[0]
        assert hashes[0] == expected, kind
    every = folder(tmp_path / "all", files)
    for path in every.rglob("*"):
        path.chmod(0o755)
    git(every, "init", "-q")
    git(every, "add", "-A")
    assert git(every, "write-tree") in list_tree_hashes(open_archive(zipped(tmp_path / "lost.zip", files)))[0]


PICTURES = {
    f"photos/{site}/{kind}/{number}.png": picture(ord(site) * 100 + ord(kind[0]) + number, "PNG", 4)
    for site in "AB"
    for kind in ("cat", "dog")
    for number in (1, 2)
}


LEFT_BEHIND = {
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
        folder(archive, PICTURES | LEFT_BEHIND)
    else:
        zipped(archive, PICTURES | LEFT_BEHIND) if kind == "zip" else tarred(archive, PICTURES | LEFT_BEHIND, "gz")
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
    dirty = folder(tmp_path / "dirty", PICTURES | LEFT_BEHIND)
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
    for name, files in (("one", PICTURES), ("two", PICTURES | LEFT_BEHIND)):
        home = folder(tmp_path / name, files)
        data = Data(images="photos/{site}/{y}/{file}", inputs=["image"], labels=["y"], meta=["site"])
        pins.append(pin_source(data, "mine", home, home).definition)
    assert pins[0] == pins[1]
