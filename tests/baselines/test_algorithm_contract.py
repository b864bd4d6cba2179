"""What holds of every algorithm: replicas that do not touch each other, exact resume, chunks, declarations, refusals.

That it computes its paper's formula is in `test_parity.py`, for one replica; here, that each replica of a stack is that
replica, with settings of its own. What is special to an algorithm is in the file of its family.
"""

import re
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from farshift.baselines.encoding.encoding import PAD, SequenceEncoding, Sizes
from farshift.baselines.recipe import (
    collect_defaults,
    find_plugin_files,
    read_declaration,
    read_literal,
    read_settings,
)
from farshift.baselines.running.plan import explain_unfit
from farshift.baselines.training import trainer
from farshift.baselines.training.algorithm import TOUCHABLE
from farshift.baselines.training.checkpoint import resume_training, save_checkpoint
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from farshift.baselines.training.trainer import Training
from farshift.benchmarks.benchmark import find_benchmark
from farshift.core.errors import ModelError
from torch import Tensor

from .small_stacks import IMAGES, wide_rows
from .toys import PARITY, TURN, bits, commands, recipe

FILES = find_plugin_files("algorithms")
ALGORITHMS = sorted(FILES)
STEPS, CUT_OFF = 12, (2, 7, 12)
NAMES = ("first", "second", "third")

MLP = {"width": 6, "batch_size": 8}
RESNET = {"widths": [2, 3], "batch_size": 8}
CATEGORIES = Sizes(3, categories=(4, 3), numbers=2)
PAIRS = Sizes(5, categories=(5, 5))
WINDOWS = Sizes(1, numbers=6)

NETWORKS: dict[str, tuple[str, Sizes | None, dict[str, Any]]] = {
    **dict.fromkeys(("batch_norm_adaptation", "cotta", "eata", "memo", "sar", "tent"), ("resnet", IMAGES, RESNET)),
    **dict.fromkeys(
        ("augmix", "edge_shape", "fixmatch"), ("cnn", IMAGES, {"widths": [2], "width": 4, "batch_size": 6})
    ),
    "endef": ("mlp", CATEGORIES, MLP),
    "ipr_pruning": ("quadratic_mlp", PAIRS, MLP),
    "progressive": (
        "deep_thinking",
        None,
        {"width": 6, "blocks": 1, "iterations": 4, "batch_size": 4, "optimiser": "sgd"},
    ),
    "meta_compositional": ("lstm", None, {"width": 8, "batch_size": 4, "optimiser": "sgd"}),
    "step_by_step": ("mlp", WINDOWS, MLP),
    "re_ranking": ("lstm", None, {"width": 8, "batch_size": 4}),
    "curriculum": ("lstm", None, {"width": 8, "batch_size": 4}),
}
"""Network, sizes and settings of the algorithms that are not for an MLP on rows of numbers."""

OWN: dict[str, dict[str, Any]] = {
    "ada_npc": {"k": 5},
    "adaptive_sampling": {"rounds": 3},
    "confident_learning": {"folds": 2},
    "cotta": {"views": 2},
    "eiil": {"assignment_steps": 50},
    "hutchinson": {"samples": 20},
    "memo": {"views": 2},
    "t3a": {"supports": 2},
    "udim": {"sam_percent": 20},
}
"""Settings with which twelve steps on 24 rows reach what the algorithm does."""

SPREAD: dict[str, tuple[float, float, float]] = {
    "budget": (0.9, 0.7, 0.5),
    "percentile": (97.0, 90.0, 100.0),
    "t2": (1.2, 2.0, 1.0),
    "sure": (1.1, 0.98, 1.0),
    "prior": (0.0, 4.0, 9.0),
}
"""Values of float settings that replicas cannot have four fifths and three fifths of."""


SMALL = (
    *(f"vowel/speakers{protocol}" for protocol in ("", "_unlabelled", "_adapting")),
    *(
        "modadd97/xi35",
        "copy_repeats/length",
        "skills/pairs",
        "prefix_sums/32_to_64",
        "interventions/held_out",
        "bayes_nets/pairs",
        "spam_assassin/hard_ham",
    ),
)
"""Benchmarks of all five kinds and of each protocol, whose data are small."""


