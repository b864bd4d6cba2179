"""Training: the same seed the same result, its candidates, its seconds, its precision, and how many are stacked."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from farshift.baselines.baseline import Baseline
from farshift.baselines.running.sweep import run_baseline
from farshift.baselines.training import stack_size as stacking
from farshift.baselines.training.losses import average_over_batch, cross_entropy, squared_error
from farshift.baselines.training.sampler import Batch
from farshift.baselines.training.step_computation import compute_in
from farshift.baselines.training.trainer import Training
from farshift.baselines.training.training_rows import FitInput, Member
from farshift.benchmarks.benchmark import Benchmark, find_benchmark
from farshift.benchmarks.model import Budget
from farshift.benchmarks.model_inputs import load
from farshift.core.errors import ModelError
from torch import Tensor

from .killed_groups import answers, fitted, killed_before, made, rows
from .plain_loops import case, settings, stack
from .toys import ADD, additions, recipe, trained
from .toys import Rows as Table

SHORT = recipe("mlp", 20, lr=0.01, batch_size=16)


def probabilities(model: Baseline) -> np.ndarray:
    return model.predict(additions().only("a", "b")).scores  # type: ignore[union-attr]


def test_the_same_seed_gives_the_same_bits_whatever_the_global_generator_and_another_seed_others() -> None:
    built = recipe("mlp", 20, dropout=0.2, batch_size=16)
    torch.manual_seed(1)
    first = probabilities(trained(built, ADD, additions(), seed=0))
    torch.manual_seed(2)
    assert (probabilities(trained(built, ADD, additions(), seed=0)) == first).all()
    assert (probabilities(trained(built, ADD, additions(), seed=1)) != first).any()


def test_the_global_generator_is_left_as_it_was() -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    trained(SHORT, ADD, additions())
    assert torch.equal(before, torch.get_rng_state())


def test_settings_in_a_sweep_are_the_settings_run_one_by_one() -> None:
    """Floats are stacked; what else differs (a width, an optimiser) has replica stacks of its own."""
    each = [{}, {"lr": 0.1}, {"lr": 0.003, "weight_decay": 0.1}, {"width": 9}, {"width": 9, "lr": 0.1}]
    each.append({"optimiser": "sgd", "lr": 0.5})
    members = [Member(0, settings) for settings in each]
    fit = fitted(made(), members)
    together = answers(fit)
    assert [fit.replica(member).remarks["replicas"] for member in members] == [3, 3, 3, 2, 2, 1]
    for member in members:
        (alone,) = answers(fitted(made(), [member])).values()
        assert np.abs(np.array(alone) - together[f"{member.label} last"]).max() < 1e-5
    assert len({str(result) for result in together.values()}) == len(each)


def test_a_weighted_row_decides_between_two_contradicting_ones() -> None:
    contradicting = Table(a=[3, 3, 0, 6], b=[3, 3, 0, 6], sum=[1, 5, 0, 2], weight=[1, 9, 1, 1])
    for own in ({"batch_size": 24}, {"batch_size": 0}, {"batch_size": 0, "chunk": 2}):
        model = trained(recipe("mlp", 60, lr=0.01, **own), ADD, contradicting)
        assert model.predict({"a": np.array([3]), "b": np.array([3])}).prediction.tolist() == [5]  # type: ignore[union-attr]


def test_a_weight_that_is_not_positive_is_refused() -> None:
    table = additions()
    table.columns["weight"][3] = 0
    with pytest.raises(ModelError, match="^toy on toy/toy: a training row has a weight that is not positive$"):
        trained(SHORT, ADD, table)


def test_steps_given_by_the_budget_win() -> None:
    remarks = Baseline(SHORT, ADD, 0, "toy/toy").fit(additions(), None, Budget("quick", steps=3))
    assert remarks["steps"] == 3
    assert remarks["replicas"] == 1
    assert 0 < remarks["loss"] < 10


def test_candidates_are_what_would_be_predicted_if_training_ended_there() -> None:
    """Where the schedule does not look ahead, the one of step s is a training of s steps."""
    member = Member(0, {})
    fit = fitted(made(candidates=3), [member, Member(1, {})])
    assert list(fit.replica(member).checkpoint_stacks) == ["step-4", "step-8", "last"]
    result = answers(fit)
    for steps, name in ((4, "step-4"), (8, "step-8"), (12, "last")):
        (shorter,) = answers(fitted(made(steps=steps), [member])).values()
        assert np.abs(np.array(shorter) - result[f"0 {name}"]).max() < 1e-6


def test_more_candidates_than_steps_are_one_a_step() -> None:
    member = Member(0, {})
    assert list(fitted(made(steps=2, candidates=9), [member]).replica(member).checkpoint_stacks) == ["step-1", "last"]


def test_a_replica_that_stopped_early_has_no_later_candidates_and_the_others_have() -> None:
    train = rows().train
    members = [Member(0, {"lr": 0.01}), Member(0, {"lr": 1.0})]
    fit = fitted(made(candidates=3, check_every=1, patience=1), members, given=FitInput(train, train))
    assert [list(fit.replica(member).checkpoint_stacks) for member in members] == [
        ["step-4", "step-8", "last"],
        ["last"],
    ]
    result = answers(fit)
    assert len(result) == 4


def test_early_stopping_keeps_the_state_of_its_best_look() -> None:
    train = rows().train
    member = Member(0, {"lr": 1.0})
    stopped = fitted(made(check_every=1, patience=1), [member], given=FitInput(train, train))
    steps = int(stopped.replica(member).remarks["steps"])
    assert 1 < steps < 12
    (best,) = answers(fitted(made(steps=steps - 1), [member])).values()
    (stored,) = answers(stopped).values()
    assert np.abs(np.array(stored) - best).max() < 1e-6


def test_padding_is_no_target() -> None:
    words, target = torch.randn(1, 2, 3, 6), torch.tensor([[[4, 5, 2], [5, 2, 0]]])

    def loss(logits: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        return average_over_batch(
            cross_entropy(logits, ids), Batch((), ids, torch.zeros(ids.shape[:2], dtype=torch.int64))
        )

    apart = loss(words[:, :1], target[:, :1]) * 3 + loss(words[:, 1:, :2], target[:, 1:, :2]) * 2
    assert torch.allclose(loss(words, target), apart / 5)


def test_the_squared_loss_is_the_mean_over_rows_and_classes() -> None:
    out, target = torch.randn(1, 5, 7), torch.tensor([[0, 1, 2, 3, 6]])
    hot = torch.nn.functional.one_hot(target, 7).float()
    ours = average_over_batch(squared_error(out, target), Batch((), target, target))
    assert ours.item() == pytest.approx(torch.nn.functional.mse_loss(out, hot).item())


ON = "modadd97/xi35"
SEEDS = [Member(seed, {}) for seed in range(3)]


@pytest.fixture
def spend(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """A clock of trainings that stands still until seconds are spent."""
    clock = [0.0]

    class Watch:
        def __init__(self) -> None:
            self.start = clock[0]

        def seconds(self) -> float:
            return clock[0] - self.start

    for module in ("replica_group", "trainer"):
        monkeypatch.setattr(f"farshift.baselines.training.{module}.Stopwatch", Watch)

    def spent(seconds: float) -> None:
        clock[0] += seconds

    return spent


def each_step_takes(seconds: float, spend: Callable[[float], None], monkeypatch: pytest.MonkeyPatch) -> None:
    step = Training.step
    monkeypatch.setattr(Training, "step", lambda self: (spend(seconds), step(self))[1])


def test_replicas_of_one_stack_have_equal_shares_that_add_up_to_the_training(
    spend: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    each_step_takes(1.0, spend, monkeypatch)
    assert fitted(made(), SEEDS).seconds == 4.0


def test_the_seconds_before_a_kill_are_in_the_checkpoint(
    tmp_path: Path, spend: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    each_step_takes(1.0, spend, monkeypatch)
    full = Training.step
    assert killed_before(Training, "step", 8, lambda: fitted(made(), SEEDS, tmp_path)) == -9
    steps: list[int] = []
    monkeypatch.setattr(Training, "step", lambda self: (steps.append(1), full(self))[1])
    fit = fitted(made(), SEEDS, tmp_path)
    assert len(steps) < 12, "it goes on where it was killed"
    assert fit.seconds == fitted(made(), SEEDS, tmp_path).seconds == 4.0


def spent(path: Path, **more: Any) -> list[dict[str, Any]]:
    run = run_baseline("mlp", ON, seeds=3, steps=10, out=path, **more)
    return list(run.card.spent.by_seed.values())


def test_a_ceiling_of_device_seconds_is_held_against_each_seeds_own_share(
    tmp_path: Path, spend: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    each_step_takes(3.0, spend, monkeypatch)
    allowed = [10.0]

    def with_ceiling(name: str) -> Benchmark:
        result = find_benchmark(name)
        protocol = result.definition.protocol
        ceiling = protocol.ceiling.model_copy(update={"device_seconds": allowed[0]})
        protocol = protocol.model_copy(update={"ceiling": ceiling})
        return Benchmark(result.definition.model_copy(update={"protocol": protocol}), result.path)

    monkeypatch.setattr(load, "find_benchmark", with_ceiling)
    assert len(spent(tmp_path / "run")) == 3, "30 seconds of all are 10 of each"
    allowed[0] = 9.9
    with pytest.raises(ModelError, match=r"seed 0: fit used 10 device_seconds, and the protocol allows 9\.9 \(and 2"):
        spent(tmp_path / "less")


def make(network: str, **own: Any) -> Any:
    """Makes a training of so many replicas, and remembers how many were asked for."""
    data, sizes = case(network, 16)

    def training(some: Sequence[int]) -> Training:
        requested.append(len(some))
        names = [f"replica {number}" for number in some]
        return Training(stack(network, [settings(network, **own)] * len(some), data, sizes, 5, names=names), data, 5)

    requested: list[int] = []
    return training, requested


@pytest.mark.parametrize("network", ["mlp", "lstm", "transformer"])
def test_small_steps_are_stacked_all_at_once_on_a_cpu_without_a_clock(
    network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stacking, "measure_step_seconds", None)
    training, _ = make(network, batch_size=4)
    assert stacking.choose_stack_size(training, range(20)) == 20


def test_a_step_that_keeps_a_core_busy_is_taken_by_each_replica_alone() -> None:
    training, requested = make("mlp", batch_size=4000, width=512, depth=2)
    assert stacking.choose_stack_size(training, range(20)) == 1
    assert requested == [1]


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        ({1: 1.0, 4: 4.0, 16: 16.0, 64: 64.0}, 1),
        ({1: 1.0, 4: 1.1, 16: 1.6, 64: 9.0}, 16),
        ({1: 1.0, 4: 1.1, 16: 1.6, 64: 2.0}, 64),
        ({1: 1.0, 4: 1.1, 16: 1.6}, 16),
    ],
)
def test_elsewhere_the_count_of_the_least_time_for_each_is_taken(
    monkeypatch: pytest.MonkeyPatch, cost: dict[int, float], expected: int
) -> None:
    def step_seconds(count: int) -> float:
        if count not in cost:
            raise RuntimeError("out of memory")
        return cost[count]

    monkeypatch.setattr(stacking, "measure_step_seconds", step_seconds)
    assert stacking.measure_stack_size(lambda count: count, 64) == expected  # type: ignore[arg-type, return-value]


REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize("network", ["mlp", "cnn", "resnet", "transformer", "decoder_transformer"])
def test_in_bfloat16_weights_and_gradients_stay_in_single_precision_and_come_near(network: str) -> None:
    data, sizes = case(network, 16)
    built = stack(network, [settings(network)] * 2, data, sizes, 1, torch.float32).network
    inputs = tuple(x.float() if x.is_floating_point() else x for x in data.inputs)
    result: list[list[Tensor]] = []
    for dtype in (torch.float32, torch.bfloat16):
        with compute_in(dtype, "cpu"):
            logits = built(*(x.expand(2, *x.shape) for x in inputs))
        assert logits.dtype == dtype
        result.append([*torch.autograd.grad(logits.float().square().mean(), [*built.parameters()])])
    exact, rough = (torch.cat([x.flatten() for x in gradients]) for gradients in result)
    assert rough.dtype == torch.float32
    assert 0 < (rough - exact).norm() < 0.1 * exact.norm()


@pytest.mark.parametrize(
    ("choice", "why"), [("float8", "use auto, float32 or bfloat16"), ("bfloat16", "it is for training on a GPU")]
)
def test_a_precision_that_there_is_not_is_refused(choice: str, why: str) -> None:
    data, sizes = case("mlp", 16)
    replicas = stack("mlp", [settings("mlp", precision=choice)], data, sizes, 1)
    with pytest.raises(ModelError, match=f"setting precision = '{choice}': {why}"):
        Training(replicas, data, 1)


@pytest.mark.slow
def test_the_script_for_a_gpu_runs_in_small(tmp_path: Path) -> None:
    environment = os.environ | {"OUT": str(tmp_path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "tests/bench/training_gpu.py", "--tiny"]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = {row["what"]: row for row in json.loads((tmp_path / "training_gpu.json").read_text())["rows"]}
    assert rows["phase diagram"]["runs"] == 4
    assert rows["all domain algorithms"]["recipes"] >= 34
