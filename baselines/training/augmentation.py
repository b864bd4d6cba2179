"""Augment the rows of a step on the device, by the setting `augment` (`augmentations/`).

Each row is augmented anew in each step, depending only on its index in the training data, the step and its replica's
name: there is no state, and other rows, replicas and processes have no effect. Inputs of shifted rows in a batch are
augmented in the same way, by their index in the batch.
"""

from collections.abc import Iterable
from dataclasses import replace
from types import ModuleType

import torch
import torch.nn.functional as F
from torch import Tensor

from ...core.errors import ModelError
from ..augmentations import load_augmentations, parse_augmentation_names
from ..augmentations._draws import Draws
from ..encoding.encoding import Sizes
from ..encoding.images import find_channel_axis, unflatten_images
from ..replicas.hyperparameters import Hyperparameters
from .algorithm import AlgorithmContext
from .replica_stack import ReplicaStack
from .sampler import Batch

READ = {
    "numbers": "rows of numbers without categories",
    "images": "images",
    "colours": "images of one or three channels",
    "spectrograms": "spectrograms, rows of two axes",
}


class Augmentation:
    """The augmentation of each batch of a replica stack."""

    def __init__(self, stack: ReplicaStack) -> None:
        """`ModelError` for an augmentation that cannot read the task's inputs, and for one that mixes labels under an
        algorithm that does not accept mixed labels."""
        self.hyperparameters, self.keys = stack.hyperparameters, stack.keys
        self.sizes = stack.algorithm.about.sizes
        pairs = zip(
            parse_augmentation_names(self.hyperparameters["augment"]),
            load_augmentations(self.hyperparameters["augment"]),
            strict=True,
        )
        self.steps: list[tuple[str, ModuleType]] = [
            (f"{position}/{name}", plugin)
            for position, (name, plugin) in enumerate(pairs)
            if hasattr(plugin, "changed") or hasattr(plugin, "mixed")
        ]
        for name, plugin in self.steps:
            check_augmentation(name.partition("/")[2], plugin, stack.algorithm.about)
            if hasattr(plugin, "mixed") and not stack.algorithm.soft_targets:
                what = type(stack.algorithm).__module__.rpartition(".")[2]
                raise ModelError(
                    f"augmentation {name.partition('/')[2]}: it mixes labels, and the algorithm {what} needs one class "
                    "for each row: use erm"
                )

    def of(self, batches: Iterable[tuple[Batch, Tensor | None]], step: int) -> Iterable[tuple[Batch, Tensor | None]]:
        """The batches of a step, augmented."""
        return ((self._augment(batch, step), share) for batch, share in batches) if self.steps else batches

    @torch.no_grad()
    def _augment(self, batch: Batch, step: int) -> Batch:
        rows = batch.rows.to(self.keys.device)
        numbers, target, weight = batch.inputs[1], batch.target, batch.weight
        other = None if batch.unlabelled is None else batch.unlabelled[1]
        for name, plugin in self.steps:
            if hasattr(plugin, "changed"):
                numbers = self._changed(plugin, name, numbers, rows, step)
                if other is not None:
                    places = torch.arange(other.shape[1], device=rows.device).expand(other.shape[:2])
                    other = self._changed(plugin, f"{name}/unlabelled", other, places, step)
            else:
                numbers, target, weight = self._mixed(plugin, name, numbers, target, weight, step)
        unlabelled = batch.unlabelled if other is None else (batch.unlabelled[0], other)  # type: ignore[index]
        inputs = (batch.inputs[0], numbers)
        return replace(batch, inputs=inputs, target=target, weight=weight, unlabelled=unlabelled)

    def _changed(self, plugin: ModuleType, name: str, numbers: Tensor, rows: Tensor, step: int) -> Tensor:
        return augment_flat_rows(plugin, name, numbers, self.keys, rows, step, self.hyperparameters, self.sizes)

    def _mixed(
        self, plugin: ModuleType, name: str, numbers: Tensor, target: Tensor, weight: Tensor | None, step: int
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Rows mixed with others, with labels as shares of all classes (K, n, classes), or as numbers. The weight of a
        pair is the product of its rows' weights, as if both had been drawn by them."""
        first = torch.zeros((len(self.keys), 1), dtype=torch.int64, device=self.keys.device)
        draws = Draws.of(self.keys, step, first, name, self.hyperparameters)
        x, partner, share = plugin.mixed(_to_plugin_shape(plugin, numbers, self.sizes), draws)
        replicas = torch.arange(len(partner), device=partner.device)[:, None]
        if not target.is_floating_point():
            target = F.one_hot(target, self.sizes.outputs).to(self.hyperparameters.dtype)
        own = share.view(*share.shape, *[1] * (target.ndim - share.ndim)).to(target.dtype)
        target = own * target + (1 - own) * target[replicas, partner]
        weight = None if weight is None else weight * weight[replicas, partner]
        return _to_flat_rows(plugin, x, numbers, self.sizes), target, weight


@torch.no_grad()
def augment_flat_rows(
    plugin: ModuleType,
    name: str,
    numbers: Tensor,
    keys: Tensor,
    rows: Tensor,
    step: int | Tensor,
    hyperparameters: Hyperparameters,
    sizes: Sizes,
) -> Tensor:
    """Apply one augmentation to flat rows (K, n, width). keys: of the replicas. rows: (K, n), indices in the training
    data. name: distinguishes these draws from others of the same step."""
    draws = Draws.of(keys, step, rows.to(keys.device), name, hyperparameters)
    x = _to_plugin_shape(plugin, numbers, sizes)
    return _to_flat_rows(plugin, plugin.changed(x.flatten(0, 1), draws).view(x.shape), numbers, sizes)


def check_augmentation(name: str, plugin: ModuleType, about: AlgorithmContext) -> None:
    """`ModelError` for an augmentation that cannot read the task's inputs."""
    sizes, shape = about.sizes, about.sizes.shape
    axis = find_channel_axis(shape) if shape else None
    channels = 1 if axis is None else shape[axis]
    fits = {
        "numbers": sizes.numbers and not sizes.categories and not sizes.source,
        "images": bool(shape),
        "colours": bool(shape) and channels in (1, 3),
        "spectrograms": len(shape) == 2,
    }
    if plugin.READS not in fits:
        raise ModelError(f"augmentation {name}: READS = {plugin.READS!r}: use one of {', '.join(fits)}")
    if about.task == "sequence" or not fits[plugin.READS]:
        raise ModelError(f"augmentation {name}: it is for {READ[plugin.READS]}, and this task has other inputs")


def _to_plugin_shape(plugin: ModuleType, numbers: Tensor, sizes: Sizes) -> Tensor:
    """Reshape flat rows (K, n, width) to what a plug-in reads."""
    if plugin.READS in ("images", "colours"):
        return unflatten_images(numbers, sizes.shape)
    return numbers.reshape(*numbers.shape[:-1], *sizes.shape) if plugin.READS == "spectrograms" else numbers


def _to_flat_rows(plugin: ModuleType, x: Tensor, like: Tensor, sizes: Sizes) -> Tensor:
    """The inverse of `_to_plugin_shape`."""
    if plugin.READS in ("images", "colours"):
        axis = find_channel_axis(sizes.shape)
        x = x.squeeze(-3) if axis is None else x.movedim(-3, axis - 3)
    return x.reshape(like.shape).to(like.dtype)
