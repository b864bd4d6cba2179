"""A source, a split, a benchmark and a baseline from a folder of one's own: one file each, as CONTRIBUTING.md says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support import ROOT, one_line_error


def documented(folder: Path) -> Path:
    """The example files of CONTRIBUTING.md, laid out as it says: a fenced block whose first line names its file."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    blocks = re.findall(r"```(?:toml|python)\n# (\S+)\n(.*?)```", text, re.DOTALL)
    for name, content in blocks:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    folder = documented(tmp_path / "home")
    monkeypatch.setenv("FARSHIFT_PATH", str(folder))
    return folder


def test_the_examples_of_the_guide_work_as_printed(home, command, command_json, tmp_path):
    source = home / "loaders" / "sources" / "hundreds.toml"
    draft = home / "hundreds-far.toml"
    manifests = home / "splits" / "manifests"
    refused = one_line_error(command("splits", "build", draft, "--out", manifests))
    rows, digest = re.search(r'add rows = (\d+) and digest = "([0-9a-f]{64})"', refused).groups()
    source.write_text(
        source.read_text().replace("version = 1\n", f'version = 1\nrows = {rows}\ndigest = "{digest}"\n', 1)
    )
    built = command_json("splits", "build", draft, "--out", manifests)
    assert built["audit"]["holds"]

    names = {item["name"] for item in command_json("splits", "list")}
    assert {"hundreds/far", "scan/length"} <= names
    assert command_json("splits", "verify", "hundreds/far")[0]["state"] == "verified"
    assert "tree" in {item["name"] for item in command_json("baselines", "list")}
    run = command_json("run", "tree", "--on", "hundreds/far", "--seeds", 2, "--out", tmp_path / "run")
    assert run["score"]["id"]["value"] > run["score"]["ood"]["value"]
    command_json("pack", tmp_path / "run", "--out", tmp_path / "s.zip")
    command_json("board", "init", tmp_path / "board")
    command_json("submit", tmp_path / "s.zip", "--to", tmp_path / "board")
    assert command_json("board", "verify", tmp_path / "board")["verified"]


@pytest.mark.parametrize(
    ("file", "old", "new", "words", "complaint"),
    [
        (
            "loaders/sources/hundreds.toml",
            "title",
            "titles",
            ["doctor", "--sources"],
            "titles: no such key: did you mean title?",
        ),
        ("loaders/sources/hundreds.toml", '"int64"', '"integer"', ["doctor", "--sources"], "unknown type 'integer'"),
        (
            "loaders/sources/hundreds.toml",
            'name = "hundreds"',
            'name = "scan"',
            ["doctor", "--sources"],
            "exists already",
        ),
        ("loaders/sources/hundreds.toml", "[[", "[", ["doctor", "--sources"], "not valid TOML"),
        (
            "benchmarks/definitions/hundreds-far.toml",
            "[views]",
            "[viewing]",
            ["run", "tree", "--on", "scan/length", "--out", "r"],
            "viewing",
        ),
        (
            "baselines/recipes/tree.toml",
            "max_depth",
            "max_dept",
            ["run", "tree", "--on", "modadd97/xi35", "--out", "r"],
            "max_dept",
        ),
        (
            "baselines/recipes/tree.toml",
            "citation",
            "quotation",
            ["baselines", "list"],
            "tree.toml: citation: Field required",
        ),
    ],
)
def test_a_file_with_a_mistake_is_named(home, command, tmp_path, file, old, new, words, complaint):
    path = home / file
    path.write_text(path.read_text().replace(old, new, 1))
    arguments = [str(tmp_path / "r") if argument == "r" else argument for argument in words]
    assert complaint in one_line_error(command(*arguments))
