"""Folders of many files, pinned by git's hash: had as one archive from GitHub, from git, or as the user has them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from encoded_files import folder, picture, tarred
from farshift.core.errors import Unavailable
from farshift.loaders.acquire.trees import fetch_tree
from farshift.splits.manifest import TreePin
from servers import serve_folder

FILES = {
    f"{domain}/{kind}/{number}.jpg": picture(position, "JPEG")
    for position, (domain, kind, number) in enumerate(
        (domain, kind, number) for domain in ("photo", "sketch") for kind in ("dog", "horse") for number in (0, 1)
    )
}


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path, cache):
    """A repository with the pictures below PACS/, its commit, and git's hash of that folder."""
    root = folder(tmp_path / "repository", {f"PACS/{name}": content for name, content in FILES.items()})
    (root / "README.md").write_text("pictures")
    git(root, "init", "--quiet")
    git(root, "add", "-A")
    git(root, "commit", "--quiet", "-m", "pictures")
    return root, git(root, "rev-parse", "HEAD"), git(root, "rev-parse", "HEAD:PACS")


@pytest.fixture
def github(repository, tmp_path, monkeypatch):
    """A server that gives archives as GitHub does: of the whole repository, in one outer folder."""
    root, commit, _ = repository
    served = tmp_path / "served/owner/name/archive"
    served.mkdir(parents=True)
    git(root, "archive", "--format=tar.gz", f"--prefix=name-{commit}/", f"--output={served / commit}.tar.gz", commit)

    with serve_folder(tmp_path / "served") as site:
        monkeypatch.setenv("FARSHIFT_GITHUB", f"{site.url}/")
        yield site


def pin(repository, *mirrors, **other) -> TreePin:
    return TreePin(**{"name": "PACS", "tree": repository[2], "files": len(FILES), "mirrors": list(mirrors)} | other)


def on_github(repository):
    return {"sort": "github", "repo": "owner/name", "commit": repository[1], "folder": "PACS"}


def test_one_request_brings_a_tree_from_github_and_the_cache_keeps_it(repository, github):
    for _ in range(2):
        _, files = fetch_tree(pin(repository, on_github(repository)))
        assert dict(files.walk()) == FILES
    assert [path for path, *_ in github.asked] == [f"/owner/name/archive/{repository[1]}.tar.gz"]


def test_the_trees_of_one_archive_are_downloaded_once(repository, github):
    for domain in ("photo", "sketch"):
        mirror = on_github(repository) | {"folder": f"PACS/{domain}"}
        tree = git(repository[0], "rev-parse", f"HEAD:PACS/{domain}")
        _, files = fetch_tree(pin(repository, mirror, name=domain, tree=tree, files=4))
        assert dict(files.walk()) == {
            name.removeprefix(f"{domain}/"): content for name, content in FILES.items() if name.startswith(domain)
        }
    assert len(github.asked) == 1


def test_git_brings_the_commit_of_any_address(repository):
    mirror = {"sort": "git", "repository": f"file://{repository[0]}", "commit": repository[1], "folder": "PACS"}
    _, files = fetch_tree(pin(repository, mirror))
    assert dict(files.walk()) == FILES


def test_an_archive_with_other_pictures_is_not_kept(repository, github, tmp_path):
    others = {f"name-{repository[1]}/PACS/{name}": content + b"\0" for name, content in FILES.items()}
    github.files = dict.fromkeys(github.files, tarred(tmp_path / "other.tar", others).read_bytes())
    with pytest.raises(Unavailable, match="has 8 files .* of another tree hash"):
        fetch_tree(pin(repository, on_github(repository)))
    git_too = {"sort": "git", "repository": f"file://{repository[0]}", "commit": repository[1], "folder": "PACS"}
    _, files = fetch_tree(pin(repository, on_github(repository), git_too))
    assert dict(files.walk()) == FILES


def test_the_users_copy_is_read_where_it_lies(repository, tmp_path):
    folder, commit, _ = repository
    for copy in (folder / "PACS", folder):
        _, files = fetch_tree(pin(repository), (copy,))
        assert dict(files.walk()) == FILES
    git(folder, "archive", "--format=zip", f"--output={tmp_path / 'mine'}.zip", commit)
    (tmp_path / "archives").mkdir()
    (tmp_path / "mine.zip").rename(tmp_path / "archives/mine.zip")
    assert dict(fetch_tree(pin(repository), (tmp_path / "archives",))[1].walk()) == FILES


def test_a_copy_without_a_file_says_how_many_there_are(repository):
    folder = repository[0] / "PACS"
    (folder / "photo/dog/0.jpg").unlink()
    with pytest.raises(
        Unavailable, match=r"PACS has 7 files, but PACS has 8.*a folder that FARSHIFT_MIRRORS names .git tree"
    ):
        fetch_tree(pin(repository), (folder,))
