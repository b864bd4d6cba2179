"""Steps taken as graphs lead where plain steps lead; what cannot be a graph goes on in plain steps, and says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.training.checkpoint import resume, save
from farshift.baselines.training.graphs import capture as compiled
from farshift.baselines.training.graphs.capture import Whole
from farshift.baselines.training.sampler import Data
from farshift.baselines.training.trainer import SETTINGS, Training
from farshift.core.errors import ModelError

from .plain_loops import OPTIMISERS, as_float, case, settings, stack

STEPS = 14
EACH: list[dict[str, Any]] = [{"lr": 0.01, "weight_decay": 0.1}, {"lr": 0.003}, {"lr": 0.001, "weight_decay": 0.3}]


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph is run as it was recorded: compiling it takes a minute, and is for the slow tests."""
    monkeypatch.setattr(torch, "compile", lambda run, **_: run)


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    said: list[str] = []
    monkeypatch.setattr(compiled, "say", said.append)
    return said


def rows(network: str) -> tuple[Data, Sizes]:
    """Training rows of two environments, with all that an algorithm may look at."""
    data, sizes = case(network, 16)
    data = replace(data, group=torch.arange(16) % 2)
    return replace(data, unlabelled=data.inputs, held={"id_val": data}), sizes


def training(
    path: str, network: str = "mlp", algorithm: str = "erm", dtype: torch.dtype = torch.float64, **own: Any
) -> Training:
    data, sizes = rows(network)
    data = as_float(data, dtype)
    common = {"batch_size": 4, "dropout": 0.2, "clip": 0.5, "compile": path} | own
    optimiser = common.pop("optimiser", "adamw")
    each = [settings(network, optimiser, algorithm, **(common | one)) for one in EACH]
    return Training(stack(network, each, data, sizes, STEPS, dtype, algorithm), data, STEPS)


def state(done: Training) -> dict[str, torch.Tensor]:
    """Network and algorithm at the end, with what each replica's last loss was."""
    (ended,) = done.outcome.ended
    return dict(ended.state_dict()) | {"losses": done.losses}


def apart(some: Training, others: Training) -> float:
    pairs = zip(state(some).values(), state(others).values(), strict=True)
    return max((a.double() - b.double()).abs().max().item() for a, b in pairs if a.numel())


def both(**case: Any) -> tuple[Training, Training]:
    """The same training in plain steps and as graphs."""
    plain, whole = (training(path, **case) for path in ("never", "always"))
    plain.run()
    whole.run()
    assert plain.whole is None
    return plain, whole


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("schedule", [pytest.param("constant", marks=pytest.mark.slow), "cosine"])
def test_a_recorded_step_is_the_plain_step_under_every_optimiser(optimiser: str, schedule: str) -> None:
    plain, whole = both(optimiser=optimiser, schedule=schedule, warmup_percent=30)
    assert isinstance(whole.whole, Whole)
    assert len(whole.whole.graphs) == 1
    assert apart(plain, whole) <= 1e-12


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(
    "network", ["cnn", "gru", *(pytest.param(name, marks=pytest.mark.slow) for name in ("resnet", "transformer"))]
)
def test_a_recorded_step_is_the_plain_step_of_every_kind_of_network(network: str) -> None:
    plain, whole = both(network=network, weight_decay=0.0)
    assert isinstance(whole.whole, Whole)
    assert apart(plain, whole) <= 1e-10


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(
    ("algorithm", "own"),
    [
        ("sam", {"sharpness": 0.05}),
        ("irm", {"anneal_percent": 50, "penalty_before": 1.0, "restart": True}),
        ("fish", {}),
        ("dann", {"discriminator_width": 4}),
        ("group_dro", {}),
        ("label_smoothing", {"start": 0.4}),
        ("swa", {"every": 2}),
    ],
)
def test_what_an_algorithm_does_around_a_step_is_part_of_the_graph(algorithm: str, own: dict[str, Any]) -> None:
    plain, whole = both(algorithm=algorithm, **own)
    assert isinstance(whole.whole, Whole)
    assert whole.whole.graphs
    assert apart(plain, whole) <= 1e-12


