"""Input that is legal and unusual is trained on; settings that can come to nothing are refused in one line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from farshift.baselines.algorithms.coral import coral_loss
from farshift.baselines.algorithms.ib_erm import compute_bottleneck
from farshift.baselines.encoding.encoding import RowEncoding, SequenceEncoding, make_encoding
from farshift.baselines.recipe import resolve_settings
from farshift.baselines.replicas.hyperparameters import Hyperparameters, make_stack_key
from farshift.baselines.running.plan import compute_code_digest, make_suite_plans
from farshift.benchmarks.model import Task
from farshift.core.errors import BadDefinition, ModelError
from farshift.core.plugins import load_module
from torch import nn

from .small_stacks import begun, wide_rows
from .toys import ADD, TURN, Rows, accuracy, recipe, trained, words

READERS = ("lstm", "gru", "elman", "rnn", "transformer", "decoder_transformer", "stack_rnn", "tape_rnn")


@pytest.mark.parametrize("network", READERS)
def test_texts_that_are_all_empty_are_trained_on_and_answered(network: str) -> None:
    given = Rows(command=words(["", "", ""]), actions=words(["W", "W", "W"]))
    model = trained(recipe(network, 10, lr=0.05), TURN, given)
    assert accuracy(model, TURN, given) == 1.0


@pytest.mark.parametrize("network", ["lstm", "lstm_aligned", "deep_thinking"])
def test_an_aligned_task_whose_texts_are_all_empty_has_empty_answers(network: str) -> None:
    task = Task("sequence", ("bits",), "sums", tokens="character", aligned=True)
    model = trained(recipe(network, 2), task, Rows(bits=words(["01", "1"]), sums=words(["01", "1"])))
    assert model.predict({"bits": words(["", ""])}) == ["", ""]


@pytest.mark.parametrize("column", [np.arange(6.0).reshape(2, 3), words(["a b", "c"]), np.arange(2)])
def test_no_rows_are_no_rows_of_features(column: np.ndarray) -> None:
    known = RowEncoding(Task("classification", ("x",), "y", classes=2), {"x": column, "y": np.arange(2)}, buckets=16)
    categories, numbers = known.inputs({"x": column[:0]})
    assert len(categories) == len(numbers) == 0
    assert numbers.shape[1] == known.sizes.numbers


@pytest.mark.parametrize(
    ("values", "scaled"),
    [
        (np.array([[-128], [3]], np.int8), [[-1.0], [3 / 128]]),
        (np.array([[1e300], [5e299]]), [[1.0], [0.5]]),
        (np.array([[1e-60], [0.0]]), [[1.0], [0.0]]),
    ],
)
def test_numbers_are_divided_by_their_greatest_size_whatever_it_is(values: np.ndarray, scaled: list) -> None:
    task = Task("classification", ("x",), "y", classes=2)
    result = RowEncoding(task, {"x": values, "y": np.arange(2)}, how="numbers").inputs({"x": values})[1]
    assert np.allclose(result.numpy(), scaled, rtol=1e-6)


def test_a_scratchpad_reads_a_task_of_characters_word_by_word() -> None:
    task = Task("sequence", ("input",), "output", tokens="character")
    train = {"input": words(["abc", "ba", "cab"]), "output": words(["cba", "ab", "bac"])}
    coding = make_encoding(task, train, {"format": "scratchpad", "pieces": "io", "hint_range": 8, "stretch": 4.0})
    assert isinstance(coding, SequenceEncoding)
    ids, lengths = coding.inputs({"input": words(["ccb"])})
    assert lengths.tolist() == [3]
    assert ids[0, 0] == ids[0, 1] != ids[0, 2]


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("batch_size", -3, "use 0 or more"),
        ("candidates", 0, "use a number from 1 to 1048576"),
        ("warmup_percent", 200, "use a number from 0 to 100"),
        ("lr", -0.1, "use 0 or more"),
        ("lr", float("inf"), "use a finite number"),
        ("width", 0, "use a number from 1 to 1048576"),
        ("precision", "half", "use auto, float32 or bfloat16"),
    ],
)
def test_a_setting_out_of_its_range_is_refused_with_the_range(name: str, value: object, told: str) -> None:
    with pytest.raises(BadDefinition, match=f"{name} = {value!r}: {told}"):
        resolve_settings(recipe("mlp"), "toy/toy", {name: value})


def test_sharpness_aware_steps_and_plain_ones_are_never_stacked() -> None:
    assert make_stack_key({"sharpness": 0.0, "lr": 0.1}) == make_stack_key({"sharpness": 0.0, "lr": 0.2})
    assert make_stack_key({"sharpness": 0.0}) != make_stack_key({"sharpness": 0.05})


def test_an_early_stage_is_not_stopped_early() -> None:
    """Forward correction, whose first stage only estimates the matrix: it is kept until the second."""
    training = begun("forward_correction", {}, common={"check_every": 1, "patience": 1}, data=wide_rows(), steps=20)
    for _ in range(10):
        training.step()
    assert len(training.stack) == 1
    assert training.stage == 1


@pytest.mark.parametrize("measure", [coral_loss, compute_bottleneck])
def test_environments_of_one_row_in_a_batch_are_refused(measure) -> None:
    with pytest.raises(ModelError, match="one has 1 row in a batch: set batch_size to 2 or more"):
        measure(torch.zeros(1, 2, 1, 3))


def test_a_baseline_named_twice_is_run_once(tmp_path: Path) -> None:
    plans = make_suite_plans("core", tmp_path, ["most-frequent", "most-frequent"])
    assert len({plan.out for plan in plans}) == len(plans)


OWN = '''"""Down the gradient."""

SETTINGS: dict[str, float] = {{}}


class Optimiser:
    sign = {sign}
'''


def test_a_run_s_code_has_the_files_of_one_s_own_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "baselines" / "optimisers"
    home.mkdir(parents=True)
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    built = recipe("mlp")
    digests = [compute_code_digest(built)]
    for sign in (-1, 1):
        (home / "down.py").write_text(OWN.format(sign=sign))
        digests.append(compute_code_digest(built))
    assert len(set(digests)) == 3


def test_additions_with_one_row_and_a_batch_larger_than_the_data_are_learned() -> None:
    given = Rows(a=np.array([1]), b=np.array([2]), sum=np.array([3]))
    assert accuracy(trained(recipe("mlp", 20, batch_size=100, lr=0.05), ADD, given), ADD, given) == 1.0


def test_a_parameter_whose_gradients_began_late_goes_on_from_a_saved_state() -> None:
    """A head that is switched on in the middle: its bias corrections are of its own steps."""
    hyperparameters = begun("erm", {}, common={"optimiser": "adamw"}).stack.hyperparameters
    built = [[nn.Parameter(torch.ones(1, 2)), nn.Parameter(torch.ones(1, 3))] for _ in range(2)]
    first, second = (optimiser(parameters, hyperparameters) for parameters in built)
    for step in range(6):
        if step == 4:
            second.load(first.state())
            with torch.no_grad():
                for own, other in zip(*built, strict=True):
                    other.copy_(own)
        for position, item in enumerate((first, second)):
            if position and step < 4:
                continue
            built[position][0].grad = torch.full((1, 2), 1.0 + step)
            built[position][1].grad = torch.full((1, 3), 1.0 - step) if step >= 2 else None
            item.step(1.0)
    for own, other in zip(*built, strict=True):
        assert torch.equal(own, other)


def optimiser(parameters: list[nn.Parameter], hyperparameters: Hyperparameters) -> Any:
    return load_module("baselines/optimisers", "adamw", "optimiser").Optimiser(parameters, [0.1], hyperparameters)
