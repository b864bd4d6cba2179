"""What a graph needs to know of the training whose steps it takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

from torch import Tensor

if TYPE_CHECKING:
    from ....core.world import World
    from ..algorithm import Clock
    from ..augmentation import Augmentation
    from ..optimiser_step import OptimiserStep
    from ..precision import Precision
    from ..replica_stack import ReplicaStack
    from ..sampler import Batch, Sampler


class StepState(Protocol):
    """The state of a training between two steps (`trainer.Training`), as far as its steps can be graphs."""

    stack: ReplicaStack
    sampler: Sampler
    optimiser_steps: dict[str, OptimiserStep]
    precision: Precision
    augmentation: Augmentation | None
    together: World
    steps: int
    whole: Any
    """What takes its steps as graphs; None once they are plain."""

    @property
    def broken(self) -> Tensor:
        """The step at which each replica's loss was first no number, (K,); -1 where it never was."""

    def batches(self, step: int) -> Iterator[tuple[Batch, Tensor | None]]:
        """The batch of a step, or the chunks of a full one with their shares."""

    def moved(self, clock: Clock) -> Tensor:
        """Take one plain step; the losses (K,)."""
