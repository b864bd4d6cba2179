"""Sealed draws by their commands."""

from __future__ import annotations

import json

import pytest
from sealed_cases import ON, key_of
from support import one_line_error

MODEL = """
import numpy as np

class Model:
    def predict(self, batch):
        return np.array([text.count("t") % 2 for text in batch["coins"]])
"""


@pytest.mark.slow
def test_a_window_from_its_announcement_to_its_verification(coins, command, clock, tmp_path):
    def answered(*arguments: object):
        done = command(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    board, closes = tmp_path / "board", "2031-01-08T00:00:00Z"
    (tmp_path / "model.py").write_text(MODEL)
    answered("board", "init", board)
    output = answered("board", "sealed", "create", ON, "--board", board, "--closes", closes)
    assert output["profile"]["ood"]["equal"]
    draw = answered("board", "sealed", "draw", ON, "--board", board, "--out", tmp_path / "draw")["draw"]
    for team, model in (("a", f"{tmp_path / 'model.py'}:Model"), ("b", "baseline:most-frequent")):
        out = tmp_path / f"{team}.zip"
        key = key_of(tmp_path, team).path
        answered("board", "sealed", "answer", draw, model, "--team", team, "--key", key, "--out", out, "--seeds", 1)
        accepted = answered("board", "sealed", "submit", out, "--board", board, "--window", ON)
        assert (accepted["window"], accepted["new"]) == ("coins__longer-1", True)
    early = one_line_error(command("board", "sealed", "close", ON, "--board", board))
    assert "it is open now" in early
    (listed,) = answered("board", "sealed", "list", board)
    assert (listed["state"], listed["answers"], listed["entries"], listed["seed"]) == ("open", 2, [], None)
    clock.set(closes, seconds=1)
    result = answered("board", "sealed", "close", ON, "--board", board)
    scores = {entry["team"]: entry["score"]["ood"]["value"] for entry in result["entries"]}
    assert scores["a"] > 0.9
    assert 0 <= scores["b"] <= 1
    verification = answered("board", "verify", board)
    assert (verification["verified"], verification["notes"]) == (True, ["1 sealed test verified, with 2 answers"])
    shown = command("board", "sealed", "list", board, "--window", ON).stdout
    assert "public - sealed" in shown
