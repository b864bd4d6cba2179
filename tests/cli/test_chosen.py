"""What was chosen among a run's candidates is told with its score."""

from __future__ import annotations

import farshift as fs
import pytest
from farshift.benchmarks.scoring.chosen import ChosenCandidate, list_chosen_candidates

SETTINGS = "[small]\nwidth = 4\nlr = 0.001\n\n[large]\nwidth = 32\nlr = 0.01\n"


@pytest.mark.slow
def test_the_settings_that_a_rule_chose_are_told_by_seed(tmp_path, farshift, farshift_json):
    file = tmp_path / "settings.toml"
    file.write_text(SETTINGS, "utf-8")
    given = ("run", "mlp", "--on", "vowel/speakers", "--settings", file, "--selection", "id_val", "--steps", "40")
    given = (*given, "--seeds", "2", "--out", tmp_path / "r")
    found = farshift_json(*given)
    chosen = found["score"]["selections"]["id_val"]["chosen"]
    assert {str(seed) for one in found["chosen"] for seed in one["seeds"]} == {"0", "1"}
    for one in found["chosen"]:
        name = one["candidate"].split("/")[0]
        assert one["settings"] == {"small": {"width": 4, "lr": 0.001}, "large": {"width": 32, "lr": 0.01}}[name]
        assert all(chosen[str(seed)] == one["candidate"] for seed in one["seeds"])
    told = [line for line in farshift(*given).stdout.splitlines() if line.startswith("chosen by id_val: ")]
    assert len(told) == len(found["chosen"])
    assert "width = " in told[0]


def test_a_run_of_one_candidate_chose_nothing():
    run = fs.baseline("modadd97/xi35", "quadratic-mlp")
    assert list_chosen_candidates(run, fs.score(run)) == []


def test_a_drawn_value_is_told_in_four_digits_and_kept_in_all():
    one = ChosenCandidate("draw-1/last", {"lr": 0.0010690366843567624, "width": 16, "pool": "mean"}, (0, 2))
    assert str(one) == "draw-1/last (lr = 0.001069, width = 16, pool = mean) for seeds 0, 2"
    assert one.to_dict()["settings"]["lr"] == 0.0010690366843567624
