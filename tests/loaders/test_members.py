"""The files of folders, zips and tars: the same whatever they are packed in, and nothing that leads out or explodes."""

from __future__ import annotations

import os
import stat
import subprocess
import tarfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from encoded_files import folder, tarred, zipped
from farshift.core import limits
from farshift.core.errors import BadData
from farshift.core.progress import report_to
from farshift.loaders.acquire.archive_files import open_archive
from farshift.loaders.acquire.trees import list_tree_hashes

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
