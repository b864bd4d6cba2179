"""Names of strangers on the screen, in errors, in JSON, in pages and notebooks: never obeyed, never hidden."""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from pathlib import Path

import farshift as fs
import models
import pytest
import tomli_w
from farshift.benchmarks.runs.run import compute_card_digest
from farshift.cli.output import print_error, print_line, print_note, print_table
from farshift.cli.progress import show_progress
from farshift.core.listings import render_table as html_table
from farshift.core.progress import log_message, report_progress

pytestmark = pytest.mark.attack("visitor", "escape sequences and bidirectional text in names and messages of others")

ON = "modadd97/xi35"
NAME = "best\x1b[2J\x1b]0;owned\x07\nboard: 9 entries: 9 verified\r\u202egnp.exe\u2066\x9b1m"


def obeyed(text: str) -> list[str]:
    """Characters that a terminal or a browser would obey or hide."""
    return [item for item in text if item not in "\n\t" and unicodedata.category(item) in ("Cc", "Cf", "Zl", "Zp")]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A run folder that somebody sent, whose model has that name."""
    folder = tmp_path_factory.mktemp("sent") / "run"
    fs.evaluate(lambda seed: models.Adder(seed, 0.2), on=ON, seeds=1, out=folder, name="plain")
    card = tomllib.loads((folder / "run.toml").read_text())
    card["model"]["name"] = NAME
    card["digests"]["run"] = compute_card_digest(card)  # as who forges a run would
    (folder / "run.toml").write_text(tomli_w.dumps(card))
    return folder


def test_a_foreign_run_is_scored_without_obeying_its_name(run, command):
    done = command("score", str(run))
    assert done.returncode == 0, done.stderr
    assert not obeyed(done.stdout + done.stderr)
    assert "best\\x1b[2J" in done.stdout
    assert not re.search("^board: 9", done.stdout, re.MULTILINE)


def test_json_says_the_name_as_it_is_and_shows_none_of_it_raw(run, command):
    done = command("score", str(run), "--json")
    assert json.loads(done.stdout)[0]["model"] == NAME
    assert not obeyed(done.stdout)


def test_every_way_to_the_screen_shows_it_written_out(capsys):
    print_line(NAME)
    print_table(NAME, [NAME, "b"], [[NAME, 1], ["x", 2]], caption=NAME)
    print_note(NAME)
    print_error(NAME)
    with show_progress():
        log_message(NAME)
        report_progress(NAME, 1, 2)
    output = capsys.readouterr()
    assert output.out.count("best") >= 4
    assert output.err.count("best") >= 3
    assert not obeyed(output.out + output.err)


def test_a_notebook_shows_it_written_out():
    shown = html_table([{"model": NAME, "<b>": "<script>"}], caption=NAME, note=NAME)
    assert not obeyed(shown)
    assert "<script>" not in shown
    assert shown.count("best\\x1b[2J") == 3
