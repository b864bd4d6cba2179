"""What parts of algorithms compute of made-up values, without a training."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch
from farshift.baselines.algorithms import confident_learning
from farshift.baselines.algorithms.bbse import estimate_class_ratios
from farshift.baselines.algorithms.eiil import optimise_assignment
from farshift.baselines.algorithms.ipr_pruning import compute_fourier_ratio
from farshift.baselines.algorithms.irm import compute_slopes
from farshift.baselines.algorithms.pego import compute_overlap
from farshift.baselines.algorithms.progressive import Algorithm
from farshift.baselines.algorithms.swad import LossValley
from farshift.baselines.replicas.hyperparameters import Hyperparameters
from farshift.baselines.replicas.rng import make_keys
from farshift.baselines.training.algorithm import StepState
from farshift.baselines.training.sampler import Batch
from torch import Tensor, nn

from .. import draws, toy

ROWS = 60


def labels() -> Tensor:
    """(ROWS,), of which every fifth is another class than the probabilities lean to."""
    position = torch.arange(ROWS)
    return (position + (position % 5 == 0).long()) % toy.CLASSES


def probabilities() -> Tensor:
    """(ROWS, CLASSES)."""
    leaning = torch.nn.functional.one_hot(torch.arange(ROWS) % toy.CLASSES, toy.CLASSES)
    return (1.6 * toy.wave((ROWS, toy.CLASSES), 0.9) + 1.4 * leaning).softmax(-1)


def run_confident(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What confident learning counts on sixty rows whose out-of-sample probabilities are given: the confident joint,
    the joint distribution, and which rows are pruned. `confident`, `joint` and `pruned`."""
    output, given = probabilities()[None], labels()[None]
    joint = confident_learning.estimate_joint(output, given)
    return {
        "confident": confident_learning.compute_confident_joint(output, given)[0].tolist(),
        "joint": joint[0].tolist(),
        "pruned": confident_learning.find_pruned_rows(output, given, joint)[0].long().tolist(),
    }


def scores() -> tuple[Tensor, Tensor, Tensor]:
    """The score of class 1 above class 0 of 24 rows, their labels, and where their shares begin."""
    labels = torch.arange(24) % 3 % 2
    return 2 * toy.wave((24,), 0.2), labels, 0.5 * toy.wave((24,), 1.9)


def predictions() -> tuple[Tensor, Tensor, Tensor]:
    """Predicted classes and labels of 40 validation rows, and predicted classes of 25 shifted ones, of three."""
    position = torch.arange(40)
    labels = position % 3
    return torch.where(position % 5 == 0, (labels + 1) % 3, labels), labels, (torch.arange(25) % 7) % 3


