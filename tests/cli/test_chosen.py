"""What was chosen among a run's candidates is told with its score."""

from __future__ import annotations

import farshift as fs
import pytest
from farshift.benchmarks.scoring.apply_selection import ChosenCandidate, list_chosen_candidates

SETTINGS = "[small]\nwidth = 4\nlr = 0.001\n\n[large]\nwidth = 32\nlr = 0.01\n"


@pytest.mark.slow
def test_the_settings_that_a_rule_chose_are_told_by_seed(tmp_path, farshift, farshift_json):
    file = tmp_path / "settings.toml"
    file.write_text(SETTINGS, "utf-8")
    given = ("run", "mlp", "--on", "vowel/speakers", "--settings", file, "--selection", "id_val", "--steps", "40")
    given = (*given, "--seeds", "2", "--out", tmp_path / "r")
    result = farshift_json(*given)
    chosen = result["score"]["selections"]["id_val"]["chosen"]
    assert {str(seed) for item in result["chosen"] for seed in item["seeds"]} == {"0", "1"}
    for item in result["chosen"]:
        name = item["candidate"].split("/")[0]
        assert item["settings"] == {"small": {"width": 4, "lr": 0.001}, "large": {"width": 32, "lr": 0.01}}[name]
        assert all(chosen[str(seed)] == item["candidate"] for seed in item["seeds"])
    output = [line for line in farshift(*given).stdout.splitlines() if line.startswith("chosen by id_val: ")]
    assert len(output) == len(result["chosen"])
    assert "width = " in output[0]


def test_a_run_of_one_candidate_chose_nothing():
    run = fs.baseline("modadd97/xi35", "quadratic-mlp")
    assert list_chosen_candidates(run, fs.score(run)) == []


def test_a_drawn_value_is_told_in_four_digits_and_kept_in_all():
    item = ChosenCandidate("draw-1/last", {"lr": 0.0010690366843567624, "width": 16, "pool": "mean"}, (0, 2))
    assert str(item) == "draw-1/last (lr = 0.001069, width = 16, pool = mean) for seeds 0, 2"
    assert item.to_dict()["settings"]["lr"] == 0.0010690366843567624
