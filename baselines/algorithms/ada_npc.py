"""AdaNPC: nearest-neighbour classification over the features of training rows and of confidently predicted test rows.

Training is empirical risk. The memory holds the normalised features and labels of all training rows; with the k nearest
of a row by cosine similarity,  p(c) = sum over those of label c of softmax(similarity / T),  and a test row whose
largest p is at least beta joins the memory under its predicted label (Zhang et al.). A batch is predicted before it
joins. Known traps avoided: the released code applies a softmax to p, which is a distribution already, so that no row is
surer than e / (e + C - 1) and the larger betas never fire; its memory has the validation rows of the source domains,
here the training rows alone; its settings are chosen by test accuracy.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from . import Build, Data
from ._adaptive import TestTimeAdaptation
from ._plain import compute_shared_features

KIND = "domain"
CITATION = (
    "Zhang, Wang, Jin, Yuan, Zhang, Wang, Jin and Tan, AdaNPC: exploring non-parametric classifier for test-time "
    "adaptation, ICML 2023 (arXiv:2304.12566)"
)
TOUCHES = ("train", "test batches")
SETTINGS: dict[str, Any] = {"k": 100, "temperature": 0.1, "beta": 0.75}
"""k: neighbours. temperature: T. beta: the least certainty with which a test row joins the memory; 1.1 for none."""
SEARCH: dict[str, Any] = {
    "k": ["choice", 1, 5, 10, 20, 50, 100, 200],
    "temperature": ["choice", 0.01, 0.05, 0.1, 0.5],
    "beta": ["choice", 0.0, 0.25, 0.75, 1.1],
}


class Algorithm(TestTimeAdaptation):
    memory: Tensor
    """Normalised features, (K, M, width): those of the training rows, then those of test rows."""
    labels: Tensor
    """Of the memory, (K, M); -1 where there is no row of this replica."""

    def assemble(self, build: Build) -> Any:
        network = build("weights")
        like, shape = self.hyperparameters["lr"], (len(self.ready), len(self.about.data))
        self.register_buffer("memory", like.new_zeros(*shape, network.width))
        self.register_buffer("labels", torch.full(shape, -1, device=like.device))
        return network

    def prepare(self, network: Any, data: Data) -> None:
        self.memory = F.normalize(compute_shared_features(network, data.inputs, len(self.ready), self.rng), dim=-1)
        self.labels = torch.where(data.weight > 0, data.target, -1).expand(len(self.ready), -1).clone()

    def reset(self, network: Any) -> None:
        learned = len(self.about.data)
        self.memory, self.labels = self.memory[:, :learned], self.labels[:, :learned]

    def adapted(self, network: Any, *inputs: Tensor) -> Tensor:
        rows = F.normalize(network.encode(network.embed(*inputs)), dim=-1)
        scores = self._scores(rows)
        certainty, chosen = scores.max(-1)
        joins = certainty >= self.hyperparameters["beta"][:, None]
        some = joins.any(0)
        self.memory = torch.cat([self.memory, rows[:, some]], dim=1)
        self.labels = torch.cat([self.labels, torch.where(joins, chosen, -1)[:, some]], dim=1)
        return scores.clamp(min=torch.finfo(scores.dtype).tiny).log()

    def _scores(self, rows: Tensor) -> Tensor:
        """The class probabilities of rows (K, n, width), (K, n, classes)."""
        probabilities = rows.new_zeros(*rows.shape[:2], self.about.outputs)
        temperatures = self.hyperparameters["temperature"]
        # One replica after the other, each among its own rows: ties are then broken as for a replica alone.
        for own, memory, labels, temperature, scores in zip(
            rows, self.memory, self.labels, temperatures, probabilities, strict=True
        ):
            real = labels >= 0
            near, places = (own @ memory[real].T).topk(min(self.hyperparameters["k"], int(real.sum())), dim=-1)
            scores.scatter_add_(-1, labels[real][places], (near / temperature).softmax(-1))
        return probabilities
