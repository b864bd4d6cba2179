"""Curriculum learning: training starts with the easiest rows and adds harder ones.

Bengio et al., ICML 2009: a sequence of reweighted training distributions Q_t(z) ~ W_t(z) P(z), W_t rising to 1. Here
W_t(z) is 1 where z is among the easiest share c(t) of all weight and 0 elsewhere, with the competence function of
Platanios et al., NAACL 2019 (arXiv:1903.09848), equation 6:

    c(t) = min(1, (t / T (1 - c_0^p) + c_0^p)^(1/p)),   p = 1 linear, p = 2 the root.

While c < 1, batches are drawn from Q_t with replacement; then epochs of all rows go on as in plain training.

Difficulty is the number of tokens of a row's answer, then of its input; or, for any task, the loss of the same network
after a first stage of plain training, after which training begins anew ("self-taught": Hacohen and Weinshall, ICML
2019, arXiv:1904.03626). Orders `hard` and `random` are the controls that a gain must be measured against: Wu, Dyer and
Neyshabur, ICLR 2021 (arXiv:2012.03107), found that most of it is in the growing size of the set.

Not compared with released code: no code of the paper is known; order, pace and batches are from different papers.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from ..encoding.encoding import PAD
from ..replicas.rng import derive_stream, draw_permutations, make_keys
from ..training.losses import cross_entropy, reduce_to_rows
from ..training.sampler import select_batch
from . import Batch, Data, StepState
from ._rows import ChosenRows, sample_by_weight

KIND = "easy-to-hard"
CITATION = (
    "Bengio, Louradour, Collobert and Weston, Curriculum learning, ICML 2009; pace as Platanios et al., "
    "Competence-based curriculum learning for neural machine translation, NAACL 2019 (arXiv:1903.09848)"
)
TASKS = ("classification", "sequence")
SETTINGS: dict[str, Any] = {
    "difficulty": "length",
    "order": "easy",
    "start": 0.1,
    "until": 0.5,
    "power": 1.0,
    "teacher_percent": 20,
}
"""difficulty: `length` (texts) or `self-taught`. order: `easy`, `hard` or `random` rows first. start: c_0, the share at
first. until: the share of the steps after which all rows are in. power: p. teacher_percent: of the steps, in the first
stage of `self-taught`."""
SEARCH: dict[str, Any] = {
    "start": ["choice", 0.01, 0.04, 0.1, 0.2, 0.4],
    "until": ["choice", 0.1, 0.25, 0.5, 0.75],
    "power": ["choice", 1.0, 2.0],
}
LIMITS = {"order": ("easy", "hard", "random"), "difficulty": ("length", "self-taught")}
LOOK_ROWS = 1024
"""Rows whose losses are computed at once: logits of long texts are large."""


class Algorithm(ChosenRows):
    order: Tensor

    def set_up(self) -> None:
        """`ModelError` for full batches, which hold all rows, and for unknown settings."""
        super().set_up()
        data, rows = self.about.data, len(self.about.data)
        self.self_taught = self.hyperparameters["difficulty"] == "self-taught"
        if self.self_taught:
            if len(self.stages(self.about.steps)) == 1:
                raise ModelError(
                    f"setting difficulty = 'self-taught': {self.about.steps} steps with teacher_percent = "
                    f"{self.hyperparameters['teacher_percent']} leave the teacher no step: use more steps"
                )
            order = torch.arange(rows, device=data.lengths.device).repeat(self.about.replicas, 1)
        elif self.about.task != "sequence":
            raise ModelError(f"setting difficulty = 'length': a {self.about.task} task has no lengths, use self-taught")
        else:
            read = (data.inputs[0] != PAD).sum(1)
            order = self._ordered((data.lengths * (int(read.max()) + 1) + read).expand(self.about.replicas, -1))
        self.register_buffer("order", order)

    def _ordered(self, difficulty: Tensor) -> Tensor:
        """Rows in the order in which they are added, (K, N), from their difficulty (K, N); ties in row order."""
        match self.hyperparameters["order"]:
            case "random":
                turn = derive_stream(make_keys(self.about.names, difficulty.device), "curriculum/order")
                return draw_permutations(turn, difficulty.shape[1])
            case order:
                return difficulty.argsort(dim=1, stable=True, descending=order == "hard")

    def stages(self, steps: int) -> tuple[int, ...]:
        first = steps * self.hyperparameters["teacher_percent"] // 100
        return (first, steps - first) if self.self_taught and first else (steps,)

    def next_stage(self, stage: int, network: Any, data: Data, answer: Callable[..., Tensor]) -> tuple[Data, bool]:
        losses = []
        for start in range(0, len(data), LOOK_ROWS):
            some = slice(start, start + LOOK_ROWS)
            logits = answer(*(x[some] for x in data.inputs))
            target = data.target[:, some].expand(len(logits), *data.target[:, some].shape[1:])
            losses.append(reduce_to_rows(cross_entropy(logits, target), Batch((), target, target)))
        self.order = self._ordered(torch.cat(losses, dim=1))
        return data, True

    def share(self, clock: StepState) -> Tensor:
        """c(t), the share of all weight that is included, (K,)."""
        least: Tensor = self.hyperparameters["start"]
        power: Tensor = self.hyperparameters["power"]
        done = clock.step / (self.hyperparameters["until"] * clock.steps).clamp(min=1)
        lowest = least**power
        return (done * (1 - lowest) + lowest).clamp(max=1) ** (1 / power)

    def choose_rows(self, batch: Batch, clock: StepState) -> Batch:
        """By difficulty; those drawn once all rows are in."""
        teaches = self.self_taught and clock.stage == 0 and len(self.stages(self.about.steps)) > 1
        share = self.share(clock)
        if teaches or bool((share >= 1).all()):
            return batch
        data = self.about.data
        weight = data.weight.expand(len(self.order), -1).gather(1, self.order)
        places = sample_by_weight(weight, clock.draw("curriculum"), batch.rows.shape[1], share)
        rows = self.order.gather(1, places)
        return select_batch(data, torch.where((share >= 1)[:, None], batch.rows, rows))
