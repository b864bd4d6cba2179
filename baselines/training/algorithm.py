"""The base class of training algorithms: an objective over a replica stack's batches, and other parts of training that
an algorithm may change.

A file of `algorithms/` has, as literals that are read without importing it, `SETTINGS` (defaults) and what else
`recipe.Declaration` names: `KIND` of shift and `CITATION`; `TASKS`, without which it is for classification; `TOUCHES`,
the data it requires (`TOUCHABLE`), without which it is `train` alone; `SEARCH`, ranges for a random search. And `class
Algorithm`, a subclass of the one here: most define `loss` only. Optional: `LIMITS`, the values that settings may have
(`check_settings`).

Everything has a replica axis K. A replica must have the same result alone or among many: losses are (K,), nothing is
averaged over replicas, and randomness comes from `StepState.keys`. What a checkpoint has to save (weights of
environments, moving targets, memories) is a parameter or a saved buffer with the replica axis.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ...core.draws import derive_key
from ...core.errors import ModelError
from ..encoding.encoding import Sizes
from ..recipe import Touchable
from ..replicas.hyperparameters import Hyperparameters
from ..replicas.rng import Rng, derive_stream
from ..replicas.stacked import stack_networks
from .optimiser_step import OptimiserStep
from .sampler import Batch, Data

TOUCHABLE: dict[Touchable, str] = {
    "train": "the training rows and their labels as given",
    "groups": "which environment a training row comes from",
    "id_val": "the labels of in-distribution validation rows",
    "ood_val": "the labels of shifted validation rows",
    "unlabelled": "the inputs of the shifted test rows, during training",
    "test batches": "the inputs of a whole test batch, at prediction time",
    "clean rate": "the fraction of wrong training labels, where it is known",
}


@dataclass(frozen=True)
class Build:
    """Make the recipe's network, untrained, with a replica axis of K. Its initial weights are drawn under the given
    name, and `changed` settings override the recipe's. stage: the stage of training that begins with it."""

    make: Callable[[str, Mapping[str, Any]], Any]
    stage: int = 0

    def __call__(self, name: str, **changed: Any) -> Any:
        return self.make(name, changed)


COMPARE = {"at least": operator.ge, "above": operator.gt, "at most": operator.le, "below": operator.lt}

M = TypeVar("M", bound=nn.Module)

Batches = Callable[[], Iterable[tuple[Batch, Tensor | None]]]
"""Returns a step's batch, or the chunks of a full batch, each with its share (K,)."""
OptimiserSteps = Mapping[str, OptimiserStep]
MakeOptimiserStep = Callable[..., OptimiserStep]
"""Makes an optimiser of `(parameters, rates)`; rates: the name of the setting with the learning rates."""


@dataclass(frozen=True)
class AlgorithmContext:
    """What an algorithm may know before training begins."""

    algorithm: str
    """The algorithm's name."""
    names: tuple[str, ...]
    """The names of the K replicas being trained, which seed everything."""
    task: str
    """`classification`, `sequence` or `regression`."""
    outputs: int
    """The number of classes, of words in the output vocabulary, or 1 for a number."""
    data: Data
    """The training rows, encoded."""
    steps: int
    sizes: Sizes
    """The sizes that the network was built for: outputs, words, the shape of an image."""

    def __deepcopy__(self, _: Any) -> AlgorithmContext:
        return self  # it is never changed, and holds all the data

    @property
    def replicas(self) -> int:
        return len(self.names)

    @property
    def environments(self) -> int:
        return self.data.environments

    def each(self, make: Callable[[], M], name: str) -> M:
        """Make another module with a replica axis of K (a discriminator, a second head): `make` makes one of a single
        replica, its initial weights drawn under each replica's name and this one."""
        return make_replicated(make, [f"{own}/{name}" for own in self.names])


def make_replicated(make: Callable[[], M], names: Sequence[str]) -> M:
    """Make a module with one replica for each name. Its initial weights are drawn from torch's global generator seeded
    by the name; the generator's state is restored."""
    modules = []
    with torch.random.fork_rng(devices=[]):
        for name in names:
            torch.manual_seed(derive_key(name))
            modules.append(make())
    return stack_networks(modules)


def check_settings(
    algorithm: str, limits: Mapping[str, str | tuple[str, ...]], hyperparameters: Hyperparameters
) -> None:
    """`ModelError` for a setting outside its limits: texts to choose from, or bounds such as "above 0 and at most 1"
    ("at least", "below")."""
    for name, allowed in limits.items():
        values = hyperparameters.exact(name) if name in hyperparameters.names else [hyperparameters[name]]
        for value in values:
            if isinstance(allowed, tuple):
                fits, shown = value in allowed, repr(value)
                words = f"{', '.join(allowed[:-1])} or {allowed[-1]}"
            else:
                bounds = (bound.rpartition(" ") for bound in allowed.split(" and "))
                fits = all(COMPARE[words](value, float(number)) for words, _, number in bounds)
                words, shown = f"a number {allowed}", f"{value:g}"
            if not fits:
                raise ModelError(f"setting {name} = {shown} of {algorithm}: use {words}")


