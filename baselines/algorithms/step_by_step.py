"""A density of local windows, trained once and asked three ways: directly, by way of given variables, or of its own.

    direct       q(target | condition)
    scaffolded   mean over samples of q(target | condition, v_1 ..),  v_i ~ q(. | condition, v_1 .. v_(i-1)), v_i given
    free         the same, where the model also draws which variable comes next, until it is the target

Prystawski et al., NeurIPS 2023. They train one Transformer on the text of windows: the target's name, then
variables and values in random order, the target last. Here the recipe's network gives the probability of a value and a
perceptron the name of the next variable; each step trains them on one place of each window's text, drawn at random.
Both read what is known (1, -1, or 0 where unknown) and a one-hot variable: the one whose value is asked, or the target.
Samples are drawn by the same numbers for all rows, so that no answer depends on the rows beside it. A sample that has
not come to the target in `longest` variables is asked for it then; the released code leaves such samples out. There a
variable may be named again, and gets another value; here each is named once.

Not compared with released code: the released code trains a Transformer on text; these estimators ask a density of
windows in the same three ways.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...core.errors import ModelError
from ..replicas.rng import derive_stream, draw_uniform, make_keys
from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, Build, StepState
from ._perceptron import Perceptron

KIND = "compositional"
CITATION = (
    "Prystawski, Li and Goodman, Why think step by step? Reasoning emerges from the locality of experience, NeurIPS "
    "2023 (arXiv:2304.03843)"
)
TASKS = ("regression",)
SETTINGS: dict[str, Any] = {"estimator": "free", "samples": 10, "longest": 12}
"""estimator: `direct`, `scaffolded` (inputs have the order of the given variables too) or `free`. samples: the paper's
for free generation. longest: the most variables between condition and target."""
LIMITS = {"estimator": ("direct", "scaffolded", "free")}


class Algorithm(BaseAlgorithm):
    def set_up(self) -> None:
        self.estimator = self.hyperparameters["estimator"]
        fields = 3 if self.estimator == "scaffolded" else 2
        self.variables, rest = divmod(self.about.sizes.numbers, fields)
        if rest or not self.variables or self.about.sizes.categories:
            raise ModelError(
                f"step_by_step ({self.estimator}) reads {fields} numbers a variable and nothing else: what is known, "
                "the target and, if scaffolded, the order of the given ones"
            )

    def assemble(self, build: Build) -> Any:
        network = build("weights")
        count = self.variables
        network.namer = self.about.each(lambda: Perceptron([2 * count, network.width, count]), "namer")
        return network

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        categories, numbers = batch.inputs
        known, query, _ = self._split(numbers)
        order = draw_uniform(clock.draw("order"), known.shape[1:], known.dtype)
        position = draw_uniform(clock.draw("place"), known.shape[1:2], known.dtype)
        prefix, following = draw_place(known, query, order, position)
        values = torch.where(query > 0, batch.target[..., None].to(known.dtype), (known + 1) / 2)
        label = (values * following).sum(-1)
        errors = (self._ask(network, categories, prefix, following) - label).square()
        names = cross_entropy(network.namer(torch.cat([prefix, query], -1)), following.argmax(-1))
        return average_over_batch(errors + names, batch)

    def logits(self, network: Any, *inputs: Tensor) -> Tensor:
        """The estimates of the target's probability, (K, n, 1)."""
        categories, numbers = inputs
        known, query, order = self._split(numbers)
        if self.estimator == "direct":
            return self._ask(network, categories, known, query)[..., None]
        samples = self.hyperparameters["samples"]
        longest = self.hyperparameters["longest"]
        known, query, order, categories = (
            x.repeat_interleave(samples, dim=1) for x in (known, query, order, categories)
        )
        estimate = torch.zeros_like(known[..., 0])
        done = torch.zeros_like(estimate, dtype=torch.bool)
        keys = make_keys(["step by step"], known.device)
        for step in range(longest + 1):
            # The same draws for every row: (samples,) each, as often as there are rows.
            name, value = draw_uniform(derive_stream(keys, "sample", step), (2, samples), known.dtype)[0].repeat(
                1, known.shape[1] // samples
            )
            if step == longest:
                following = query
            elif self.estimator == "scaffolded":
                given = (order == step + 1).to(known.dtype)
                following = torch.where(given.any(-1, keepdim=True), given, query)
            else:
                following = self._draw_name(network, known, query, name)
            chance = self._ask(network, categories, known, following).clamp(0, 1)
            reached = (following * query).sum(-1) > 0
            estimate = torch.where(reached & ~done, chance, estimate)
            done = done | reached
            drawn = torch.where(value < chance, 1.0, -1.0).to(known.dtype)[..., None]
            known = torch.where((following > 0) & ~done[..., None], drawn, known)
            if bool(done.all()):
                break
        return estimate.view(len(estimate), -1, samples).mean(-1, keepdim=True)

    def _draw_name(self, network: Any, known: Tensor, query: Tensor, uniform: Tensor) -> Tensor:
        """Draw the next variable of each row, one-hot; none that is known."""
        logits = network.namer(torch.cat([known, query], -1)).masked_fill(known != 0, -torch.inf)
        below = logits.softmax(-1).cumsum(-1)
        at = (below <= (uniform * below[..., -1])[..., None]).sum(-1).clamp(max=self.variables - 1)
        return F.one_hot(at, self.variables).to(known.dtype)

    def _ask(self, network: Any, categories: Tensor, known: Tensor, which: Tensor) -> Tensor:
        """The network's probability, (K, n), that a variable is 1, given what is known. It reads no scaffold."""
        read = [known, which] + ([torch.zeros_like(known)] if self.estimator == "scaffolded" else [])
        outputs: Tensor = network(categories, torch.cat(read, -1))
        return outputs[..., 0]

    def _split(self, numbers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        known, query = numbers[..., : self.variables], numbers[..., self.variables : 2 * self.variables]
        return known, query, numbers[..., 2 * self.variables :]


def draw_place(known: Tensor, query: Tensor, order: Tensor, position: Tensor) -> tuple[Tensor, Tensor]:
    """One place of the text of each window (K, n, V): what is known before it, and the variable there, one-hot. order
    (K, n, V) and position (K, n): uniform draws."""
    member = known != 0
    rank = torch.where(member, order, torch.inf).argsort(-1).argsort(-1)
    before = (position * (member.sum(-1) + 1)).long()[..., None]
    here = (member & (rank == before)).to(known.dtype)
    following = torch.where(here.any(-1, keepdim=True), here, query)
    return torch.where(member & (rank < before), known, 0.0), following
