"""The pages of docs/ are true: every example runs as printed, and prints what the page says."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_hf
from docs_runner import Example, examples, hold, run, sections
from llm_server import Llm, llm
from support import ROOT

PAGES = ("evaluate.md", "scoring.md", "formats.md", "llm.md", "pictures.md", "protocol.md")
SECTIONS = {
    f"{page}: {title}": found for page in PAGES for title, found in sections(ROOT / "docs" / page).items()
}
ENDPOINT = "http://127.0.0.1:8000/v1"
LEARNT = 48
"""Bits up to which the served model knows the parities."""


def parities(prompt: str) -> str:
    """What a model says that has learnt the task of prefix_sums, and not of more than so many bits."""
    bits = prompt.rsplit("bits: ", 1)[1].split("\n")[0][:LEARNT]
    return " " + "".join(str(bits[: end + 1].count("1") % 2) for end in range(len(bits)))


@pytest.fixture(scope="module")
def served() -> Iterator[Llm]:
    with llm(parities) as site:
        yield site


@pytest.fixture
def environment() -> dict[str, str]:
    """That of a user's shell: the commands of this Python first on the path, and no settings of the tests' own."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "PYTEST_"))}
    return kept | {"PATH": path}


@pytest.mark.parametrize("section", SECTIONS)
def test_every_example_runs_as_printed(section, tmp_path, environment, request):
    for example in SECTIONS[section]:
        if "hf:./my-model" in example.content and not (tmp_path / "my-model").exists():
            pytest.importorskip("transformers")
            tiny_hf.decoder(tmp_path / "my-model")
        if ENDPOINT in example.content:
            pytest.importorskip("openai")
            url = request.getfixturevalue("served").url
            example = Example(example.sort, example.content.replace(ENDPOINT, url), example.name, example.printed)
        run(example, tmp_path, environment)


@pytest.mark.parametrize("page", PAGES)
def test_no_example_of_a_page_is_left_out(page):
    text = (ROOT / "docs" / page).read_text("utf-8")
    run_here = [example for title, found in SECTIONS.items() if title.startswith(f"{page}: ") for example in found]
    blocks = len(run_here) + sum(example.printed is not None for example in run_here)
    assert 2 * blocks == len(re.findall(r"^\s*(?:```|~~~)", text, re.MULTILINE))
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert not re.search(r"^(?: {4}|\t)\S", outside, re.MULTILINE), "an indented block is not run: fence it"
