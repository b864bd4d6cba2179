"""CoTTA: a student learns at test time from a weight-averaged teacher over augmented views; some weights are restored
at random.

    student:  down  -sum_c softmax(t)_c log softmax(s)_c,  one step of Adam on all weights
    teacher:  t' <- m t' + (1 - m) s',  its weights after the student's
    restore:  each weight of the student becomes training's with a chance of `restore`

Wang, Fink, Van Gool and Dai, CVPR 2022, equations 1 to 8. s and t are the logits of student and teacher, each batch
normalised by its own moments; where the trained network is unsure of a batch (its mean largest probability is below
`confident`), t is the teacher's mean over `views` augmented views. The answer is t, before the step. Settings are those
of the released code on CIFAR-10. Its views are drawn by a jitter with gamma, an affine map, blur and noise; here by the
augmentation `domainbed` (window, flip, jitter, grey), so that rows have to be images. Views and restored weights are
drawn anew for each batch since the last reset.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..augmentations import domainbed
from ..replicas.rng import derive_stream, draw_uniform
from ..training.augmentation import augment_flat_rows, check_augmentation
from ..training.losses import compute_gradients, cross_entropy
from . import Build
from ._adaptive import OnlineAdam, OnlineAdaptation
from ._norms import use_batch_moments
from ._weights import RunningMean, preserve_values

KIND = "domain"
CITATION = "Wang, Fink, Van Gool and Dai, Continual test-time domain adaptation, CVPR 2022 (arXiv:2203.13591)"
TOUCHES = ("train", "test batches")
SETTINGS: dict[str, Any] = {
    "adaptive_lr": 1e-3,
    "slowness": 0.999,
    "restore": 0.01,
    "confident": 0.92,
    "views": 32,
    "crop_least": 0.7,
    "jitter": 0.3,
    "grey_chance": 0.1,
}
"""adaptive_lr: of the student's steps. slowness: m. The last three: `augmentations/domainbed.py`."""
SEARCH: dict[str, Any] = {"adaptive_lr": ["log10", -5, -2], "restore": ["choice", 0.001, 0.01, 0.1]}


class Algorithm(OnlineAdaptation):
    optimiser_class = OnlineAdam
    batches_seen: Tensor
    """Batches predicted since the last reset, (K,)."""

    def set_up(self) -> None:
        super().set_up()
        check_augmentation("domainbed", domainbed, self.about)

    def assemble(self, build: Build) -> Any:
        network, like = super().assemble(build), self.hyperparameters["lr"]
        self.teacher = RunningMean(self.adapted_parameters(network)).to(like)
        self.register_buffer("batches_seen", torch.zeros(len(like), dtype=torch.int64, device=like.device))
        return network

    def adapted_parameters(self, network: nn.Module) -> list[Tensor]:
        return list(network.parameters())

    def adapted(self, network: Any, *inputs: Tensor) -> Tensor:
        parameters = list(network.parameters())
        with use_batch_moments(network, 0.0):
            with preserve_values(parameters):
                self.start.put(parameters)
                sure = network(*inputs).softmax(-1).max(-1)[0].mean(1) >= self.hyperparameters["confident"]
            with preserve_values(parameters):
                self.teacher.put(parameters)
                teacher_logits: Tensor = network(*inputs)
                if not bool(sure.all()):
                    teacher_logits = torch.where(
                        sure[:, None, None], teacher_logits, self._over_views(network, *inputs)
                    )
            with torch.enable_grad():
                losses = cross_entropy(network(*inputs), teacher_logits.softmax(-1)).mean(1)
                grads = compute_gradients(losses, parameters)
        self.optimiser.step(parameters, grads, self.hyperparameters["adaptive_lr"])
        self._settle(parameters)
        self.batches_seen += 1
        return teacher_logits

    def _over_views(self, network: Any, categories: Tensor, numbers: Tensor) -> Tensor:
        """The mean logits of a batch's views, (K, n, classes)."""
        assert self.rng is not None
        rows = torch.arange(numbers.shape[1], device=numbers.device).expand(numbers.shape[:2])
        total: Tensor | float = 0.0
        for view in range(self.hyperparameters["views"]):
            given = self.rng.keys, rows, self.batches_seen, self.hyperparameters, self.about.sizes
            total = total + network(categories, augment_flat_rows(domainbed, f"view {view}", numbers, *given))
        assert isinstance(total, Tensor)
        return total / self.hyperparameters["views"]

    @torch.no_grad()
    def _settle(self, parameters: Sequence[Tensor]) -> None:
        """Update the teacher towards the student, then restore some of the student's weights to those of training."""
        assert self.rng is not None
        triples = zip(parameters, self.start.values, self.teacher.values, strict=True)
        for index, (student, start, teacher) in enumerate(triples):
            teacher.copy_(student.lerp(teacher, self.hyperparameters.on("slowness", teacher)))
            drawn = draw_uniform(
                derive_stream(self.rng.keys, f"restore {index}", self.batches_seen), student.shape[1:], student.dtype
            )
            student.copy_(torch.where(drawn < self.hyperparameters.on("restore", student), start, student))

    def reset(self, network: Any) -> None:
        super().reset(network)
        self.teacher.take(self.adapted_parameters(network))
        self.batches_seen.zero_()
