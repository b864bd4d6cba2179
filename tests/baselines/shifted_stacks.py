"""Cohorts whose data hold inputs of shifted rows and labelled validation rows, and what they answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from farshift.baselines.training.trainer import Training
from torch import Tensor

from .small_stacks import ADAM, begun, rows

IMAGES = Sizes(3, numbers=36, shape=(6, 6))
RESNET: dict[str, Any] = {"widths": [2, 3], "batch_size": 8, "lr": 0.01}
NAMES = ("first", "second", "third")


def wide_rows(count: int = 24, sizes: Sizes | None = None) -> Data:
    """Random rows, with as many validation rows and half as many shifted ones."""
    built = rows(2 * count, sizes)
    first, second = (
        replace(
            built,
            inputs=tuple(x[some] for x in built.inputs),
            target=built.target[:, some],
            lengths=built.lengths[some],
            weight=built.weight[:, some],
            group=built.group[some],  # type: ignore[index]
        )
        for some in (slice(0, count), slice(count, None))
    )
    shifted = (second.inputs[0][::2], 1 - second.inputs[1][::2])
    return replace(first, unlabelled=shifted, held_out={"id_val": second})


def finished(training: Training) -> ReplicaStack:
    """What comes of a training in which every replica reaches the end."""
    ended = training.run().ended
    assert len(ended) == 1
    return ended[0]


def asked(stack: ReplicaStack, data: Data, size: int = 10) -> Tensor:
    """A replica stack's logits for the training rows, `size` of them at a time, (K, N, classes)."""
    return stack.answer(*data.inputs, rows=size)


def farthest_answers(
    algorithm: str, *each: Mapping[str, Any], names: Sequence[str] = NAMES, steps: int = 12, **more: Any
) -> float:
    """The largest difference between answers of replicas trained and asked together, and each alone; inf where two
    replicas answer the same, which would say nothing."""
    data = wide_rows(sizes=more.get("sizes"))
    more = {"common": ADAM, "data": data, "steps": steps} | more
    together = asked(finished(begun(algorithm, *each, names=names, **more)), data)
    if torch.equal(together[0], together[1]):
        return float("inf")
    alone = [
        asked(finished(begun(algorithm, item, names=[name], **more)), data)[0]
        for item, name in zip(each, names, strict=True)
    ]
    return float((together - torch.stack(alone)).abs().max())


def steps_of(training: Training) -> Iterator[int]:
    """Each step of a training, before it is made."""
    while not training.done:
        yield training.total
        training.step()


def near(found: Tensor, expected: Tensor, tolerance: float = 1e-10) -> bool:
    return torch.allclose(found.detach(), expected.detach(), rtol=0, atol=tolerance)
