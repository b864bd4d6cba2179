"""`farshift reproduce`: what it lists, runs, picks and refuses, and its exit codes."""

from __future__ import annotations

import pytest
from farshift.benchmarks.claims.claim import load_claims
from support import one_line_error

COUNTED = """
name = "counted"
title = "There are {rows} long commands"
kind = "length"
citation = "None"
cost = {{ cpu_minutes = 0.1 }}

[published]
rows = {{ value = {rows}, mark = "seen", where = "here" }}

[quantities]
rows = {{ sort = "fact", measure = "rows", split = "scan/length", arguments = {{ part = "ood_test" }} }}

[[rules]]
shape = "equal"
quantity = "rows"
published = "rows"
"""


@pytest.fixture
def own(tmp_path):
    def write(rows: int) -> dict[str, str]:
        folder = tmp_path / "baselines" / "claims"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "counted.toml").write_text(COUNTED.format(rows=rows))
        return {"FARSHIFT_PATH": str(tmp_path)}

    return write


def test_claims_are_listed_with_their_verdicts(command_json):
    result = command_json("reproduce", "--list")
    assert {item["name"] for item in result} == set(load_claims())
    assert {"name", "kind", "verdict"} <= result[0].keys()


def test_a_claim_that_holds_gives_exit_code_0_and_one_that_does_not_1(farshift, farshift_json, own, tmp_path):
    result = farshift_json("reproduce", "counted", "--out", tmp_path / "out", **own(3920))
    assert (result["verdict"], result["quantities"]["rows"]["value"]) == ("reproduced", 3920)
    done = farshift("reproduce", "counted", "--out", tmp_path / "out", **own(3921))
    assert done.returncode == 1
    assert "not reproduced: rows = 3921: it is 3920" in done.stdout
    done = farshift("reproduce", "counted", "--quick", "--out", tmp_path / "out", **own(3921))
    assert done.returncode == 1
    assert "the direction does not hold (no verdict)" in done.stdout


def test_all_takes_the_cheapest_that_fit_and_says_what_it_left(farshift, own, tmp_path):
    done = farshift("reproduce", "--all", "--budget", "7s", "--kind", "length", "--out", tmp_path, **own(3920))
    assert done.returncode == 0
    assert "counted" in done.stdout
    assert "skipped: " in done.stderr


def test_a_cost_that_was_never_measured_on_a_gpu_is_counted_as_a_core_s(farshift, own, tmp_path):
    arguments = ("reproduce", "--all", "--device", "cuda", "--budget", "7s", "--kind", "length")
    done = farshift(*arguments, "--out", tmp_path / "out", "--keep", tmp_path / "kept", **own(3920))
    assert "no measured cost on cuda; its CPU time on one core is used" in done.stderr
    assert list((tmp_path / "kept" / "counted").iterdir())


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "name a claim, or give one of --list and --all"),
        (["counted", "--all"], "name a claim, or give one of --list and --all"),
        (["nothing-like-it"], "claim"),
        (["scan-length-cut", "--rescore", "--quick"], "--rescore uses the recorded predictions"),
        (["--all", "--keep", "x", "--quick"], "--keep records full runs"),
        (["--all", "--budget", "long"], "write a number and s, m or h"),
    ],
)
def test_what_cannot_be_done_is_one_line(command, arguments, complaint):
    assert complaint in one_line_error(command("reproduce", *arguments))
