"""`farshift run --dry-run`: what a run takes, before it starts; and what is known not to fit is refused, with and without it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import picture_split
import pytest
from encoded_files import folder, picture
from farshift import read_run
from farshift.baselines.running import resources
from farshift.baselines.running.resources import estimate_cost, find_shortages, format_estimate
from farshift.baselines.running.sweep import make_plan
from farshift.benchmarks.benchmark import load_benchmarks
from farshift.benchmarks.model import Budget

ON = "modadd97/xi35"


@pytest.mark.slow
def test_a_plan_tells_the_steps_and_parameters_that_the_run_then_has(farshift, farshift_json, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    requested = ("mlp", "--on", ON, "--budget", "quick", "--seeds", "2", "--steps", "7")
    (result,) = farshift_json("run", *requested, "--dry-run")
    assert list(tmp_path.iterdir()) == []
    done = farshift("run", *requested, "--out", "run")
    assert done.returncode == 0, done.stderr
    run = read_run("run")
    spent, tried = run.card.spent.by_seed["seed_1"], result["measured"]
    assert [result["steps"], tried["parameters"], tried["replicas"]] == [
        spent[name] for name in ("steps", "parameters", "replicas")
    ]
    assert (result["replicas"], result["seeds"], result["done"], result["problems"]) == (2, [0, 1], 0, [])
    assert result["rows"]["predicted"] == run.predictions().num_rows / 2
    (again,) = farshift_json("run", *requested, "--dry-run", "--out", "run")
    assert again["done"] == 2


def test_a_plan_is_printed_as_an_estimate_with_where_it_comes_from(command):
    done = command("run", "mlp", "--on", ON, "--budget", "quick", "--seeds", "2", "--dry-run")
    assert done.returncode == 0, done.stderr
    lines = dict(re.findall(r"^ (\w[\w ]*?)  +(\S.*)$", done.stdout, re.MULTILINE))
    assert lines["training"].startswith("2 replicas (2 seeds, 1 setting; 0 of the seeds done), ")
    assert "are free" in lines["memory"]
    assert lines["download"] == "nothing"
    assert lines["measured"].endswith("ms a row to predict")
    assert lines["time"].endswith(": an estimate")


@pytest.mark.slow
def test_settings_and_processes_multiply_what_is_trained(farshift_json, tmp_path):
    (tmp_path / "two.toml").write_text("[a]\nlr = 0.1\n[b]\nlr = 0.2\n")
    (result,) = farshift_json(
        *("run", "--dry-run", "mlp", "--on", ON, "--seeds", "2", "--steps", "3"),
        *("--settings", tmp_path / "two.toml", "--engine", "processes"),
    )
    assert result["replicas"] == 4
    assert result["measured"]["replicas"] * result["processes"] == 4


def test_several_are_planned_in_one_table_and_an_estimator_has_no_time(command):
    done = command("run", "--dry-run", "mlp", "knn", "--on", ON, "--budget", "quick", "--seeds", "1", "--steps", "3")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^ mlp +modadd97/xi35 +1 +3 +(about|under) ", done.stdout, re.MULTILINE)
    assert re.search(r"^ knn +modadd97/xi35 +1 +until done +not known: an estimator ", done.stdout, re.MULTILINE)


@pytest.mark.slow
def test_what_a_run_refuses_its_dry_run_refuses_alike(command):
    for more in ((), ("--dry-run",)):
        done = command("run", *more, "lstm", "--on", ON, "--seeds", "1", "--out", "nowhere")
        assert done.returncode == 2
        assert "the network lstm is for sequence tasks" in done.stderr
        assert done.stderr.count("\n") == 1


REVIEWS = """
name = "reviews/long"
version = 1
kind = "length"
title = "Stars of reviews longer than any in training"
label = "stars"
rule = "length/threshold"
parameters = { field = "text", at_most = 20 }
severity = { name = "length", unit = "words" }
data = { files = ["reviews.csv"], inputs = ["text"], labels = ["stars"] }
benchmark = {}
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory, python):
    """Two benchmarks of one's own: texts, and pictures of three domains."""
    from warm_python import COMMAND

    here: Path = tmp_path_factory.mktemp("own")
    rows = [
        f"{' '.join(f'word{(row * 7 + position) % 50}' for position in range(3 + row % 30))},{row % 5}"
        for row in range(300)
    ]
    (here / "reviews.csv").write_text("\n".join(["text,stars", *rows]) + "\n")
    names = [
        f"{position}/{kind}/{n}.jpg"
        for position in ("art", "photo", "sketch")
        for kind in ("cat", "dog")
        for n in range(12)
    ]
    folder(here / "photos", {name: picture(number, side=12) for number, name in enumerate(names)})
    import os

    for text in (REVIEWS, picture_split.DRAFT):
        (here / "draft.toml").write_text(text)
        done = python.run(
            *COMMAND,
            "splits",
            "build",
            str(here / "draft.toml"),
            "--out",
            str(here / "splits/manifests"),
            env=os.environ | {"FARSHIFT_PATH": str(here)},
        )
        assert done.returncode == 0, done.stderr
    return here


