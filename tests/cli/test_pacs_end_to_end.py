"""Pictures in PACS' layout, from the files to a page of a board: made ones, and the true ones where they are at hand."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from encoded_files import folder, picture
from farshift import read_run
from support import SHARED

TRUE = SHARED / "github" / "MachineLearning2020+Homework3-PACS" / "PACS"
DOMAINS = ("art_painting", "cartoon", "photo", "sketch")
CATEGORIES = ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person")
SPLIT = """
name = "pacs_small/sketch"
version = 1
kind = "domain"
title = "Tested on sketches"
label = "category"
rule = "domain/hold_out"
parameters = { field = "domain", ood = ["sketch"] }
data = { images = "PACS/{domain}/{category}/{file}", inputs = ["image"], labels = ["category"], meta = ["domain"] }
benchmark = {}
"""


@pytest.mark.parametrize("files", ["made", pytest.param("true", marks=pytest.mark.slow)])
def test_pictures_are_pulled_audited_trained_on_evaluated_submitted_and_shown(farshift, tmp_path, files):
    if files == "true":
        if not TRUE.exists():
            pytest.skip("PACS' own files are not here")
        shutil.copytree(TRUE, tmp_path / "PACS")
    else:
        names = [f"{domain}/{kind}/pic_{n:03}.jpg" for domain in DOMAINS for kind in CATEGORIES for n in range(4)]
        folder(tmp_path / "PACS", {name: picture(number, side=12) for number, name in enumerate(names)})
    (tmp_path / "draft.toml").write_text(SPLIT)

    def go(*arguments: object, cache: str = "cache") -> str:
        done = farshift(*arguments, FARSHIFT_PATH=str(tmp_path), FARSHIFT_CACHE=str(tmp_path / cache))
        assert done.returncode == 0, done.stderr
        return done.stdout

    go("splits", "build", tmp_path / "draft.toml", "--out", tmp_path / "splits" / "manifests")
    # Another machine: nothing is in its cache, and the pictures are a copy.
    (tmp_path / "PACS").rename(tmp_path / "copy")
    assert "verified" in go("splits", "pull", "pacs_small/sketch", "--data", tmp_path / "copy", cache="other")
    audit = json.loads(go("splits", "audit", "pacs_small/sketch", "--json", cache="other"))
    assert audit
    run = tmp_path / "run"
    requested = ("cnn", "--on", "pacs_small/sketch", "--budget", "quick", "--seeds", "1", "--steps", "50")
    go("run", *requested, "--out", run, cache="other")
    card = read_run(run).card
    assert card.spent.by_seed["seed_0"]["steps"] == 50
    assert "pillow" in str(card.spent.by_seed["seed_0"]["decoder"]).lower()
    board, archive = tmp_path / "board", tmp_path / "cnn.zip"
    go("board", "init", board, "--name", "Pictures", cache="other")
    go("pack", run, "--out", archive, "--team", "us", cache="other")
    go("submit", archive, "--to", board, cache="other")
    go("board", "site", board, cache="other")
    pages = [path.read_text("utf-8") for path in Path(board).rglob("*.html")]
    assert any("pacs_small/sketch" in page and "cnn" in page for page in pages)
    (again,) = json.loads(go("score", run, "--json", cache="other"))
    assert 0 <= again["ood"]["value"] <= 1
