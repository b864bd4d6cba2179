"""What a source is said to download: one's own files and those in a folder of mirrors are no download."""

from __future__ import annotations

from farshift.loaders.acquire.download_size import DownloadSize, compute_download_size
from farshift.loaders.acquire.source import find_source

SPLIT = """
name = "reviews/long"
version = 1
kind = "length"
title = "Stars of longer reviews"
label = "stars"
rule = "length/threshold"
parameters = { field = "text", at_most = 20 }
severity = { name = "length", unit = "words" }
data = { files = ["reviews.csv"], inputs = ["text"], labels = ["stars"] }
benchmark = {}
"""


def test_one_s_own_files_are_no_download_and_their_copies_take_room(command, cache, tmp_path, monkeypatch):
    rows = [f"{' '.join(['word'] * (3 + row % 30))} {row},{row % 5}" for row in range(200)]
    (tmp_path / "reviews.csv").write_text("\n".join(["text,stars", *rows]) + "\n")
    (tmp_path / "draft.toml").write_text(SPLIT)
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    built = command("splits", "build", tmp_path / "draft.toml", "--out", tmp_path / "splits/manifests")
    assert built.returncode == 0, built.stderr
    monkeypatch.setenv("FARSHIFT_CACHE", str(tmp_path / "empty"))
    size = (tmp_path / "reviews.csv").stat().st_size
    assert compute_download_size("reviews") == DownloadSize(0, (), size)
    done = command("run", "mlp", "--on", "reviews/long", "--budget", "quick", "--steps", "3", "--dry-run")
    assert "nothing; " in done.stdout and " of local files are copied to the cache" in done.stdout


def test_a_file_in_a_folder_of_mirrors_is_no_download(tmp_path, cache, monkeypatch):
    pins = find_source("wine_quality").definition.distributions[0].files
    size = sum(pin.bytes for pin in pins)
    assert compute_download_size("wine_quality") == DownloadSize(size)
    (tmp_path / "mine" / "deep").mkdir(parents=True)
    monkeypatch.setenv("FARSHIFT_MIRRORS", str(tmp_path / "mine"))
    first = tmp_path / "mine" / "deep" / pins[0].name
    first.write_bytes(bytes(pins[0].bytes))
    assert compute_download_size("wine_quality") == DownloadSize(size - pins[0].bytes, (), pins[0].bytes)
    first.write_bytes(bytes(pins[0].bytes - 1))
    assert compute_download_size("wine_quality") == DownloadSize(size)
    before = compute_download_size("spoken_digits")
    tree = find_source("spoken_digits").definition.distributions[0].trees[0]
    assert before.unknown
    (tmp_path / "mine" / f"{tree.name}.tar").write_bytes(b"")
    assert compute_download_size("spoken_digits") == DownloadSize()
