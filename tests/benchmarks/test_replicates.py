"""Mean and standard deviation over replicates: NumPy's, with ddof=1, as WILDS prints them."""

from __future__ import annotations

import farshift as fs
import models
import numpy as np
import pytest
from farshift import FarshiftError

FOLDS = ["modadd97/xi35", "modadd97/xi20"]


def test_of_one_run_the_replicates_are_its_seeds(tmp_path):
    run = fs.evaluate(
        lambda seed: models.Adder(seed, 0.1 * seed), on=FOLDS[0], seeds=4, out=tmp_path / "r", name="adder"
    )
    result, score = fs.replicates(run), fs.score(run)
    for view, of in (("id", score.id), ("ood", score.ood)):
        assert result["views"][view]["values"] == pytest.approx(list(of.per_seed), abs=1e-6)
        assert result["views"][view]["mean"] == pytest.approx(of.value, abs=1e-6)
        assert result["views"][view]["sd"] == pytest.approx(np.std(of.per_seed, ddof=1), abs=2e-6)
    assert result["replicates"] == "4 seeds"


def test_of_runs_on_folds_each_is_one_replicate(tmp_path):
    runs = [
        fs.evaluate(
            models.Adder,
            on=item,
            seeds=2,
            out=tmp_path / str(number),
            name="adder",
            settings={"a": {"wrong": 0.2 * number}},
        )
        for number, item in enumerate(FOLDS)
    ]
    result = fs.replicates(*runs)
    values = [fs.score(run).ood.value for run in runs]
    assert result["views"]["ood"]["values"] == pytest.approx(values, abs=1e-6)
    assert result["views"]["ood"]["sd"] == pytest.approx(np.std(values, ddof=1), abs=2e-6)
    assert (result["replicates"], result["benchmarks"]) == ("2 folds", FOLDS)
    with pytest.raises(FarshiftError, match="two runs are on the same benchmark"):
        fs.replicates(runs[0], runs[0])
    with pytest.raises(FarshiftError, match="name one run"):
        fs.replicates()


def test_a_single_seed_has_no_standard_deviation(tmp_path):
    result = fs.replicates(fs.evaluate(models.Adder, on=FOLDS[0], seeds=1, out=tmp_path / "r"))
    assert result["views"]["ood"]["sd"] is None
