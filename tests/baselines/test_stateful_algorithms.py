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


def training_of(algorithm: str, *rates: float, names: tuple[str, ...] = ("first", "second", "third")) -> Training:
    """Of a replica for each learning rate."""
    images = algorithm in ON_PICTURES
    sizes = IMAGES if images else None
    network, common = ("resnet", RESNET) if images else ("mlp", ADAM)
    each = [{"lr": rate} for rate in rates]
    data = wide_rows(sizes=sizes)
    return begun(algorithm, *each, network=network, common=common, data=data, sizes=sizes, steps=12, names=names)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("after", [2, 7, 12], ids=lambda after: f"after {after} steps")
def test_a_training_that_was_cut_off_ends_as_one_that_was_not(algorithm: str, after: int, tmp_path: Path) -> None:
    full = training_of(algorithm, 0.01, 0.02)
    expected = asked(finished(full), full.initial_data)
    cut = training_of(algorithm, 0.01, 0.02)
    if after == 12:
        cut.run()
    else:
        for _ in range(after):
            cut.step()
    save_checkpoint(cut, tmp_path / "kept.npz", "same")
    again = training_of(algorithm, 0.01, 0.02)
    assert resume_training(again, tmp_path / "kept.npz", "same")
    assert again.total == after
    assert torch.equal(asked(finished(again), again.initial_data), expected)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_replica_that_diverges_does_not_touch_the_others(algorithm: str) -> None:
    training = training_of(algorithm, 0.01, 1e200, 0.02)
    outcome = training.run()
    stack = outcome.ended[0]
    answers = dict(zip(stack.number.tolist(), asked(stack, training.initial_data), strict=True))
    for number, name, rate in ((0, "first", 0.01), (2, "third", 0.02)):
        alone = finished(training_of(algorithm, rate, names=(name,)))
        assert number not in outcome.failed
        assert torch.allclose(answers[number], asked(alone, training.initial_data)[0], rtol=0, atol=1e-12)
