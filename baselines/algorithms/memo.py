"""MEMO: for each test row, the entropy of the mean prediction over augmented views is minimised, then the network is
reset.

    down  H(1 / B sum_b p(view_b(x))),  one step of gradient descent on all weights, of a copy for each row

Zhang, Levine and Finn, NeurIPS 2022, equation 3, with settings of the released code on CIFAR-10. Views are a window and
a flip (`flip_crop`), then `augmix`, so that rows have to be images; every row has the same B draws, so a prediction
depends on the row alone, not on its batch or on earlier rows. Batch normalisation uses the training moments, in
evaluation as in that code; on ImageNet that code mixes in moments of the views (`batch_norm_adaptation` has the
formula), which is left out here. Rows are processed one by one: each costs as much as a training step on B rows.
"""

import math
from typing import Any

import torch
from torch import Tensor

from ..augmentations import augmix, flip_crop
from ..training.augmentation import augment_flat_rows, check_augmentation
from ..training.losses import compute_gradients
from ..training.optimiser_step import broadcast_values
from ._adaptive import TestTimeAdaptation
from ._weights import preserve_values

KIND = "domain"
CITATION = (
    "Zhang, Levine and Finn, MEMO: test time robustness via adaptation and augmentation, NeurIPS 2022 "
    "(arXiv:2110.09506)"
)
TOUCHES = ("train", "test batches")
SETTINGS: dict[str, Any] = {
    "adaptive_lr": 5e-3,
    "views": 32,
    "shift": 0.125,
    "chains": 3,
    "chain_depth": 0,
    "severity": 1.0,
    "all_operations": False,
}
"""adaptive_lr: of a row's step. views: B. shift: `augmentations/flip_crop.py`. The others:
`augmentations/augmix.py`."""
SEARCH: dict[str, Any] = {"adaptive_lr": ["log10", -4, -2], "views": ["choice", 8, 16, 32, 64]}


class Algorithm(TestTimeAdaptation):
    def set_up(self) -> None:
        super().set_up()
        check_augmentation("augmix", augmix, self.about)

    def adapted(self, network: Any, *inputs: Tensor) -> Tensor:
        parameters = list(network.parameters())
        answers = []
        for row in range(inputs[0].shape[1]):
            row_inputs = [x[:, row : row + 1] for x in inputs]
            with torch.enable_grad():
                grads = compute_gradients(marginal_entropy(network(*self.views(*row_inputs))), parameters)
            with torch.no_grad(), preserve_values(parameters):
                for parameter, gradient in zip(parameters, grads, strict=True):
                    parameter -= broadcast_values(self.hyperparameters["adaptive_lr"], parameter) * gradient
                answers.append(network(*row_inputs))
        return torch.cat(answers, dim=1)

    def views(self, categories: Tensor, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """The inputs of all views of one row, (K, B, ..)."""
        assert self.rng is not None
        count = self.hyperparameters["views"]
        places = torch.arange(count, device=numbers.device).expand(len(numbers), -1)
        given = self.rng.keys, places, 0, self.hyperparameters, self.about.sizes
        seen = numbers.expand(-1, count, -1)
        for name, augmentation in (("moved", flip_crop), ("mixed", augmix)):
            seen = augment_flat_rows(augmentation, f"view {name}", seen, *given)
        return categories.expand(-1, count, -1), seen

    def reset(self, network: Any) -> None:
        """There is no state between rows."""


def marginal_entropy(logits: Tensor) -> Tensor:
    """Of the mean of the softmax probabilities of rows (K, B, classes): (K,)."""
    logs = logits.log_softmax(-1).logsumexp(1) - math.log(logits.shape[1])
    logs = logs.clamp(min=torch.finfo(logs.dtype).min)
    return -(logs * logs.exp()).sum(-1)
