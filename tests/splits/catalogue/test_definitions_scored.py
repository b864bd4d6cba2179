"""From a pull to a score: a definition's benchmark, over its small twin, by the metrics that its field uses."""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

import numpy as np
import pytest
from farshift import evaluate, score
from twins import laid, measured, pulled, twin

GROUPS, TEXTS, WILDS = (
    run_path(str(Path(__file__).with_name(f"test_definitions_{name}.py"))) for name in ("groups", "texts", "wilds")
)
"""What the tests of the layouts lay."""


ACCEPTED = "Waterbirds (non-commercial research)"
"""The licences that `place` agrees to."""


def ones(batch):
    return np.ones(len(next(iter(batch.values()))), np.int64)


def scored(tmp_path, place, split, files, model, **changes):
    """The score of a model on the twin of the benchmark of a split."""
    name = twin(split, place)
    pulled(name, laid(tmp_path / "data", files))
    run = evaluate(model, on=measured(split, name, place, **changes), budget="quick", seeds=1, out=tmp_path / "run")
    return score(run)


def test_waterbirds_is_scored_by_its_worst_group(place, tmp_path):
    result = scored(tmp_path, place, "waterbirds/official", GROUPS["waterbirds"](), ones)
    assert result.metric == "worst_group_accuracy@1"
    assert result.ood.value == 0.0
    assert result.metrics["accuracy@1"].ood.value == 0.5


def test_civilcomments_is_scored_by_identities_that_overlap(place, tmp_path):
    holdouts = [{"part": "train", "to": "id_test", "share": 0.5}]
    result = scored(tmp_path, place, "wilds_civilcomments/official", WILDS["civilcomments"](), ones, holdouts=holdouts)
    assert result.metric == "worst_group_accuracy@1"
    assert result.ood.value == 0.0


def test_multinli_is_scored_by_accuracy(place, tmp_path):
    holdouts = [{"part": "train", "to": "id_val", "share": 0.25}]
    result = scored(tmp_path, place, "multinli/mismatched", TEXTS["multinli"](), ones, holdouts=holdouts)
    assert result.ood.value == pytest.approx(1 / 3)


def test_py150_is_scored_by_class_and_method_tokens(place, tmp_path):
    def copied(batch):
        return [" ".join(["20", *code.split()[1:]]) for code in batch["code"]]

    result = scored(tmp_path, place, "wilds_py150/official", WILDS["py150"](), copied)
    assert result.metric == "token_type_accuracy@1"
    assert 0 <= result.ood.value <= 1
