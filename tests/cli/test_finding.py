"""The catalogues in a terminal: searched, within 80 columns."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from farshift.baselines.running.recorded_scores import SMOKE
from support import one_line_error, run_in_process

SHORT = {"COLUMNS": "80", "LINES": "24", "TERM": "xterm"}


@pytest.fixture
def in_a_terminal(python, tmp_path) -> Callable[..., str]:
    """What a command prints where stdout is a terminal of 80 columns and 24 lines."""
    python.link(tmp_path)
    forked = tmp_path / "farshift"
    first = [str(forked)] if forked.exists() else [sys.executable, "-c", "from farshift.cli import main; main()"]

    def run(*command: str, **environment: str) -> str:
        ours, theirs = pty.openpty()
        known = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        child = subprocess.Popen([*first, *command], stdout=theirs, stdin=theirs, env=known | SHORT | environment)
        os.close(theirs)
        output = b""
        try:
            while piece := os.read(ours, 65536):
                output += piece
        except OSError:  # how Linux says that the other side is closed
            pass
        os.close(ours)
        assert child.wait() == 0
        return output.decode().replace("\r\n", "\n")

    return run


@cache
def print_listing(*arguments: str, columns: str = "") -> str:
    """What a command prints, on a screen of so many columns or none: each is run once."""
    with pytest.MonkeyPatch.context() as patch:
        if columns:
            patch.setenv("COLUMNS", columns)
        done = run_in_process(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def document(*arguments: str) -> Any:
    """What a command prints with --json."""
    return json.loads(print_listing(*arguments, "--json"))


def listed(group: str, *arguments: str) -> Any:
    return document(group, "list", *arguments)


def test_a_search_that_matches_nothing_says_what_a_search_is():
    for group in ("splits", "benchmarks"):
        output = print_listing(group, "list", "no-such-word")
        assert "every search word must occur in a name, a title or another field" in output


@pytest.mark.parametrize(
    ("command", "search", "name"),
    [
        (("splits", "list"), "2310.02541", "xor_clusters/eta10"),
        (("splits", "list"), "benign overfitting xor", "xor_clusters/eta10"),
        (("benchmarks", "list"), "2310.02541", "xor_clusters/eta10"),
        (("benchmarks", "list"), "1910.14599", "anli/last_round"),
        (("baselines", "list"), "2407.15085", "pego"),
        (("reproduce", "--list"), "2310.02541", "xor-linear-at-chance"),
        (("reproduce", "--list"), "to grok", "modadd-two-stages"),
    ],
)
def test_a_paper_is_found_by_its_arxiv_number_and_its_title(command, search, name):
    names = [item["name"] for item in document(*command, search)]
    assert name in names
    assert len(names) < len(document(*command))


def test_a_search_of_several_words_that_matches_nothing_says_what_each_finds():
    output = print_listing("benchmarks", "list", "medical", "no-such-word")
    assert output.startswith("0 benchmarks: ") and re.search(r"; alone, 'medical' \d+, 'no-such-word' 0\n", output)


def test_an_unknown_benchmark_and_a_list_of_benchmarks_say_where_others_are(command):
    error = command("benchmarks", "show", "my/own").stderr
    assert "for a benchmark of your own, add its folder to FARSHIFT_PATH" in error
    assert re.search(r"\(--suite NAME\): audio \d+, core \d+", print_listing("benchmarks", "list", "--source", "scan"))


def test_bold_type_is_silenced_by_no_color(in_a_terminal):
    command = ["baselines", "results", "--on", "bike_sharing/second_year"]
    assert "\x1b[" in in_a_terminal(*command)
    assert "\x1b[" not in in_a_terminal(*command, NO_COLOR="1")


@pytest.mark.parametrize(
    "command",
    [
        ("splits", "list"),
        ("benchmarks", "list"),
        ("benchmarks", "metrics"),
        ("baselines", "list"),
        ("baselines", "algorithms"),
        ("baselines", "results", "--on", "scan/length"),
        ("doctor", "--sources"),
        ("baselines", "results"),
        ("splits", "show", "vowel/speakers"),
        ("benchmarks", "show", "wine_quality/red"),
        ("compare", "baseline:mlp@modadd97/xi35", "baseline:knn@modadd97/xi35"),
        ("splits", "verify", "modadd97/xi35"),
        ("cache", "list"),
        ("reproduce", "--list"),
        ("baselines", "list", "--budgets"),
    ],
)
def test_a_list_fits_80_columns_and_breaks_no_interval(command):
    lines = print_listing(*command, columns="80").splitlines()
    assert lines
    assert [line for line in lines if len(line) > 80] == []
    assert [line for line in lines if re.search(r"\[\d+\.\s*$", line) or re.match(r"\s+,?\s*\d*\.\d\]", line)] == []


@pytest.mark.parametrize("command", [("doctor",), ("benchmarks", "show", "scan/length")])
def test_what_is_told_unasked_fits_a_screen(command):
    assert len(print_listing(*command, columns="80").splitlines()) <= 25  # one more says that cores are busy


def test_a_narrow_list_has_a_line_for_each_thing_and_for_each_kind_of_them():
    known = document("baselines", "networks")
    lines = print_listing("baselines", "networks", columns="80").splitlines()
    assert len(lines) == len(known) + len({item["task"] for item in known})


def test_pretrained_networks_are_listed_with_licence_and_size():
    (known,) = [item for item in document("baselines", "networks") if item["name"] == "efficientnet-lite0"]
    assert (known["licence"], known["bytes"], known["trained_on"]) == ("Apache-2.0", 18826032, "ImageNet-1k")
    assert known["published"][0]["value"] == 75.1
    (line,) = [line for line in print_listing("baselines", "networks").splitlines() if " efficientnet-lite0 " in line]
    assert line.split()[1] == "pretrained"
    assert line.endswith("(Apache-2.0, 18.8 MB)")


@pytest.mark.parametrize("command", [("splits", "list"), ("benchmarks", "list"), ("baselines", "list")])
def test_without_a_terminal_each_thing_is_one_line_with_its_whole_title_and_no_padding(command):
    heading, *lines, caption = print_listing(*command, "length").splitlines()
    assert heading.split()[1] == "kind"
    titles = [item["title"] for item in document(*command, "length")]
    assert all(any(line.endswith(f"  {title}") for title in titles) for line in lines)
    names = [line.split()[0] for line in lines]
    assert len(set(names)) == len(names)
    assert re.match(r"\d+ \w+", caption)


def test_a_definition_has_no_blanks_for_counts_that_it_lacks():
    (line,) = [
        item
        for item in print_listing("splits", "list", "wilds").splitlines()
        if item.startswith(" wilds_fmow/official@1")
    ]
    assert re.search(r" definition {2,}WILDS FMoW: \w", line)


def test_recorded_results_are_one_line_a_benchmark_until_more_is_asked_for():
    short = print_listing("baselines", "results", columns="80")
    known = [item for item in document("baselines", "results") if not item["not_learnt"].startswith(SMOKE)]
    names = {item["benchmark"] for item in known}
    broken = {item["benchmark"] for item in known if len(item["benchmark"]) > 30 or len(item["model"]) > 30}
    assert len(short.splitlines()) < len(names) + len(broken) + 8
    scores = [row.split()[-2] for row in short.splitlines() if re.search(r"\d+\.\d+\*? +\d+$", row)]
    assert len(names) - len(broken) <= len(scores) <= len(names), "each that fits has its score on its line"
    assert f"{len(known):,} results" in short
    best = max((item for item in known if item["benchmark"] == "scan/length"), key=lambda one: one["ood"]["value"])
    (output,) = [row.split() for row in short.splitlines() if " scan/length " in row]
    assert output[1:3] == [best["model"], f"{100 * best['ood']['value']:.1f}"]


def test_the_doctor_names_every_extra():
    result = {item["check"]: item for item in document("doctor")}
    for extra in ("plot", "hf", "llm", "hdf5", "notebook"):
        item = result[f"extra {extra}"]
        assert item["ok"] or f"pip install 'farshift[{extra}]'" in item["detail"]
    assert " packages " in print_listing("doctor", columns="80")


def test_a_list_is_narrowed_by_words_and_options():
    result = listed("splits", "spoken", "--modality", "audio", "--real", "--kind", "domain")
    assert {item["source"] for item in result} == {"spoken_digits"}
    assert all(item["generated"] for item in listed("benchmarks", "--generated", "--suite", "core"))
    assert all("MIT" in item["licence"] for item in listed("benchmarks", "--licence", "mit"))
    assert {item["state"] for item in listed("splits", "--state", "definition")} == {"definition"}
    assert [item["name"] for item in listed("baselines", "coral")] == ["causirl", "coral", "coral-target"]


def test_a_misspelt_trait_is_refused(command):
    assert "did you mean tabular?" in one_line_error(command("splits", "list", "--modality", "tabula"))


def test_benchmarks_of_a_family_share_a_line():
    folded = print_listing("benchmarks", "list", "--source", "mnist")
    every = print_listing("benchmarks", "list", "--source", "mnist", "--all")
    assert " mnist/pair_flip?rate=20,40,45&draw=1,2,3,4,5 " in folded
    assert " mnist/pair_flip_45_draw5 " in every
    assert len(folded.splitlines()) < len(every.splitlines())


def test_the_doctor_lists_sources_only_where_it_is_asked():
    short, long = print_listing("doctor", columns="80"), print_listing("doctor", "--sources")
    assert max(map(len, short.splitlines())) <= 80
    assert len(short.splitlines()) < 40
    assert "source scan" not in short
    assert "source scan" in long
    assert "only with your own copy" in long


def test_a_benchmark_is_shown_without_a_download(command, tmp_path, monkeypatch):
    monkeypatch.setenv("FARSHIFT_CACHE", str(tmp_path))
    monkeypatch.setenv("FARSHIFT_OFFLINE", "1")
    done = command("benchmarks", "show", "spoken_digits/george")
    assert done.returncode == 0, done.stderr
    assert "not downloaded: farshift splits pull spoken_digits/george@1" in done.stdout
    assert not (tmp_path / "sources").exists()
