"""T3A: the head's class weights are replaced by the mean features of test rows confidently predicted as the class.

Training is empirical risk. Each class k has a support set, at first w_k of the linear head alone; a test row with
features z joins that of its predicted class. The `supports` of least entropy are retained, and predictions are made by
z . c_k, with c_k the normalised sum of the normalised supports of k (Iwasawa and Matsuo). A batch joins before it is
predicted, as in their code. Known traps avoided: the released code is meant to retain all supports where filter_K is
-1, and drops the least certain of each class; it labels the first support of a class by the head's prediction for it,
which need not be that class.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from . import Build
from ._adaptive import TestTimeAdaptation, entropy
from ._head import read_head_shape

KIND = "domain"
CITATION = (
    "Iwasawa and Matsuo, Test-time classifier adjustment module for model-agnostic domain generalization, NeurIPS 2021"
)
TOUCHES = ("train", "test batches")
SETTINGS: dict[str, Any] = {"supports": 20}
"""supports: the most per class; 0 for no limit."""
SEARCH: dict[str, Any] = {"supports": ["choice", 1, 5, 20, 50, 100, 0]}


class Algorithm(TestTimeAdaptation):
    supports: Tensor
    """The normalised supports (K, classes, supports, width); their sum (K, classes, 1, width) without a limit."""
    entropies: Tensor
    """Of the supports, (K, classes, supports): infinite where there is none."""

    def assemble(self, build: Build) -> Any:
        network = build("weights")
        read_head_shape(network)
        replicas, classes, width = network.head.weight.shape
        shape = replicas, classes, max(1, self.hyperparameters["supports"])
        like = self.hyperparameters["lr"]
        self.register_buffer("supports", like.new_zeros(*shape, width))
        self.register_buffer("entropies", like.new_full(shape, torch.inf))
        return network

    def reset(self, network: Any) -> None:
        weight = network.head.weight.detach()
        self.supports.zero_()
        self.supports[:, :, 0] = F.normalize(weight, dim=-1)
        self.entropies.fill_(torch.inf)
        self.entropies[:, :, 0] = entropy(network.head(weight).detach())

    def adapted(self, network: Any, *inputs: Tensor) -> Tensor:
        z = network.encode(network.embed(*inputs))
        logits = network.head(z)
        chosen = F.one_hot(logits.argmax(-1), logits.shape[-1]).bool()
        rows = F.normalize(z, dim=-1)
        if self.hyperparameters["supports"]:
            self._join(rows, entropy(logits), chosen)
        else:
            self.supports[:, :, 0] += chosen.transpose(1, 2).to(z.dtype) @ rows
        centres = F.normalize(self.supports.sum(2), dim=-1)
        return torch.bmm(z, centres.transpose(1, 2))

    def _join(self, rows: Tensor, entropies: Tensor, chosen: Tensor) -> None:
        """Rows (K, n, width) join the supports of the classes chosen (K, n, classes), where they are certain enough."""
        classes, most = self.entropies.shape[1:]
        theirs = torch.where(chosen, entropies[..., None], torch.inf).transpose(1, 2)
        every = torch.cat([self.entropies, theirs], dim=-1)
        order = every.argsort(dim=-1, stable=True)[..., :most]
        self.entropies.copy_(every.gather(-1, order))
        vectors = torch.cat([self.supports, rows[:, None].expand(-1, classes, -1, -1)], dim=2)
        supports = vectors.gather(2, order[..., None].expand(*order.shape, rows.shape[-1]))
        self.supports.copy_(torch.where(self.entropies.isinf()[..., None], 0.0, supports))
