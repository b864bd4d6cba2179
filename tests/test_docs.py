"""The pages of docs/ are true: every example runs as printed, and prints what its page says."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import tiny_hf
from docs_runner import Example, run, sections
from llm_server import Llm, llm
from support import ROOT

PAGES = (
    "evaluate.md",
    "own-splits.md",
    "own-claims.md",
    "corruptions.md",
    "audit.md",
    "scoring.md",
    "formats.md",
    "llm.md",
    "figures.md",
    "protocol.md",
    "loading.md",
    "baselines.md",
    "pretrained.md",
    "board.md",
    "host-a-board.md",
    "leaderboard.md",
    "sealed.md",
    "statistics.md",
    "submitting.md",
    "tutorial.md",
)
BY_PAGE = {page: sections(ROOT / "docs" / page) for page in PAGES}
SECTIONS = {f"{page}: {title}": result for page in PAGES for title, result in BY_PAGE[page].items()}

GUIDE = sections(ROOT / "CONTRIBUTING.md")
ELSEWHERE = "Adding one thing is adding one file"
"""The section of the guide that tests/cli/test_plugins.py runs."""

SECTIONS |= {f"CONTRIBUTING.md: {title}": result for title, result in GUIDE.items() if title != ELSEWHERE}

OF_OTHERS = (".service", ".caddyfile", ".conf")
"""Files for systemd and for proxies, which no command of ours reads."""

SERVED, LOCAL = "http://127.0.0.1:8000/v1", "hf:./my-model"
"""What a reader of the pages has, and the tests must provide: an endpoint, and a model in a folder."""

LEARNT = 48
"""Bits up to which the served model knows parities."""


def parities(prompt: str) -> str:
    """What the served model says to a prompt of prefix_sums."""
    bits = prompt.rsplit("bits: ", 1)[1].split("\n")[0][:LEARNT]
    return " " + "".join(str(bits[: end + 1].count("1") % 2) for end in range(len(bits)))


@pytest.fixture(scope="module")
def served() -> Iterator[Llm]:
    pytest.importorskip("openai")
    with llm(parities) as site:
        yield site


@pytest.fixture(scope="module")
def local(tmp_path_factory) -> Path:
    pytest.importorskip("transformers")
    return tiny_hf.decoder(tmp_path_factory.mktemp("local") / "my-model")


@pytest.fixture(scope="module")
def commands(python, tmp_path_factory) -> Path:
    """A folder of commands that start quickly, where the system allows it."""
    folder = tmp_path_factory.mktemp("commands")
    python.link(folder)
    return folder


@pytest.fixture
def environment(commands) -> dict[str, str]:
    """A reader's: this Python's commands first on the path, and nothing set for language models."""
    path = os.pathsep.join([str(commands), str(Path(sys.executable).parent), os.environ["PATH"]])
    stored = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    # The examples' networks are small: more threads would only wait for each other.
    # Nor do plug-ins of pytest that only this repository's tests have say anything in a reader's.
    return stored | {"PATH": path, "OMP_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


@pytest.mark.parametrize("section", SECTIONS)
def test_every_example_runs_as_printed(section, tmp_path, environment, request):
    for example in SECTIONS[section]:
        if LOCAL in example.content:
            shutil.copytree(request.getfixturevalue("local"), tmp_path / "my-model")
        if SERVED in example.content:
            url = request.getfixturevalue("served").url
            example = replace(example, content=example.content.replace(SERVED, url))
        assert run(example, tmp_path, environment) == ""


@pytest.mark.parametrize("page", PAGES)
def test_no_example_of_a_page_is_left_out(page):
    text = (ROOT / "docs" / page).read_text("utf-8")
    result = [example for some in BY_PAGE[page].values() for example in some]
    blocks = len(result) + sum(example.printed is not None for example in result)
    formulas = len(re.findall(r"^```formula$", text, re.MULTILINE))
    assert len(re.findall(r"^\s*(?:```|~~~)", text, re.MULTILINE)) == 2 * (blocks + formulas)
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert not re.search(r"^(?: {4}|\t)\S", outside, re.MULTILINE), "an indented block is not run: fence it"


@pytest.mark.parametrize("section", SECTIONS)
def test_every_file_of_a_section_is_used_in_it(section):
    rest = list(SECTIONS[section])
    while rest:
        example = rest.pop(0)
        if example.sort == "file" and Path(example.name).suffix not in OF_OTHERS:
            stem = Path(example.name).stem
            names = {stem, stem.replace("-", "/")}  # the file of the benchmark digits/own is digits-own.toml
            assert any(name in later.content for name in names for later in rest), example.name


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_headings_that_are_there(page):
    path = ROOT / "docs" / page
    for target, heading in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", path.read_text("utf-8")):
        text = (path.parent / target if target else path).read_text("utf-8")
        titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        assert heading in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_an_example_that_fails_or_prints_something_else_is_found(tmp_path, environment):
    for command, printed in (("false", None), ("echo yes", "no\n"), ("echo yes", "farshift: error: no\n")):
        assert run(Example("sh", command, printed=printed), tmp_path, environment) != ""
    refused = Example("sh", "echo 'farshift: error: no' >&2; exit 2", printed="farshift: error: no\n")
    assert run(refused, tmp_path, environment) == ""
