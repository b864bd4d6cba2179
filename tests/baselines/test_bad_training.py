"""What goes wrong in training costs those it happens to, says so in one line, and nobody else anything."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from farshift import FarshiftError
from farshift.baselines.running.sweep import run_baseline
from farshift.baselines.training import replica_group as teams
from farshift.baselines.training import stack_size as stacking
from farshift.baselines.training import trainer
from farshift.baselines.training.trainer import Training
from farshift.baselines.training.training_rows import Member
from farshift.benchmarks.benchmark import Benchmark
from farshift.benchmarks.model_inputs.rows import ModelInputs
from farshift.benchmarks.selection import Fold, leave_one_group_out
from farshift.core.errors import ModelError
from farshift.core.progress import report_to
from support import Heard

from .killed_groups import answers, fitted, made

ON = "modadd97/xi35"
SEEDS = [Member(seed, {}) for seed in range(4)]


def test_a_loss_that_is_no_number_names_the_replica_and_the_step_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trainer, "FINITE_CHECK_EVERY", 3)
    broken = Member(1, {"lr": 1e30})
    with_it = answers(fitted(made(), [SEEDS[0], broken, SEEDS[2]]))
    without = answers(fitted(made(), [SEEDS[0], SEEDS[2]]))
    assert with_it.pop(broken.label) == (
        'toy/toy/toy/1/{"lr": 1e+30}: the loss is not finite at step 2 of 12: '
        "lower the setting lr (now 1e+30) or set clip"
    )
    assert with_it.keys() == without.keys()
    for name, scores in with_it.items():
        assert np.abs(np.array(scores) - without[name]).max() < 1e-6


def test_the_step_that_is_named_is_the_first_one_and_not_the_one_of_the_look(monkeypatch: pytest.MonkeyPatch) -> None:
    full = Training.step

    def poisoned(self: Training) -> None:
        if self.total == 4:
            with torch.no_grad():
                next(self.stack.network.parameters())[2] = torch.nan
        full(self)

    monkeypatch.setattr(Training, "step", poisoned)
    result = answers(fitted(made(), SEEDS))
    assert [label for label, output in result.items() if isinstance(output, str)] == ["2"]
    assert "at step 5 of 12" in result["2"]


def test_settings_that_cannot_be_cost_their_own_replicas_alone() -> None:
    fit = fitted(made(), [Member(0, {"loss": "cubic"}), Member(0, {})])
    with pytest.raises(ModelError, match="loss = 'cubic'"):
        fit.replica(Member(0, {"loss": "cubic"}))
    assert fit.replica(Member(0, {})).remarks["steps"] == 12


@pytest.fixture(scope="module")
def one_by_one() -> dict[str, Any]:
    return answers(fitted(made(), SEEDS, stack=1))


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory: you tried .."),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        MemoryError("Unable to allocate 8. GiB for an array"),
    ],
    ids=["CUDA", "CPU", "cuBLAS", "NumPy"],
)
def test_half_as_many_are_stacked_where_memory_does_not_suffice(
    error: Exception, one_by_one: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    full, sizes = Training.step, []

    def narrow(self: Training) -> None:
        if self.total == 3:
            sizes.append(len(self.stack))
            if len(self.stack) > 1:
                raise error
        full(self)

    monkeypatch.setattr(teams.gc, "collect", lambda: 0)  # of all that the tests have loaded
    monkeypatch.setattr(Training, "step", narrow)
    with report_to(output := Heard()):
        fit = fitted(made(), SEEDS)
    assert sizes == [4, 2, 1, 1, 1, 1]
    assert output.lines == [
        "there is not enough memory for 4 replicas at once: continuing with 2",
        "there is not enough memory for 2 replicas at once: continuing with 1",
    ]
    assert answers(fit) == one_by_one


def test_memory_that_does_not_suffice_for_one_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(self: Training) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Training, "step", none)
    with pytest.raises(ModelError, match="^there is not enough memory to train one replica: lower batch_size"):
        fitted(made(), SEEDS[:1]).replica(SEEDS[0])


def test_another_runtime_error_is_no_lack_of_memory() -> None:
    with pytest.raises(RuntimeError, match="shapes"):
        stacking.halve_stack(RuntimeError("mat1 and mat2 shapes cannot be multiplied"), 3)


def untouched(out: Path) -> bool:
    return not out.exists()


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("irm", None, "irm: the algorithm irm compares training environments, and the training rows of modadd97/xi35 "
         "come from one: choose a benchmark with several, or erm"),
        ("afn", None, "afn: the algorithm afn trains on inputs of shifted test rows, which the protocol of modadd97/xi35 does "),
        ("t3a", None, "t3a: the algorithm t3a adapts while it predicts, which the protocol of modadd97/xi35 does not permit"),
        ("mlp", {"a": {"wdth": 8}}, "setting a: recipe mlp on modadd97/xi35: no setting named 'wdth': did you mean width"),
        ("mlp", {"a": {}, "b": {"lr": "fast"}}, "setting b: recipe mlp on modadd97/xi35: lr = 'fast' must be of type float, like its default "),
    ],
    ids=["one environment", "shifted rows", "test batches", "unknown setting", "setting of another type"],
)  # fmt: skip
def test_what_cannot_be_trained_is_refused_before_anything_is_begun(
    tmp_path: Path, name: str, settings: dict[str, Any] | None, message: str
) -> None:
    with pytest.raises(FarshiftError) as caught:
        run_baseline(name, ON, seeds=2, steps=1, out=tmp_path / "run", settings=settings)
    assert str(caught.value).startswith(message)
    assert untouched(tmp_path / "run")


def test_a_rule_that_leaves_one_environment_is_refused_where_several_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three environments two are left when a fold is held out; of two, one."""
    on, right = "linear_unit_test_2/shuffled", leave_one_group_out.folds

    def of_two(benchmark: Benchmark, model_inputs: ModelInputs) -> Iterator[Fold]:
        for fold in right(benchmark, model_inputs):
            group = fold.train.columns["group"]
            yield replace(fold, train=fold.train.select(group == group[0]))

    run = {"seeds": 1, "steps": 1, "selection": "leave_one_group_out"}
    run_baseline("irm", on, out=tmp_path / "three", **run)
    monkeypatch.setattr(leave_one_group_out, "folds", of_two)
    with pytest.raises(ModelError, match=r"also trains without the rows of .* come from one environment, and .* irm"):
        run_baseline("irm", on, out=tmp_path / "two", **run)
    assert untouched(tmp_path / "two")
    run_baseline("mlp", on, out=tmp_path / "other", **run)