@pytest.mark.usefixtures("recorded")
def test_full_batches_in_chunks_are_one_graph() -> None:
    plain, whole = both(batch_size=0, chunk=5)
    assert isinstance(whole.whole, Whole)
    assert apart(plain, whole) <= 1e-12


@pytest.mark.usefixtures("recorded")
def test_a_step_that_looks_at_tensors_to_decide_goes_on_plainly_and_says_so(lines: list[str]) -> None:
    plain, whole = both(algorithm="co_teaching")
    assert whole.whole is None
    assert len(lines) == 1
    assert lines[0].startswith("steps are not compiled: ")
    assert apart(plain, whole) == 0


def broken_compiler(run: Any, **_: Any) -> Any:
    raise RuntimeError("no compiler here\nand more")


def another_step(run: Any, **_: Any) -> Any:
    """A miscompiled graph: it takes two steps."""

    def twice(*given: Any) -> Any:
        run(*given)
        return run(*given)

    return twice


@pytest.mark.parametrize(
    ("compiler", "why"), [(broken_compiler, "no compiler here"), (another_step, "step lengths from a plain step")]
)
def test_where_compiling_fails_or_is_wrong_plain_steps_go_on_from_where_they_stood(
    compiler: Callable[..., Any], why: str, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "compile", compiler)
    plain, whole = both()
    assert whole.whole is None
    assert len(lines) == 1
    assert lines[0].endswith(why)
    assert apart(plain, whole) == 0


@pytest.mark.usefixtures("recorded")
def test_a_replica_that_fails_in_a_graph_is_told_by_its_step_and_leaves_the_others_alone() -> None:
    plain, whole = (training(path, clip=0.0) for path in ("never", "always"))
    for each in (plain, whole):
        for _ in range(5):
            each.step()
        with torch.no_grad():
            each.stack.network.head.weight[1] = torch.nan
        each.run()
    assert whole.outcome.failed == plain.outcome.failed
    assert "at step 6 of 14" in whole.outcome.failed[1]
    assert whole.stack.number.tolist() == [0, 2]
    assert apart(plain, whole) <= 1e-12


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(
    "optimiser", [pytest.param(name, marks=() if name == "adamw" else pytest.mark.slow) for name in OPTIMISERS]
)
def test_a_training_in_graphs_goes_on_from_its_checkpoint(optimiser: str, tmp_path: Path) -> None:
    whole, half = (training("always", optimiser=optimiser) for _ in range(2))
    whole.run()
    for _ in range(8):
        half.step()
    save(half, tmp_path / "half.npz", "case")
    again = training("always", optimiser=optimiser)
    assert resume(again, tmp_path / "half.npz", "case")
    again.run()
    assert apart(whole, again) <= 1e-12


@pytest.mark.usefixtures("recorded")
def test_batches_of_other_shapes_get_graphs_of_their_own_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "MOST", 1)
    plain, whole = both(network="lstm", batch_size=1)
    assert isinstance(whole.whole, Whole)
    assert len(whole.whole.graphs) == 1
    assert apart(plain, whole) <= 1e-12


def test_steps_are_plain_by_default_on_every_device() -> None:
    assert SETTINGS["compile"] == "never"
    assert training(SETTINGS["compile"]).whole is None


def test_on_a_cpu_steps_are_plain_unless_they_are_asked_to_be_compiled() -> None:
    assert training("auto").whole is None
    assert isinstance(training("always").whole, Whole)


@pytest.mark.parametrize(
    ("own", "why"),
    [
        ({"compile": "sometimes"}, r"setting compile = 'sometimes': use auto, always or never"),
        ({"precision": "float8"}, r"setting precision = 'float8': use auto, float32 or bfloat16"),
        ({"precision": "bfloat16"}, r"setting precision = 'bfloat16': it is for training on a GPU"),
    ],
)
def test_settings_that_there_are_not_are_refused(own: dict[str, Any], why: str) -> None:
    with pytest.raises(ModelError, match=why):
        training(own.pop("compile", "never"), **own)


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "most"), [(torch.float64, 1e-10), (torch.float32, 1e-4)])
def test_a_compiled_step_is_the_plain_step(dtype: torch.dtype, most: float) -> None:
    plain, whole = both(dtype=dtype)
    assert isinstance(whole.whole, Whole)
    assert len(whole.whole.graphs) == 1
    assert apart(plain, whole) <= most
