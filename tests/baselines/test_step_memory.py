"""What saves memory in a step changes no loss: chunks of a batch, activations computed again, another memory format."""

from typing import Any

import numpy as np
import pytest
import torch
from farshift.baselines.training.trainer import Training
from farshift.benchmarks.model import Task
from farshift.core.errors import ModelError

from .toys import TURN, Rows, commands, recipe, start_training

TASK = Task("classification", ("image",), "kind", classes=3)
STEPS = 4


def images(count: int = 24) -> Rows:
    draw = np.random.default_rng(0)
    kind = np.arange(count) % 3
    pixels = draw.integers(0, 180, (count, 8, 8, 3)) + 60 * (kind[:, None, None, None] == np.arange(3))
    return Rows(image=pixels.astype(np.uint8), kind=kind, group=np.arange(count) // 3 % 2)


def training(network: str, task: Task = TASK, algorithm: str = "erm", **settings: Any) -> Training:
    built = recipe(network, STEPS, algorithm, **({"batch_size": 7, "lr": 0.01} | settings))
    return start_training(built, task, images() if task is TASK else commands(), names=("a", "b"), feed="auto")


def history(given: Training) -> tuple[np.ndarray, torch.Tensor]:
    """The losses after each step, and all parameters and buffers at the end."""
    losses = []
    while not given.done:
        given.step()
        losses.append(given.losses.tolist())
    values = [value.double().flatten() for value in given.stack.network.state_dict().values()]
    return np.array(losses), torch.cat(values)


CHUNKED: dict[str, tuple[str, Task, dict[str, Any]]] = {
    "pictures": ("cnn", TASK, {"widths": [4], "width": 8}),
    "augmented and mixed": ("cnn", TASK, {"widths": [4], "width": 8, "augment": "flip_crop+mixup"}),
    "sharp steps": ("mlp", TASK, {"width": 8, "sharpness": 0.05}),
    "equal shares of environments": ("mlp", TASK, {"width": 8, "each_environment": True}),
    "full batches": ("mlp", TASK, {"width": 8, "batch_size": 0}),
    "texts of unlike lengths": ("transformer", TURN, {"width": 8, "heads": 2, "layers": 1, "feedforward": 16}),
}


@pytest.mark.parametrize("case", CHUNKED)
def test_a_batch_in_chunks_has_the_losses_of_the_whole(case: str) -> None:
    network, task, settings = CHUNKED[case]
    full, _ = history(training(network, task, **settings))
    pieces, _ = history(training(network, task, chunk=3, **settings))
    np.testing.assert_allclose(pieces, full, rtol=0, atol=1e-6)


def test_each_chunk_has_its_rows_and_their_share() -> None:
    given = training("mlp", width=8, chunk=3)
    pieces = list(given.batches(1))
    (full,) = training("mlp", width=8).batches(1)
    assert [batch.rows.shape[1] for batch, _ in pieces] == [3, 3, 1]
    assert torch.equal(torch.cat([batch.inputs[1] for batch, _ in pieces], 1), full[0].inputs[1])
    shares = torch.stack([share for _, share in pieces if share is not None])
    torch.testing.assert_close(shares, torch.tensor([[3 / 7], [3 / 7], [1 / 7]]).double().expand(3, 2))


def test_what_is_no_mean_over_rows_is_not_taken_in_chunks() -> None:
    with pytest.raises(ModelError, match="loss of a batch is not a mean over rows, so it cannot be computed in chunks"):
        training("mlp", algorithm="vrex", width=8, chunk=3)
    assert training("mlp", algorithm="vrex", width=8, chunk=7).data is not None, "a chunk holds the batch"


def test_a_batch_has_as_many_rows_of_each_environment_where_that_is_asked() -> None:
    ((batch, share),) = training("mlp", width=8, each_environment=True).batches(0)
    assert share is None
    assert batch.group is not None
    assert batch.group.tolist() == [[0] * 7 + [1] * 7] * 2
