"""Weak-to-strong learning with an auxiliary confidence loss: a student learns from a weak teacher and from itself.

Burns et al., ICML 2024 (arXiv:2312.09390), equation 1 (section 4.3.2, appendix A.4):

    L = (1 - a) CE(f(x), f_w(x)) + a CE(f(x), h_t(x)),

f_w the teacher's soft labels and h_t the student's own predictions hardened at a threshold t, both without gradient. In
a first stage a teacher learns half of the rows; the student, a fresh network, learns the other half from the teacher's
labels alone. The paper's teacher is a weaker pretrained model that is fine-tuned (section 3): `teacher_weights` names
it, for a pretrained student. `teacher_width` makes the teacher of a student that is trained from scratch a
narrower network. Without either it is the same network stopped early.

t is set in each batch so that the student names a class as often as the teacher does. With two classes that is a
quantile of the student's probability, as in the released code; with more, class c is hardened by how far its
probability p_c is above t_c, the quantile 1 - m_c of p_c in the batch, m_c being the teacher's mean: h_t is the class
for which p_c - t_c is largest. For two classes the two rules are one.

a rises from 0 over the first share `warmup` of the student's steps, as the paper says. (The released code's rise ends
in a jump: until then the weight is the share of all steps done, undivided.)
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...core.errors import ModelError
from ..replicas.rng import derive_stream, draw_permutations, make_keys
from ..training.losses import average_over_batch, cross_entropy
from . import Batch, Build, Data, StepState
from ._plain import TwoStages
from ._rows import compute_selected_mean, take_rows

KIND = "easy-to-hard"
CITATION = (
    "Burns et al., Weak-to-strong generalization: eliciting strong capabilities with weak supervision, ICML 2024 "
    "(arXiv:2312.09390)"
)
SETTINGS: dict[str, Any] = {
    "alpha": 0.5,
    "warmup": 0.2,
    "teacher_rows_percent": 50,
    "teacher_percent": 20,
    "teacher_weights": "",
    "teacher_width": 0,
}
"""alpha: the largest a. warmup: the share of the student's steps in which it rises. teacher_rows_percent: the share of
the rows that the teacher learns. teacher_percent: of the steps that train the teacher. teacher_weights: a teacher's
pretrained weights, `org/name[@revision]` or `./folder`; all else is the student's setting. teacher_width: its `width`;
0: the student's."""
SEARCH: dict[str, Any] = {"alpha": ["choice", 0.0, 0.25, 0.5, 0.75]}
LIMITS = {"batch_size": "above 0"}


class Algorithm(TwoStages):
    first_stage = "teacher_percent"
    taught: Tensor
    weak: Tensor

    def set_up(self) -> None:
        self.teacher = self._teacher()
        self.grows = bool(self.teacher)
        rows, device = len(self.about.data), self.about.data.lengths.device
        order = draw_permutations(derive_stream(make_keys(self.about.names, device), "weak_to_strong"), rows)
        count = rows * self.hyperparameters["teacher_rows_percent"] // 100
        if not 0 < count < rows:
            raise ModelError(
                f"setting teacher_rows_percent = {self.hyperparameters['teacher_rows_percent']}: of {rows} rows the "
                f"teacher gets {count} and the student the rest: both need at least one"
            )
        taught = torch.zeros(self.about.replicas, rows, dtype=torch.bool, device=device)
        self.register_buffer("taught", taught.scatter_(1, order[:, :count], True))
        """Which rows the teacher learns, (K, N)."""
        self.register_buffer("weak", torch.zeros(self.about.replicas, rows, self.about.outputs, device=device))
        """The teacher's probabilities, (K, N, classes)."""

    def _teacher(self) -> dict[str, Any]:
        """The settings in which the teacher's network differs from the student's."""
        given = self.hyperparameters.common
        weights, width = given["teacher_weights"], given["teacher_width"]
        if weights:
            if not given.get("weights"):
                raise ModelError("setting teacher_weights needs a pretrained student: add --fine-tune")
            from ..encoding.token_ids import check_shared

            check_shared(given["weights"], weights, given["inputs"])
        if width and "width" not in given:
            raise ModelError("setting teacher_width: this network has no setting width: leave it at 0")
        named = {"weights": weights, "width": width}
        return {name: value for name, value in named.items() if value}

    def assemble(self, build: Build) -> Any:
        return build("weights", **(self.teacher if build.stage == 0 else {}))

    def next_stage(self, stage: int, network: Any, data: Data, answer: Callable[..., Tensor]) -> tuple[Data, bool]:
        self.weak = answer(*data.inputs).softmax(-1)
        return data.changed(data.weight * ~self.taught, data.target), True

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        logits = network(*batch.inputs)
        if clock.stage == 0:
            return compute_selected_mean(cross_entropy(logits, batch.target), take_rows(self.taught, batch.rows), batch)
        weak = take_rows(self.weak, batch.rows)
        share = (clock.step / (self.hyperparameters["warmup"] * clock.steps).clamp(min=1)).clamp(
            max=1
        ) * self.hyperparameters["alpha"]
        own = F.one_hot(harden_labels(logits.detach().softmax(-1), weak.mean(1)), logits.shape[-1]).to(logits.dtype)
        share = share[:, None, None]
        return average_over_batch(cross_entropy(logits, (1 - share) * weak + share * own), batch)


def harden_labels(probabilities: Tensor, shares: Tensor) -> Tensor:
    """The class of each row, (K, n), from probabilities (K, n, classes), such that a replica's batch has about the
    given shares of each class, (K, classes)."""
    rising = probabilities.sort(dim=1).values
    position = (1 - shares).clamp(0, 1) * (probabilities.shape[1] - 1)
    below, above = position.floor().long()[:, None], position.ceil().long()[:, None]
    threshold = torch.lerp(rising.gather(1, below), rising.gather(1, above), (position - position.floor())[:, None])
    return (probabilities - threshold).argmax(dim=-1)
