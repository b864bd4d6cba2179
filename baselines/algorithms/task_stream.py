"""A stream of tasks: training on the first environment, then on the second, .., with rehearsal, evaluated all along.

The environments are the tasks, in the order of their names, with an equal share of the steps each. In the steps of task
k a row is, with probability r (`rehearsed`), one of an earlier task i, chosen with a probability that falls with the
number of tasks since:

    P(i) ~ (k - i)^-d,   i = 1 .. k - 1;   else it is of task k.

r = 0 is sequential finetuning; d = 0 experience replay (Rolnick et al., NeurIPS 2019; r = 1/2 in De Lange et al.); d >
0 the power-law environment of Gandhi et al., where a task comes back the less often the longer ago it was. `memory`
rows of each task are kept for it. Rows are drawn with replacement, and the tasks of a batch by chance.

`curve` has the accuracy of every task after the steps, on the in-distribution validation rows, for the diagnostic
`continual_evaluation`: nothing is trained on them or chosen by them.

Not compared with released code: Gandhi et al.'s formula and exponent were not read beyond the abstract. Permuted digits
are those of their first version; the third, Natural Mitigation of Catastrophic Interference, adds new classes instead.
"""

from typing import Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from ..replicas.rng import derive_stream, draw_permutations, make_keys
from ..training.sampler import select_batch
from . import Batch, StepState
from ._plain import compute_shared_logits
from ._rows import ChosenRows, sample_by_weight

KIND = "domain"
CITATION = (
    "Gandhi, Shah, Marupudi and Varma, Catastrophic interference is mitigated in naturalistic power-law learning "
    "environments, 2024 (arXiv:2401.10393); evaluated as De Lange, van de Ven and Tuytelaars, Continual evaluation for "
    "lifelong learning: identifying the stability gap, ICLR 2023 (arXiv:2205.13452)"
)
TOUCHES = ("train", "groups", "id_val")
SETTINGS: dict[str, Any] = {"rehearsed": 0.5, "exponent": 1.0, "memory": 0, "evaluate_every": 1}
"""rehearsed: r, the share of rows of earlier tasks. exponent: d. memory: rows kept of each earlier task, 0 for all.
evaluate_every: steps between two evaluations; there is one at the end of each task too."""
SEARCH: dict[str, Any] = {"rehearsed": ["choice", 0.1, 0.25, 0.5], "exponent": ["choice", 0.0, 0.5, 1.0, 2.0]}
LIMITS = {"rehearsed": "at least 0 and below 1"}


class Algorithm(ChosenRows):
    curve: Tensor
    memory: Tensor

    def set_up(self) -> None:
        """`ModelError` for full batches, fewer than two tasks, more tasks than steps, or tasks without validation
        rows."""
        super().set_up()
        data, tasks = self.about.data, self.about.environments
        if not 2 <= tasks <= self.about.steps:
            raise ModelError(f"task_stream needs two environments or more, and a step for each: {tasks} here")
        assert data.group is not None
        held_out = data.held_out.get("id_val")
        if held_out is None or held_out.group is None or set(range(tasks)) - set(held_out.group.tolist()):
            raise ModelError("task_stream evaluates on id_val, which lacks rows of some task: choose another benchmark")
        self.ends = [self.about.steps * (task + 1) // tasks - 1 for task in range(tasks)]
        """The last step of each task."""
        device = data.lengths.device
        self.register_buffer(
            "curve", torch.full((self.about.replicas, self.about.steps, tasks), torch.nan, device=device)
        )
        usable = torch.ones(self.about.replicas, len(data), dtype=torch.bool, device=device)
        keys = derive_stream(make_keys(self.about.names, device), "task_stream/memory")
        for task in range(tasks if self.hyperparameters["memory"] else 0):
            rows = torch.nonzero(data.group == task)[:, 0]
            order = draw_permutations(derive_stream(keys, "task", task), len(rows))
            usable.scatter_(1, rows[order[:, self.hyperparameters["memory"] :]], False)
        self.register_buffer("memory", usable)

    def find_task(self, step: int) -> int:
        """The task of a step, from 0."""
        return next(task for task, end in enumerate(self.ends) if step <= end)

    def compute_task_shares(self, task: int) -> Tensor:
        """The probability of each task in the steps of `task`, (K, tasks) float64."""
        rehearsed, exponent = (
            torch.tensor(self.hyperparameters.exact(name), dtype=torch.float64, device=self.curve.device)[:, None]
            for name in ("rehearsed", "exponent")
        )
        shares = torch.zeros(len(self.curve), len(self.ends), dtype=torch.float64, device=self.curve.device)
        shares[:, task] = 1
        if task:
            ages = torch.arange(task, 0, -1, dtype=torch.float64, device=self.curve.device)
            past = ages ** (-exponent)
            shares[:, :task] = rehearsed * past / past.sum(1, keepdim=True)
            shares[:, task] = 1 - rehearsed[:, 0]
        return shares

    def choose_rows(self, batch: Batch, clock: StepState) -> Batch:
        data, task = self.about.data, self.find_task(clock.step)
        assert data.group is not None
        usable = self.memory | (data.group == task)
        weight = torch.where(usable, data.weight.expand(len(usable), -1).double(), 0.0)
        group = data.group.expand(len(usable), -1)
        total = torch.zeros(len(usable), len(self.ends), dtype=weight.dtype, device=weight.device)
        total.scatter_add_(1, group, weight)
        weight = weight * (self.compute_task_shares(task) / total).gather(1, group)
        return select_batch(data, sample_by_weight(weight, clock.draw("task_stream"), batch.rows.shape[1]))

    def after(self, network: Any, clock: StepState) -> None:
        if (clock.step + 1) % self.hyperparameters["evaluate_every"] == 0 or clock.step in self.ends:
            self.curve[:, clock.step] = self.evaluate(network)

    @torch.no_grad()
    def evaluate(self, network: Any) -> Tensor:
        """The accuracy on each task's validation rows, (K, tasks)."""
        held_out = self.about.data.held_out["id_val"]
        assert held_out.group is not None
        logits = compute_shared_logits(network, held_out, len(self.curve), self.rng)
        correct = (logits.argmax(-1) == held_out.target).to(self.curve)
        each = torch.nn.functional.one_hot(held_out.group, len(self.ends)).to(correct)
        return correct @ each / each.sum(0)
