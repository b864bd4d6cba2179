"""The subject of diagnostics: trained replicas and some training rows, and the quantities that measures need."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from ..encoding.encoding import PAD
from ..replicas.rng import derive_stream, draw_normal, draw_permutations, make_keys
from ..training.losses import compute_gradients, cross_entropy, reduce_to_rows, squared_error
from ..training.replica_stack import ReplicaStack
from ..training.sampler import Batch, Data
from ._applicable import NotApplicable

HELD_VALUES = 1 << 24
"""The most gradient values of single rows in memory at once. It is divided by the parameters of one replica only, so
that no replica's sums depend on the others."""

TEXTS = 64
"""Rows of texts whose features are computed at once."""


class Subject:
    """K trained replicas and the n rows on which they are diagnosed. Everything runs in evaluation mode (dropout and
    the like are off), on copies of the replicas."""

    def __init__(self, stack: ReplicaStack, data: Data, task: str, validation: Data | None = None) -> None:
        """data: the rows, whose labels all replicas share; each has the same weight here. task: `classification` or
        `sequence`. validation: rows of the training distribution that were not trained on, if there are any."""
        self.stack = stack.only(range(len(stack)))
        self.stack.network.eval()
        self.data, self.task, self.validation = data, task, validation

    def __len__(self) -> int:
        """How many rows, n."""
        return len(self.data)

    @property
    def replicas(self) -> int:
        return len(self.stack)

    @property
    def target(self) -> Tensor:
        """The labels as given: classes (n,) or token ids (n, T)."""
        return self.data.target[0]

    @property
    def groups(self) -> Tensor:
        """The environment of each row, (n,). `NotApplicable` if there is only one, or none is known."""
        if self.data.group is None or len(torch.unique(self.data.group)) < 2:
            raise NotApplicable("the training rows come from one environment")
        return self.data.group

    @property
    def classes(self) -> Tensor:
        """The class of each row, (n,). `NotApplicable` for other tasks."""
        if self.task != "classification":
            raise NotApplicable("a text has no class")
        return self.target

    @cached_property
    def features(self) -> Tensor:
        """The input of the last layer, (K, n, width) float64; for texts its mean over the target's tokens.
        `NotApplicable` if the algorithm trains no single network that returns it."""
        network = self.stack.network
        if self.task == "classification":
            if not hasattr(network, "encode"):
                raise NotApplicable("its networks return no features")
            return self.stack.features(*self.data.inputs).double()
        if not hasattr(network, "features"):
            raise NotApplicable("its network returns no features")
        with torch.no_grad():
            pieces = []
            for some in torch.split(self._places, TEXTS):
                inputs = (x[some].expand(self.replicas, *x[some].shape) for x in self.data.inputs)
                states = network.features(*inputs).double()
                real = (self.target[some] != PAD)[None, ..., None].to(states.dtype)
                pieces.append((states * real).sum(2) / real.sum(2).clamp(min=1))
        return torch.cat(pieces, dim=1)

    @cached_property
    def layers(self) -> list[Tensor]:
        """What each hidden layer passes on, the features last: the input of each layer with weights but the first, each
        (K, n, width) float64. `NotApplicable` if there is none."""
        return self.compute_layers(self.data)

    @torch.no_grad()
    def compute_layers(self, data: Data) -> list[Tensor]:
        """The same for other rows."""
        network = self.stack.network
        if self.task != "classification" or not hasattr(network, "encode"):
            raise NotApplicable("its networks return no features")
        inputs = [x.expand(self.replicas, *x.shape) for x in data.inputs]
        read: dict[nn.Module, Tensor] = {}

        def keep(module: nn.Module, given: tuple[Any, ...]) -> None:
            if given and isinstance(given[0], Tensor) and given[0].shape[:2] == (self.replicas, len(data)):
                read[module] = given[0].flatten(2).double()

        weighted = [m for m in network.modules() if any(p.ndim > 2 for p in m.parameters(recurse=False))]
        hooks = [module.register_forward_pre_hook(keep) for module in weighted]
        try:
            network(*inputs)
        finally:
            for hook in hooks:
                hook.remove()
        if len(read) < 2:
            raise NotApplicable("its networks have no hidden layer")
        return list(read.values())[1:]

    @torch.no_grad()
    def logits(self) -> Tensor:
        """The logits of each row with the current weights, (K, n, classes) float64. `NotApplicable` if predictions
        are not the logits of a network."""
        algorithm = self.stack.algorithm
        if algorithm.adapts or not algorithm.gives_logits:
            raise NotApplicable("its predictions are not the logits of a network")
        return algorithm.logits(
            self.stack.network, *(x.expand(self.replicas, *x.shape) for x in self.data.inputs)
        ).double()

    def losses(self, stack: ReplicaStack, rows: Tensor) -> Tensor:
        """The losses (C, m) of a replica stack of C on rows (C, m), given by index.

        Cross-entropy, or the squared error if outputs are not logits; for a text the mean over its tokens."""
        algorithm = stack.algorithm
        if algorithm.adapts:
            raise NotApplicable("it adapts while it predicts, so it has no gradients of its own")
        inputs, target = tuple(x[rows] for x in self.data.inputs), self.target[rows]
        logits = algorithm.logits(stack.network, *inputs)
        errors = cross_entropy(logits, target) if algorithm.gives_logits else squared_error(logits, target)
        return reduce_to_rows(errors, Batch(inputs, target, rows))

    def mean_loss(self, rows: Tensor | None = None) -> Tensor:
        """Each replica's current mean loss, (K,), on the rows with the indices (m,), by default all."""
        places = self._places if rows is None else rows
        return self.losses(self.stack, places.expand(self.replicas, -1)).mean(1)

    @property
    def _places(self) -> Tensor:
        return torch.arange(len(self), device=self.data.lengths.device)

    @property
    def parameters(self) -> list[Tensor]:
        """The trained parameters, each (K, ..)."""
        return list_trainable_parameters(self.stack)

    def gradient(self, rows: Tensor) -> Tensor:
        """The gradient of the mean loss of some rows with respect to all parameters: (K, parameters) float64."""
        return flatten_gradients(compute_gradients(self.mean_loss(rows), self.parameters))

    def draw_noise(self, name: str, draw: int) -> list[Tensor]:
        """Standard normal numbers, (K, ..) as each parameter."""
        keys = derive_stream(self.stack.keys, name, draw)
        return [
            draw_normal(derive_stream(keys, "weight", index), parameter.shape[1:], parameter.dtype)
            for index, parameter in enumerate(self.parameters)
        ]

    @torch.no_grad()
    def set_parameters(self, values: Iterable[Tensor]) -> None:
        """Change the trained parameters."""
        for parameter, value in zip(self.parameters, values, strict=True):
            parameter.copy_(value)

    @property
    def held_rows(self) -> int:
        """The number of rows whose gradients are computed at once."""
        each = sum(parameter[0].numel() for parameter in self.parameters)
        return max(1, min(len(self), HELD_VALUES // max(1, each)))

    def row_gradients(self, replica: int) -> Iterator[Tensor]:
        """The gradient of each row's loss with respect to all parameters of one replica, in blocks of rows: (m,
        parameters) float64, every row once and in order.

        The replica is copied for each row along the replica axis, so that each copy has one row's gradient. This works
        for any network, whatever its layers."""
        copies: ReplicaStack | None = None
        for some in torch.split(self._places, self.held_rows):
            if copies is None or len(copies) != len(some):
                copies = self.stack.only([replica] * len(some))
                copies.network.eval()
            losses = self.losses(copies, some[:, None])[:, 0]
            yield flatten_gradients(compute_gradients(losses, list_trainable_parameters(copies)))


def list_trainable_parameters(stack: ReplicaStack) -> list[Tensor]:
    return [parameter for parameter in stack.network.parameters() if parameter.requires_grad]


def flatten_gradients(by_parameter: tuple[Tensor, ...]) -> Tensor:
    """Flatten gradients by parameter, each (K, ..), to one row for each replica: (K, all) float64."""
    return torch.cat([gradient.flatten(1).double() for gradient in by_parameter], dim=1)


def sample_rows(data: Data, benchmark: str, most: int) -> Data:
    """Draw at most `most` of the training rows that have a weight in some replica. The benchmark's name seeds the draw:
    it is the same for every recipe and seed that trains on these rows."""
    places = torch.nonzero((data.weight > 0).any(0))[:, 0].cpu()
    order = draw_permutations(make_keys([f"{benchmark}/diagnostics"]), len(places))[0]
    return select_rows(data, places[order[:most]].sort().values.to(data.lengths.device))


def select_rows(data: Data, rows: Tensor) -> Data:
    """The rows with the given indices, without columns in which all of them are padding."""
    inputs: tuple[Any, ...] = tuple(x[rows] for x in data.inputs)
    target, lengths = data.target[:, rows], data.lengths[rows]
    if target.ndim == 3:
        target = target[..., : int(lengths.max())]
        read = int((inputs[0] != PAD).any(0).sum())
        inputs = (inputs[0][:, :read], target[0])
    group = None if data.group is None else data.group[rows]
    return Data(inputs, target, lengths, data.weight[:, rows], group)