def run_estimates(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What EIIL and BBSE read from a plain network's answers, over made-up ones. EIIL's `shares` as logits after its
    steps; BBSE's `estimate_class_ratios`."""
    if algorithm == "bbse":
        predicted, labels, shifted = predictions()
        return {"ratios": estimate_class_ratios(predicted[None], labels, shifted[None], 3)[0].tolist()}
    score, labels, start = scores()
    slope = compute_slopes(torch.stack([torch.zeros_like(score), score], dim=-1)[None], labels[None])
    rate = torch.tensor([settings["rate"]], dtype=torch.float64)
    return {"shares": optimise_assignment(slope, start[None], settings["steps"], rate)[0].tolist()}


SIDE, RANK = 4, 2


def weights_overlapping() -> list[Tensor]:
    """Of queries and of values, (SIDE, SIDE) each."""
    return [toy.wave((SIDE, SIDE), phase) for phase in (0.3, 1.4)]


def updates(groups: int) -> list[tuple[Tensor, Tensor]]:
    """For each of the weights what all groups' updates are made of: down (ranks, SIDE) and up (SIDE, ranks)."""
    ranks = groups * RANK
    return [(toy.wave((ranks, SIDE), 2.0 + at), toy.wave((SIDE, ranks), 4.0 + at)) for at in range(2)]


def run_overlapping(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """How far groups of low-rank updates to two weights are from orthogonal, and the gradient of that.
    `compute_overlap`: its value, then its gradient by down and up of the first and of the second weight."""
    total, parameters = torch.zeros(1, dtype=torch.float64), []
    for weight, pair in zip(weights_overlapping(), updates(settings["groups"]), strict=True):
        down, up = (torch.nn.Parameter(part[None]) for part in pair)
        total = total + compute_overlap(weight[None], down, up, settings["groups"])
        parameters += [down, up]
    return {"overlap": toy.loss_and_gradient(settings["orthogonality"] * total, parameters)}


def weights_participation() -> Tensor:
    """Of five neurons from 31 values, (5, 31): the later, the less of a wave."""
    wave = torch.cos(2 * torch.pi * 3 * torch.arange(31, dtype=torch.float64) / 31)
    share = torch.linspace(0, 1, 5, dtype=torch.float64)[:, None]
    return (1 - share) * wave + share * toy.wave((5, 31), 0.3)


def run_participation(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Inverse participation ratios of made-up weights: waves, noise, and what lies between. `ratios` (5)."""
    return {"ratios": compute_fourier_ratio(weights_participation()).tolist()}


LOOKS = 30


def losses() -> Tensor:
    """Of 8 trainings at 30 looks, (8, LOOKS): valleys, some of which end before training does."""
    looks, middle = torch.arange(LOOKS, dtype=torch.float64), torch.arange(8, 24, 2, dtype=torch.float64)
    return 1 + 0.06 * (looks - middle[:, None]).abs() + 0.1 * toy.wave((8, LOOKS), 0.7)


def run_valleys(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Where SWAD begins and ends to average, over made-up validation losses; the weights of look i are the number i.
    For each training the look at which averaging begins, the level, the look at which it ends, and where it is
    asked for the `means`."""
    rows = losses()
    result = LossValley([torch.zeros(len(rows), 1).double()], settings["converge"], settings["tolerance"], rows[:, 0])
    for position, loss in enumerate(rows.unbind(1), 1):
        result.look(
            [torch.full((len(rows), 1), float(position)).double()],
            loss,
            torch.tensor(settings["ratio"], dtype=torch.float64),
        )
    output: dict[str, Any] = {name: getattr(result, name).double().tolist() for name in ("start", "level", "end")}
    if settings["converge"] == settings["tolerance"]:
        output["means"] = result.mean.values[0][:, 0].tolist()
    return output


MOST, STEP = 5, 2
"""Iterations in training, and the step whose draws are taken."""


def tokens() -> tuple[Tensor, Tensor]:
    """Six rows of three tokens, (6, 3, INPUTS), and a class above 0 of each, (6, 3)."""
    return toy.inputs().view(6, 3, -1), toy.labels().view(6, 3) + 1


class Thinker(nn.Module):
    """State (.., WIDTH) <- ReLU(A [state, x]); from 0 at first. No axis of replicas."""

    iterations = MOST

    def __init__(self) -> None:
        super().__init__()
        self.recall = nn.Linear(toy.WIDTH + toy.INPUTS, toy.WIDTH, dtype=torch.float64)
        self.head = nn.Linear(toy.WIDTH, toy.CLASSES + 1, dtype=torch.float64)
        toy.fill(self.parameters())

    def begin(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x, x.new_zeros(*x.shape[:-1], toy.WIDTH), torch.ones_like(x[..., :1])

    def think(self, x: Tensor, state: Tensor, seen: Tensor) -> Tensor:
        return torch.relu(self.recall(torch.cat([state, x], dim=-1)))

    def settled(self, state: Tensor, seen: Tensor) -> Tensor:
        return state

    def forward(self, x: Tensor, *_: Any) -> Tensor:
        _, state, seen = self.begin(x)
        for _ in range(MOST):
            state = self.think(x, state, seen)
        logits: Tensor = self.head(state)
        return logits


def run_thinking(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The loss of a small network that thinks in iterations, with its gradient: token by token, without neighbours.
    `loss`: its value, and then its gradient."""
    network, (x, y) = Thinker(), tokens()
    about: Any = SimpleNamespace()
    algorithm = Algorithm(Hyperparameters([{"sharpness": 0.0, **settings}], torch.float64), about)
    batch = Batch((x[None],), y[None], torch.arange(len(x))[None])
    loss = algorithm.loss(network, batch, StepState(STEP, 3, 0, STEP, make_keys([draws.NAME])))
    return {"loss": toy.loss_and_gradient(loss, [*network.parameters()])}