def differing(name: str) -> list[dict[str, Any]]:
    """The settings of three replicas, of which all floats of the algorithm's own differ."""
    floats = {key: value for key, value in read_settings(FILES[name]).items() if isinstance(value, float)}
    values = {key: SPREAD.get(key, (value, 0.8 * value, 0.6 * value)) for key, value in floats.items() if key != "lr"}
    return [{"lr": (0.01, 0.02, 0.03)[k]} | {key: each[k] for key, each in values.items()} for k in range(3)]


def data_of(name: str) -> tuple[str, Data, Sizes]:
    """The task, the rows (with environments, validation rows and inputs of shifted rows) and their sizes."""
    network, sizes, _ = NETWORKS.get(name, ("mlp", None, {}))
    if read_literal(find_plugin_files("networks")[network], "TASK") in ("sequence", "aligned"):
        task, rows = (PARITY, bits(12, 5)) if network == "deep_thinking" else (TURN, commands())
        given = rows.numpy()
        weight = torch.from_numpy(given.pop("weight")).double()
        encoding = SequenceEncoding(task, given)
        return "sequence", Data.of(encoding.encode(given), weight), encoding.sizes
    data = wide_rows(sizes=sizes)
    if "classification" in read_declaration(name).tasks:
        return "classification", data, sizes or Sizes(3, numbers=5)
    numbers = data.target.double() - 1
    held_out = {part: replace(some, target=some.target.double() - 1) for part, some in data.held_out.items()}
    return "regression", replace(data, target=numbers, held_out=held_out), sizes or Sizes(1, numbers=5)


def training_of(name: str, each: list[dict[str, Any]], names: tuple[str, ...] = NAMES, **more: Any) -> Training:
    """A training of one replica for each of the settings in `each`, in float64."""
    network, _, settings = NETWORKS.get(name, ("mlp", None, MLP))
    task, data, sizes = data_of(name)
    given = settings | OWN.get(name, {}) | more
    own = [collect_defaults(recipe(network, STEPS, name, **given | one)) | given | one for one in each]
    stack = ReplicaStack(network, name, own, names[: len(each)], sizes, task, data, STEPS, torch.float64)
    return Training(stack, data, STEPS)


def answers(training: Training) -> Tensor:
    """What each replica that reaches the end says of the training rows, ten at a time."""
    (stack,) = training.run().ended
    inputs = training.initial_data.inputs
    if training.initial_data.target.ndim < 3:
        return stack.answer(*inputs, rows=10)
    stack.network.eval()
    with torch.no_grad():
        target = training.initial_data.target.expand(len(stack), -1, -1)
        writer = getattr(stack.network, "writer", stack.network)
        return writer(inputs[0].expand(len(stack), *inputs[0].shape), target).masked_fill((target == PAD)[..., None], 0)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_replica_with_settings_of_its_own_answers_the_same_alone_or_among_others(name: str) -> None:
    each = differing(name)
    together = answers(training_of(name, each))
    assert not torch.equal(together[0], together[1])
    for k in range(3):
        alone = answers(training_of(name, each[k : k + 1], NAMES[k : k + 1]))
        torch.testing.assert_close(together[k], alone[0], rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_training_that_was_cut_off_ends_as_one_that_was_not(name: str, tmp_path: Path) -> None:
    each = differing(name)[:2]
    full = training_of(name, each)
    for after in range(STEPS + 1):
        if after in CUT_OFF:
            save_checkpoint(full, tmp_path / f"{after}.pt")
        if after < STEPS:
            full.step()
    expected = answers(full)
    for after in CUT_OFF:
        again = training_of(name, each)
        assert resume_training(again, tmp_path / f"{after}.pt")
        assert again.total == after
        assert torch.equal(answers(again), expected), after


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_replica_that_diverges_does_not_touch_the_others(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer, "FINITE_CHECK_EVERY", 4)
    each = differing(name)
    training = training_of(name, [each[0], each[1] | {"lr": 1e200}, each[2]])
    together = answers(training)
    assert set(training.outcome.failed) <= {1}
    alone = answers(training_of(name, each[2:], NAMES[2:]))
    torch.testing.assert_close(together[-1], alone[0], rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if NETWORKS.get(name, ("mlp",))[0] != "resnet"])
