"""One model trained by several processes: the steps are those of one process."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import farshift as fs
import numpy as np
import pytest
import torch
from farshift import FarshiftError
from farshift.baselines.encoding.stored_rows import PixelRows
from farshift.baselines.recipe import Recipe
from farshift.baselines.running.sweep import run_baseline
from farshift.baselines.training.distributed import broadcast_from_first, join_processes, share_batches
from farshift.baselines.training.sampler import Batch
from farshift.baselines.training.trainer import Training
from farshift.benchmarks.model import Task
from farshift.core.errors import ModelError
from farshift.core.world import SINGLE_PROCESS, World

from .killed_groups import in_a_child, made
from .toys import ADD, TURN, Rows, additions, commands, recipe, start_training

RATES = {"lr": 0.01}, {"lr": 0.003}


def training(recipe: Recipe, task: Task, rows: Rows, together: World) -> Training:
    """Two replicas in float64, of different learning rates."""
    return start_training(recipe, task, rows, RATES, dtype=torch.float64, world=together)


def weights(trained: Training) -> np.ndarray:
    """All parameters of the replicas that were trained to the end, and the losses that were seen."""
    (stack,) = trained.run().ended
    values = [p.detach().flatten() for p in stack.network.parameters()]
    return torch.cat([*values, torch.tensor(list(trained.outcome.losses.values()))]).numpy()


def by_processes(count: int, folder: Path, go: Callable[[World], np.ndarray]) -> list[np.ndarray]:
    """What each of several processes that exchange gradients comes to."""
    with socket.socket() as result:
        result.bind(("127.0.0.1", 0))
        port = result.getsockname()[1]

    def one(rank: int) -> None:
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank)}
        os.environ["WORLD_SIZE"] = str(count)
        together = World(rank, count, "test")
        with join_processes(together, "cpu"):
            np.save(folder / f"{rank}.npy", go(together))

    others = []
    for rank in range(1, count):
        child = os.fork()
        if child == 0:
            os._exit(0 if in_a_child(lambda rank=rank: one(rank)) == 0 else 1)  # type: ignore[misc]
        others.append(child)
    assert in_a_child(lambda: one(0)) == 0
    assert [os.waitpid(child, 0)[1] for child in others] == [0] * len(others)
    return [np.load(folder / f"{rank}.npy") for rank in range(count)]


def weighted() -> Rows:
    rows = additions()
    rows.columns["weight"] = np.arange(49) % 3 + 1.0
    return rows


CASES: dict[str, tuple[Recipe, Task, Callable[[], Rows]]] = {
    "batches of an odd size": (made(batch_size=7), ADD, additions),
    "sharp steps, clipped": (made(batch_size=9, sharpness=0.05, clip=0.1, optimiser="sgd"), ADD, additions),
    "full batches of weighted rows": (made(batch_size=0), ADD, weighted),
    "full batches in chunks": (made(batch_size=0, chunk=20), ADD, weighted),
    "spectral decoupling": (made("sd", batch_size=8), ADD, additions),
    "texts of unlike lengths": (made(network="lstm", steps=4, width=8, batch_size=6), TURN, commands),
    "two stages": (made("jtt", batch_size=8, first_percent=50), ADD, additions),
}


@pytest.mark.parametrize("case", CASES)
def test_two_processes_take_the_steps_of_one(case: str, tmp_path: Path) -> None:
    recipe, task, rows = CASES[case]
    alone = weights(training(recipe, task, rows(), SINGLE_PROCESS))
    first, second = by_processes(2, tmp_path, lambda world: weights(training(recipe, task, rows(), world)))
    assert (first == second).all(), "to the bit, so that they stay together"
    assert np.abs(first - alone).max() < 1e-10


def test_three_processes_share_every_row_of_a_batch_once() -> None:
    rows = torch.arange(10).repeat(2, 1)
    weight = torch.tensor([[1.0] * 10, [1.0, 2.0] * 5])
    batch = Batch((rows[..., None].double(),), rows % 4, rows, weight)
    pieces = [next(iter(share_batches([(batch, None)], World(rank, 3, "x")))) for rank in range(3)]
    assert torch.cat([piece.rows for piece, _ in pieces], 1).sort(1).values.equal(rows)
    shares = torch.stack([share for _, share in pieces if share is not None])
    assert shares.sum(0).tolist() == pytest.approx([1.0, 1.0])
    assert shares[:, 1].tolist() == pytest.approx([6 / 15, 5 / 15, 4 / 15])
    for piece, _ in pieces:
        assert piece.inputs[0][..., 0].equal(piece.rows.double())
        assert piece.target.equal(piece.rows % 4)


def test_dropout_draws_other_masks_in_each_process(tmp_path: Path) -> None:
    recipe = made(dropout=0.5, batch_size=8)
    keys = by_processes(2, tmp_path, lambda world: training(recipe, ADD, additions(), world).stack.rng.keys.numpy())
    assert not set(keys[0].tolist()) & set(keys[1].tolist())


def test_the_first_process_decides(tmp_path: Path) -> None:
    result = by_processes(2, tmp_path, lambda world: np.array(broadcast_from_first([world.rank + 5], world)))
    assert [item.tolist() for item in result] == [[5], [5]]


@pytest.mark.parametrize(
    ("algorithm", "why"),
    [
        ("irm", "the loss of the algorithm irm is not a mean over rows"),
        ("mixup", "the loss of the algorithm mixup is not a mean over rows"),
        ("elr", "the algorithm elr stores values for each row"),
    ],
)
def test_algorithms_whose_rows_cannot_be_shared_out_are_refused_in_one_line(algorithm: str, why: str) -> None:
    rows = additions()
    with pytest.raises(ModelError) as caught:
        training(made(algorithm), ADD, rows, World(0, 2, "x"))
    assert str(caught.value) == f"{why}, so processes cannot share the rows: train it in one process, without torchrun"


def test_a_batch_that_is_smaller_than_the_world_is_refused() -> None:
    batch = Batch((torch.zeros(1, 2, 1),), torch.zeros(1, 2, dtype=torch.int64), torch.zeros(1, 2, dtype=torch.int64))
    with pytest.raises(ModelError, match="^2 rows cannot be divided among 3 processes: raise batch_size$"):
        next(share_batches([(batch, None)], World(0, 3, "x")))


def test_under_torchrun_no_other_engine_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "x", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(FarshiftError, match="^torchrun starts the processes itself: leave --engine processes out$"):
        run_baseline("mlp", "modadd97/xi35", out=tmp_path / "r", engine="processes")


def launched(out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "farshift"]
    options = ["--on", "modadd97/xi35", "--seeds", "2", "--steps", "20", "--out", str(out)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, *launch, "run", *more, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)


@pytest.mark.slow
def test_farshift_run_under_torchrun_gives_the_run_of_one_process(tmp_path: Path) -> None:
    done = launched(tmp_path / "two", "mlp")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("run: ") == 1, "one process speaks"
    two, item = (
        fs.read_run(tmp_path / "two"),
        run_baseline("mlp", "modadd97/xi35", seeds=2, steps=20, out=tmp_path / "one"),
    )
    assert sorted(path.name for path in two.path.iterdir()) == ["log.jsonl", "predictions.parquet", "run.toml"]
    result, expected = two.predictions(), item.predictions()
    assert result.select(["row_id", "seed", "part"]).equals(expected.select(["row_id", "seed", "part"]))
    scores = [np.array(table["scores"].to_pylist()) for table in (result, expected)]
    assert np.abs(scores[0] - scores[1]).max() < 1e-4


@pytest.mark.slow
def test_what_torchrun_cannot_share_out_ends_in_one_line(tmp_path: Path) -> None:
    done = launched(tmp_path / "run", "elr")
    assert done.returncode != 0
    assert "the algorithm elr stores values for each row, so processes cannot share the rows" in done.stderr
    assert 'File "' not in done.stderr.split("the algorithm elr stores")[0]


def test_a_run_in_one_process_needs_no_group() -> None:
    with join_processes(SINGLE_PROCESS, "cpu"):
        assert broadcast_from_first(["anything"], SINGLE_PROCESS) == ["anything"]
        assert not torch.distributed.is_initialized()


TASK = Task("classification", ("image",), "kind", classes=3)


def trained(together: World) -> np.ndarray:
    pixels = np.random.default_rng(0).integers(0, 256, (40, 4, 4, 3)).astype(np.uint8)
    rows = Rows(image=pixels, kind=np.arange(40) % 3)
    built = start_training(recipe("mlp", 6, batch_size=9, lr=0.01, width=8), TASK, rows, RATES, world=together)
    assert isinstance(built.data.inputs[1], PixelRows)
    return weights(built)


def test_two_processes_take_the_steps_of_one_on_streamed_pictures(tmp_path: Path) -> None:
    alone = trained(SINGLE_PROCESS)
    for result in by_processes(2, tmp_path, trained):
        np.testing.assert_allclose(result, alone, rtol=1e-4, atol=1e-6)