def refused(farshift, home, tmp_path, *arguments, **more) -> str:
    """The one line in which a run and its dry run refuse the same."""
    output = []
    for how in ((), ("--dry-run",)):
        done = farshift("run", *how, *arguments, "--out", tmp_path / "out", FARSHIFT_PATH=str(home), **more)
        assert done.returncode == 2, done.stderr
        (line,) = done.stderr.splitlines()[-1:]
        assert line.startswith("farshift: error: ")
        output.append(re.sub(r"[\d.]+ [kMGT]?B are free", "N are free", line.removeprefix("farshift: error: ")))
        assert not (tmp_path / "out").exists()
    assert output[0] == output[1]
    return output[0]


@pytest.mark.slow
def test_pictures_that_are_to_lie_in_memory_and_do_not_fit_are_refused_with_what_to_change(farshift, home, tmp_path):
    (tmp_path / "large.toml").write_text('[large]\nside = 1_000_000\nfeed = "resident"\n')
    line = refused(farshift, home, tmp_path, "cnn", "--on", "photos/sketch", "--settings", tmp_path / "large.toml")
    assert line.endswith("are free: lower the setting side or buckets or the network's size, or leave feed at auto")


def test_a_download_that_the_disk_has_no_room_for_is_refused_before_it_begins(farshift, home, tmp_path):
    source = home / "loaders/sources/reviews.toml"
    before = source.read_text()
    try:
        far = 'mirrors = [{ sort = "https", url = "https://example.invalid/reviews.csv" }]'
        source.write_text(re.sub(r"bytes = \d+", f"bytes = {10**18}\n{far}", before))
        empty = {"FARSHIFT_CACHE": str(tmp_path / "empty"), "FARSHIFT_HOME": str(tmp_path / "home")}
        line = refused(farshift, home, tmp_path, "mlp", "--on", "reviews/long", **empty)
    finally:
        source.write_text(before)
    assert line.startswith("reviews/long does not fit: it takes 1000000.0 TB of disk (the download: 1000000.0 TB)")
    assert line.endswith("free some space there, or set FARSHIFT_CACHE to a folder on another disk")


@pytest.mark.slow
def test_pictures_are_decoded_in_the_trial_and_leave_nothing_in_the_cache(farshift, home):
    def list_entries():
        listed = farshift("cache", "list", "--json")
        return [item["name"] for item in json.loads(listed.stdout)["entries"] if item["kind"] == "images"]

    before = list_entries()
    more = ("--seeds", "1", "--steps", "3", "--json")
    done = farshift("run", "--dry-run", "cnn", "--on", "photos/sketch", *more, FARSHIFT_PATH=str(home))
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)
    assert result["seconds"]["reading"] > 0
    rows = result["rows"]
    assert result["needs"]["disk"]["decoded images"] == 3 * 32 * 32 * (
        rows["train"] + rows["id_val"] + rows["predicted"]
    )
    assert list_entries() == before


def test_before_the_data_are_here_a_plan_names_the_pull_and_downloads_nothing(farshift_json, tmp_path):
    (result,) = farshift_json(
        "run", "--dry-run", "mlp", "--on", "vowel/speakers", FARSHIFT_CACHE=str(tmp_path / "empty")
    )
    assert result["measured"] is None
    assert result["not_measured"] == "the data are not in the cache: run farshift splits pull vowel/speakers"
    assert result["download"]["bytes"] > 0
    assert result["rows"]["train"] > 0


def test_several_baselines_are_searched_each_in_its_own_ranges(command_json):
    given = ("run", "erm", "irm", "--on", "vowel/speakers", "--search", "3", "--dry-run")
    assert [(plan["baseline"], plan["settings"]) for plan in command_json(*given)] == [
        ("erm (3 settings)", 3),
        ("irm (3 settings)", 3),
    ]


@pytest.mark.parametrize("baselines", [["cnn"], ["erm", "irm"]])
def test_what_a_definition_that_was_never_pulled_takes_is_not_known(command, monkeypatch, tmp_path, baselines):
    monkeypatch.setenv("FARSHIFT_CACHE", str(tmp_path / "empty"))
    done = command("run", *baselines, "--on", "wilds_camelyon17/official", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "run farshift splits pull wilds_camelyon17/official" in done.stdout
    assert "not known" in done.stdout and "0 bytes" not in done.stdout


@pytest.mark.slow
def test_no_definition_that_was_never_pulled_breaks_an_estimate(monkeypatch, tmp_path):
    monkeypatch.setenv("FARSHIFT_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("FARSHIFT_OFFLINE", "1")
    unpulled = [name for name, benchmark in load_benchmarks().items() if not benchmark.manifest.frozen]
    assert len(unpulled) > 90
    for name in unpulled:
        forecast = estimate_cost(make_plan("erm", name, tmp_path / "out", Budget("quick")))
        assert forecast["not_measured"] and format_estimate(forecast)


def test_what_is_needed_of_one_resource_is_added_up_and_the_largest_is_named(monkeypatch):
    monkeypatch.setattr(resources, "get_free_bytes", lambda place, device: {"disk": 100, "memory": 10_000}[place])
    memory = {"this": 4_000, "that": 7_000}
    (problem,) = find_shortages({"memory": memory, "disk": {"a file": 100}}, "it")
    assert problem.startswith("it does not fit: it takes 11.0 kB of memory (that: 7.0 kB), and 10.0 kB are free: lower")
    assert find_shortages({"memory": {"that": 7_000}}, "it") == []
