"""A replica stack: replicas that are trained together as one network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import BadDefinition
from ...core.plugins import load_module
from ..layers.hidden import mark_hidden
from ..replicas.hyperparameters import Hyperparameters
from ..replicas.rng import Rng, make_keys
from ..replicas.stacked import attach_rng, select_replicas
from .algorithm import Algorithm, AlgorithmContext, Build, check_settings, make_replicated
from .sampler import Data

ROWS_AT_ONCE = 512
"""Rows that a network predicts at once, unless it declares a smaller number."""


class ReplicaStack(nn.Module):
    """K replicas of one network under one algorithm, with their settings and names.

    `number` (K,): each replica's index in the stack as it was at the start; replicas that fail or stop early are
    removed. Everything with a replica axis is a parameter or a saved buffer, so that `select_replicas` selects
    replicas completely."""

    number: Tensor
    keys: Tensor

    def __init__(
        self,
        network: str,
        algorithm: str,
        settings: Sequence[Mapping[str, Any]],
        names: Sequence[str],
        sizes: Any,
        task: str,
        data: Data,
        steps: int,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """settings: of each replica, complete; only floats may differ. names: of each replica; they seed everything."""
        super().__init__()
        device = data.lengths.device
        self.names = tuple(names)
        self._make = load_module("baselines/networks", network, "network").Network
        self._sizes, self._each = sizes, [dict(replica_settings) for replica_settings in settings]
        self.hyperparameters = Hyperparameters(settings, dtype).to(device)
        self.register_buffer("number", torch.arange(len(names), device=device))
        self.register_buffer("keys", make_keys(names, device))
        about = AlgorithmContext(algorithm, self.names, task, sizes.outputs, data, steps, sizes)
        plugin = load_module("baselines/algorithms", algorithm, "algorithm")
        check_settings(algorithm, getattr(plugin, "LIMITS", {}), self.hyperparameters)
        if not hasattr(plugin, "Algorithm"):
            raise BadDefinition(f"{plugin.__file__} has no class Algorithm")
        self.algorithm: Algorithm = plugin.Algorithm(self.hyperparameters, about)
        self._move_module(self.algorithm, device, dtype)
        self.rng = Rng(self.keys)
        self.network: Any = self.fresh()

    def fresh(self, stage: int = 0) -> Any:
        """The untrained network; each stage has other initial weights."""
        survivors = self.number.tolist()

        def make(name: str, changed: Mapping[str, Any]) -> Any:
            turns = iter({**self._each[number], **changed} for number in survivors)
            names = [f"{self.names[number]}/{name}" + (f"/{stage}" if stage else "") for number in survivors]
            return make_replicated(lambda: self._make(self._sizes, next(turns)), names)

        network = self.algorithm.assemble(Build(make, stage))
        self._move_module(network, self.keys.device, self.hyperparameters.dtype)
        return network

    def _move_module(self, what: nn.Module, device: torch.device, dtype: torch.dtype) -> None:
        hyperparameters = {id(child) for child in self.hyperparameters.modules()}
        for child in what.modules():
            if id(child) not in hyperparameters:
                child._apply(  # type: ignore[no-untyped-call]
                    lambda x: x.to(device, dtype if x.is_floating_point() else None), recurse=False
                )

    def ready(self) -> None:
        """Pass the layers their noise and the algorithm its names, after the replica stack was made, selected or
        loaded."""
        self.rng = Rng(self.keys, silent=True)
        names = tuple(self.names[number] for number in self.number.tolist())
        self.algorithm.about = replace(self.algorithm.about, names=names)
        mark_hidden(self)
        if (mark := getattr(self.network, "mark_rates", None)) is not None:
            mark()
        attach_rng(self, self.rng)

    def only(self, which: Sequence[int] | Tensor) -> ReplicaStack:
        """A copy with some of the replicas, by their index in this replica stack."""
        subset = select_replicas(self, which)
        subset.ready()
        return subset

    def __len__(self) -> int:
        return len(self.keys)

    @torch.no_grad()
    def answer(self, *inputs: Tensor, rows: int | None = None) -> Tensor:
        """Logits in evaluation mode for inputs (N, ..) shared by all replicas: (K, N, ..); `rows` at once, by default
        as many as the network permits."""
        return self._in_pieces(self.algorithm.logits, inputs, rows)

    @torch.no_grad()
    def features(self, *inputs: Tensor, rows: int | None = None) -> Tensor:
        """Features in evaluation mode for inputs (N, ..) of a classification task: (K, N, width)."""
        return self._in_pieces(lambda network, *x: network.encode(network.embed(*x)), inputs, rows)

    def _in_pieces(self, function: Callable[..., Tensor], inputs: Sequence[Tensor], rows: int | None) -> Tensor:
        """Apply `function(network, *inputs)` to every replica on the same rows, in chunks of rows."""
        if rows is None:
            own = getattr(self.network, "rows_at_once", None)
            rows = ROWS_AT_ONCE if own is None else min(ROWS_AT_ONCE, max(1, own(*inputs)))
        before = self.network.training
        self.network.eval()
        try:
            with self.rng.disabled():
                pieces = [
                    function(
                        self.network,
                        *(x[start : start + rows].expand(len(self), *x[start : start + rows].shape) for x in inputs),
                    )
                    for start in range(0, len(inputs[0]), rows)
                ]
        finally:
            self.network.train(before)
        return torch.cat(pieces, dim=1)