def test_a_full_batch_in_pieces_is_the_full_batch_or_refused(name: str) -> None:
    each = differing(name)[:2]
    try:
        pieces = training_of(name, each, batch_size=0, chunk=5)
    except ModelError as error:
        assert re.search("chunk|batch_size|full batch", str(error)), error
        return
    full = training_of(name, each, batch_size=0)
    assert full.stack.algorithm.additive
    for _ in range(3):
        full.step()
        pieces.step()
    for whole, summed in zip(full.stack.network.parameters(), pieces.stack.network.parameters(), strict=True):
        torch.testing.assert_close(whole, summed, rtol=0, atol=1e-9)


OWN_RECIPE = """
name = "own"
title = "Own"
citation = "none"
network = "mlp"
algorithm = "own"
quick = { steps = 2 }
full = { steps = 2 }
"""


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_says_what_it_is(name: str) -> None:
    about = read_declaration(name)
    assert any(str(year) in about.citation for year in range(1960, 2027))
    assert {"train"} <= set(about.touches) <= set(TOUCHABLE)
    own = read_settings(FILES[name])
    for setting, (how, *rest) in about.search.items():
        assert setting in own
        assert how in ("uniform", "log10", "choice")
        assert len(rest) == len(set(rest)) >= 2
        assert how == "choice" or rest[0] < rest[1]
        kinds = (int, float) if how != "choice" or isinstance(own[setting], float) else type(own[setting])
        assert all(isinstance(value, kinds) for value in rest), setting


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("label_smoothing", {"rate": 0.1}),
        ("gce", {"q": 0.7}),
        ("sce", {"log_zero": -4.0}),
        ("bootstrapping", {"belief": "soft"}),
        ("elr", {"strength": 3.0, "keep": 0.7}),
        ("ps_kd", {"alpha": 0.8}),
        ("co_teaching", {"gradual_percent": 5.0}),
        ("dividemix", {"unlabelled": 25.0}),
        ("focal", {"gamma": 2.0}),
    ],
)
def test_defaults_are_those_of_the_paper(name: str, published: dict[str, Any]) -> None:
    assert read_settings(FILES[name]).items() >= published.items()


@pytest.mark.parametrize(
    ("stated", "wrong"),
    [
        ('KIND = "domains"', "KIND: Input should be 'any', 'domain', "),
        ('TASKS = ("classificaton",)', "TASKS.0: Input should be 'classification', "),
        ('TOUCHES = ("train", "group")', "TOUCHES.1: Input should be 'train', "),
        ('SEARCH = {"lr": 0.1}', "SEARCH.lr = 0.1: write a list"),
    ],
)
def test_a_run_refuses_what_an_own_algorithm_cannot_state(
    command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stated: str, wrong: str
) -> None:
    for folder, name, text in (
        ("algorithms", "own.py", f"SETTINGS = {{}}\n{stated}\n"),
        ("recipes", "own.toml", OWN_RECIPE),
    ):
        (tmp_path / "baselines" / folder).mkdir(parents=True)
        (tmp_path / "baselines" / folder / name).write_text(text)
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    done = command("run", "own", "--on", "modadd97/xi35", "--out", tmp_path / "run")
    assert done.returncode == 2
    assert f"baselines/algorithms/own.py: {wrong}" in " ".join(done.stderr.split())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_belongs_on_some_benchmark(name: str) -> None:
    """By what it declares, on one of the networks that are for its tasks."""
    about = read_declaration(name)
    networks = {"classification": "mlp", "regression": "mlp", "sequence": NETWORKS.get(name, ("lstm",))[0]}
    built = [recipe(networks[task], STEPS, name).model_copy(update={"kind": about.kind}) for task in about.tasks]
    assert any(explain_unfit(item, find_benchmark(on)) == "" for item in built for on in SMALL)


def test_every_algorithm_has_a_recipe() -> None:
    used = {tomllib.loads(file.read_text()).get("algorithm") for file in find_plugin_files("recipes").values()}
    assert set(ALGORITHMS) - used <= {"augmix"}, "it goes with a setting of any recipe"
