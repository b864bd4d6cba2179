"""Algorithms that remember: what they remember survives a kill, and the failure of a replica beside."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from farshift.baselines.training.checkpoint import resume_training, save_checkpoint
from farshift.baselines.training.trainer import Training

from .shifted_stacks import IMAGES, RESNET, asked, finished, wide_rows
from .small_stacks import ADAM, begun

ALGORITHMS = [
    "swa",
    "swad",
    "erm_plus_plus",
    "eiil",
    "bbse",
    "mcd",
    "miro",
    "importance_weighting",
    "wise_ft",
    "lines",
    "jtt",
    "useful",
    "lff",
    "dfr",
    "divdis",
    "d_bat",
    "t3a",
    "ada_npc",
    "itta",
    "tent",
    "eata",
    "sar",
    "shot",
    "crt",
]
ON_PICTURES = {"tent", "eata", "sar"}
OWN: dict[str, dict[str, int]] = {"eiil": {"assignment_steps": 100}}
CUT_OFF = (2, 7, 12)
"""Steps: in the first half, in the second, and the last."""


def training_of(algorithm: str, *rates: float, names: tuple[str, ...] = ("first", "second", "third")) -> Training:
    """Of a replica for each learning rate."""
    images = algorithm in ON_PICTURES
    sizes = IMAGES if images else None
    network, common = ("resnet", RESNET) if images else ("mlp", ADAM)
    each = [{"lr": rate} | OWN.get(algorithm, {}) for rate in rates]
    data = wide_rows(sizes=sizes)
    return begun(algorithm, *each, network=network, common=common, data=data, sizes=sizes, steps=12, names=names)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_training_that_was_cut_off_ends_as_one_that_was_not(algorithm: str, tmp_path: Path) -> None:
    full = training_of(algorithm, 0.01, 0.02)
    for after in range(13):
        if after in CUT_OFF:
            save_checkpoint(full, tmp_path / f"{after}.npz", "same")
        if after < 12:
            full.step()
    expected = asked(finished(full), full.initial_data)
    for after in CUT_OFF:
        again = training_of(algorithm, 0.01, 0.02)
        assert resume_training(again, tmp_path / f"{after}.npz", "same")
        assert again.total == after
        assert torch.equal(asked(finished(again), again.initial_data), expected), after


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_replica_that_diverges_does_not_touch_the_others(algorithm: str) -> None:
    training = training_of(algorithm, 0.01, 1e200, 0.02)
    outcome = training.run()
    assert set(outcome.failed) <= {1}
    stack = outcome.ended[0]
    answers = dict(zip(stack.number.tolist(), asked(stack, training.initial_data), strict=True))
    alone = finished(training_of(algorithm, 0.02, names=("third",)))
    assert torch.allclose(answers[2], asked(alone, training.initial_data)[0], rtol=0, atol=1e-12)
