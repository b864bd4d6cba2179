"""Lottery tickets: what is pruned, what is rewound, and that a pruned weight stays 0."""

import pytest
import torch
from farshift.baselines.algorithms.lottery_ticket import choose_largest, list_matrices
from farshift.baselines.training.trainer import Training

from .small_stacks import ADAM, begun, finished

TICKET = ADAM | {"first_percent": 50}


def start_second_stage(
    *each: dict[str, float], **settings: object
) -> tuple[Training, list[torch.Tensor], list[torch.Tensor]]:
    """A training whose second stage begins, its initial parameters and those that were pruned."""
    training = begun("lottery_ticket", *each, common=TICKET | settings, steps=12)
    before = [p.detach().clone() for p in training.stack.network.parameters()]
    for _ in range(5):
        training.step()
    whole = begun("erm", *({} for _ in each), common=ADAM, steps=12)
    for _ in range(6):
        whole.step()
    training.step()
    return training, before, [p.detach() for p in whole.stack.network.parameters()]


def test_the_smallest_weights_of_the_trained_network_go_and_the_others_are_rewound():
    training, before, trained = start_second_stage({"pruned": 0.5}, {"pruned": 0.75})
    now = list(training.stack.network.parameters())
    matrices = [at for at, p in enumerate(before) if p.ndim > 2]
    for replica, share in enumerate((0.5, 0.75)):
        sizes = torch.cat([trained[at][replica].abs().flatten() for at in matrices])
        threshold = sizes.sort().values[int(share * len(sizes))]
        for at, value in enumerate(now):
            kept = trained[at][replica].abs() >= threshold if at in matrices else torch.tensor(True)
            assert torch.equal(value[replica], before[at][replica] * kept), "rewound, and the pruned are 0"


@pytest.mark.parametrize("mask", ["magnitude", "random"])
def test_a_pruned_weight_stays_0_and_the_others_learn(mask):
    training, _, _ = start_second_stage({"pruned": 0.5}, {"pruned": 0.75}, mask=mask)
    first = [p.detach().clone() for p in list_matrices(training.stack.network)]
    last = [p.detach() for p in list_matrices(finished(training).network)]
    for replica, share in enumerate((0.5, 0.75)):
        gone = torch.cat([(p[replica] == 0).flatten() for p in last])
        assert gone.sum() == int(share * len(gone))
        assert torch.equal(gone, torch.cat([(p[replica] == 0).flatten() for p in first]))
    assert all(not torch.equal(a, b) for a, b in zip(first, last, strict=True))


def test_a_random_mask_does_not_depend_on_the_weights():
    def draw(lr: float) -> list[torch.Tensor]:
        training, _, _ = start_second_stage({"pruned": 0.5}, mask="random", lr=lr)
        return [p == 0 for p in list_matrices(training.stack.network)]

    assert all(torch.equal(a, b) for a, b in zip(draw(0.1), draw(1e-4), strict=True))


def test_one_threshold_holds_for_all_matrices_of_a_replica():
    scores = [torch.tensor([[[5.0, 6.0]], [[1.0, 2.0]]]), torch.tensor([[[1.0, 2.0]], [[5.0, 6.0]]])]
    first, second = choose_largest(scores, torch.tensor([0.5, 0.25]))
    assert first.tolist() == [[[1, 1]], [[0, 1]]]
    assert second.tolist() == [[[0, 0]], [[1, 1]]]