@dataclass(frozen=True)
class StepState:
    """The position in training. step: from 0, in this stage. steps: of this stage. total: steps done in all stages."""

    step: int
    steps: int
    stage: int
    total: int
    keys: Tensor
    """A key for each replica, (K,) int64."""

    def draw(self, name: str) -> Tensor:
        """Keys (K,) for one random draw of this step: pass them to `rng.draw_uniform`, `draw_normal`, `draw_beta` or
        `draw_permutations`."""
        return derive_stream(self.keys, name, self.total)


class Algorithm(nn.Module, ABC):
    """Empirical risk minimisation; subclasses define the objective."""

    by_environment = False
    """Whether a batch has equal shares of every environment, `batch_size` rows of each."""
    additive = False
    """Whether the loss of a full batch is the weighted mean of its chunks' losses, so that it may be computed in
    chunks."""
    adapts = False
    """Whether predictions change the network (test-time adaptation); `reset` then undoes the changes."""
    gives_logits = True
    """Whether the softmax of `logits` gives probabilities."""
    remembers = False
    """Whether `loss` records what it saw of the rows, so that it may be computed only once a step."""
    soft_targets = False
    """Whether a batch's targets may be shares of all classes (K, n, classes), as for mixed rows."""

    grows = False
    """Whether the network of a later stage has other shapes than the first."""
    rng: Rng | None = None
    """The replica stack's, whose draws `use_evaluation_mode` turns off."""

    def __init__(self, hyperparameters: Hyperparameters, about: AlgorithmContext) -> None:
        """`ModelError` if steps are sharpness-aware, which computes the loss twice, and the algorithm records rows."""
        super().__init__()
        self.hyperparameters, self.about = hyperparameters, about
        if self.remembers and any(hyperparameters.exact("sharpness")):
            raise ModelError("setting sharpness: this algorithm stores values for each row in its loss: leave it at 0")
        self.set_up()

    def set_up(self) -> None:
        """Called first, with `hyperparameters` and `about` known: check settings, make buffers."""

    @property
    def is_row_mean(self) -> bool:
        """Whether the loss of any batch is the mean of its rows' losses, and a step is one step of one optimiser."""
        return self.additive and not self.by_environment and type(self).update is Algorithm.update

    def assemble(self, build: Build) -> Any:
        """Make the network to be trained: by default the recipe's. Others make several, or add heads."""
        return build("weights")

    def optimiser_steps(self, network: nn.Module, optimiser_step: MakeOptimiserStep) -> OptimiserSteps:
        """Make the optimisers, by name."""
        return {"main": optimiser_step([*network.parameters(), *self.parameters()], "lr")}

    @abstractmethod
    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        """The losses to be minimised, (K,)."""

    def update(self, network: Any, batches: Batches, clock: StepState, optimiser_steps: OptimiserSteps) -> Tensor:
        """One training step; returns the losses (K,) to be monitored."""

        def closure() -> Tensor:
            losses: Tensor | None = None
            for batch, share in batches():
                if share is None:
                    return self.loss(network, batch, clock)
                part = self.loss(network, batch, clock) * share.to(self.hyperparameters.dtype)
                part.sum().backward()  # type: ignore[no-untyped-call]
                losses = part.detach() if losses is None else losses + part.detach()
            assert losses is not None
            return losses

        return optimiser_steps["main"].step(closure)

    def after(self, network: Any, clock: StepState) -> None:
        """Called after each step."""

    def stages(self, steps: int) -> tuple[int, ...]:
        """The number of steps of each stage of training; their sum is `steps`."""
        return (steps,)

    def next_stage(self, stage: int, network: Any, data: Data, answer: Callable[..., Tensor]) -> tuple[Data, bool]:
        """Between stages: the data of the next stage (`data.changed(weight, target)`), and whether it begins with a
        fresh network. `answer(*inputs)` is `logits` in evaluation, for any number of rows (N, ..): (K, N, ..)."""
        return data, False

    def finish(self, network: Any, data: Data, answer: Callable[..., Tensor]) -> None:
        """Called once after the last step, in evaluation mode: swap averages in, refit heads."""

    def logits(self, network: Any, *inputs: Tensor) -> Tensor:
        """Predictions for inputs (K, n, ..): logits (K, n, classes), or numbers (K, n, 1). An adaptive algorithm learns
        from them too."""
        outputs: Tensor = network(*inputs)
        return outputs

    def reset(self, network: Any) -> None:
        """Undo what was learned while predicting."""
