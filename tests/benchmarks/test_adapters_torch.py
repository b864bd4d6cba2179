"""Torch modules as models: held against the module called by hand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from farshift import FarshiftError
from farshift.benchmarks.adapters.torch_module import adapt, from_spec, load_state_dict
from farshift.benchmarks.harness.factory import make_factory
from farshift.benchmarks.model import Budget, Task
from farshift.benchmarks.model_inputs.rows import ModelRows
from farshift.core.errors import ModelError, UnknownName

pytest.importorskip("torch")
import torch
from torch import nn

PAIRS = Task("classification", ("a", "b"), "sum", classes=7)
MIXED = Task("classification", ("x", "pixels", "count", "flag"), "kind", classes=3)
VALUE = Task("regression", ("x",), "value")
BATCH = {"a": np.arange(7), "b": np.arange(7)[::-1].copy()}


class Sum(nn.Module):
    def __init__(self, classes: int = 7, width: int = 4) -> None:
        super().__init__()
        self.left, self.right = nn.Embedding(classes, width), nn.Embedding(classes, width)
        self.drop, self.out = nn.Dropout(0.5), nn.Linear(width, classes)

    def forward(self, a, b):
        return self.out(self.drop(self.left(a) - self.right(b)))


class Gives(nn.Module):
    """Gives what `answer` makes of its inputs, and remembers them."""

    def __init__(self, answer) -> None:
        super().__init__()
        self.answer = answer
        self.seen: list = []

    def forward(self, *inputs):
        self.seen.append(inputs)
        return self.answer(*inputs)


def module(seed: int = 0) -> Sum:
    torch.manual_seed(seed)
    return Sum()


def test_predictions_are_the_softmax_of_the_module_s_logits():
    net = module()
    answers = adapt(net, PAIRS, 0).predict(BATCH)
    logits = net.eval()(*(torch.as_tensor(BATCH[name]) for name in "ab")).detach()
    assert answers.prediction.tolist() == logits.argmax(dim=1).tolist()
    assert np.allclose(answers.scores, logits.softmax(dim=1).numpy(), atol=1e-6)
    assert answers.scores.dtype == np.float32
    assert answers.answered.all()


def test_a_module_is_copied_and_predicts_without_dropout():
    net = module().train()
    model = adapt(net, PAIRS, 0)
    first = model.predict(BATCH)
    with torch.no_grad():
        net.out.bias.fill_(100.0)
    assert np.array_equal(model.predict(BATCH).scores, first.scores)
    assert net.training


def test_inputs_become_tensors_in_the_task_s_order_and_pixels_keep_their_raw_values():
    net = Gives(lambda x, pixels, count, flag: torch.zeros(len(x), 3))
    model = adapt(net, MIXED, 0)
    pixels = np.array([[[0, 255], [7, 8]]], np.uint8)
    batch = {"flag": np.array([True]), "pixels": pixels, "count": np.array([2**40]), "x": np.array([0.5])}
    model.predict(batch)
    x, image, count, flag = model.module.seen[0]
    assert (x.dtype, image.dtype, count.dtype, flag.dtype) == (torch.float32, torch.float32, torch.int64, torch.int64)
    assert image.tolist() == pixels.tolist()
    assert (x.tolist(), count.tolist(), flag.tolist()) == ([0.5], [2**40], [1])
    x.add_(1)
    assert batch["x"].tolist() == [0.5], "tensors are copies"


@pytest.mark.parametrize("shape", [(5,), (5, 1)])
def test_a_regression_module_gives_a_number_a_row(shape):
    answers = adapt(Gives(lambda x: (2 * x).reshape(shape)), VALUE, 0).predict({"x": np.arange(5.0)})
    assert answers.prediction.tolist() == [0, 2, 4, 6, 8]
    assert answers.prediction.dtype == np.float64
    assert answers.scores is None


def test_logits_of_half_precision_are_read():
    answers = adapt(Gives(lambda a, b: torch.eye(7).bfloat16()[a]), PAIRS, 0).predict(BATCH)
    assert answers.prediction.tolist() == list(range(7))


@pytest.mark.parametrize(
    ("task", "answer", "complaint"),
    [
        (PAIRS, lambda a, b: a, r"Gives returned \(7,\) of torch.int64, expected \(7, 7\) logits$"),
        (PAIRS, lambda a, b: torch.zeros(7, 2), r"returned \(7, 2\) of torch.float32, expected \(7, 7\) logits$"),
        (PAIRS, lambda a, b: torch.zeros(7, 7).long(), r"returned \(7, 7\) of torch.int64, expected"),
        (PAIRS, lambda a, b: (torch.zeros(7, 7),), r"returned tuple, expected \(7, 7\) logits$"),
        (PAIRS, lambda a, b: None, r"returned NoneType, expected"),
        (VALUE, lambda x: torch.zeros(7, 2), r"returned \(7, 2\) of .*, expected \(7,\) or \(7, 1\) numbers$"),
        (VALUE, lambda x: torch.zeros(1), r"returned \(1,\) of torch.float32, expected"),
    ],
)
def test_an_output_of_another_shape_or_type_is_named(task, answer, complaint):
    with pytest.raises(ModelError, match=complaint):
        adapt(Gives(answer), task, 0).predict(BATCH | {"x": np.zeros(7)})


def test_texts_are_refused():
    with pytest.raises(ModelError, match="Sum returns tensors, and this is a sequence task: wrap it in an object"):
        adapt(module(), Task("sequence", ("command",), "actions"), 0)
    model = adapt(module(), PAIRS, 0)
    with pytest.raises(ModelError, match="input 'a' is text or audio, and a torch module reads only numbers"):
        model.predict({"a": np.array(["x"], object), "b": np.array([1])})


def test_a_module_that_cannot_be_copied_is_refused():
    net = module()
    net.tied = net.out.weight * 2
    with pytest.raises(ModelError, match=r"module Sum cannot be copied \(.*\): give a factory that returns it$"):
        adapt(net, PAIRS, 0)


def test_what_is_no_plain_module_is_left_to_others():
    class Whole(Sum):
        def predict(self, batch):
            return batch["a"]

    full = Whole()
    assert adapt(full, PAIRS, 0) is None
    assert make_factory(full, PAIRS)(0, {}) is full
    assert adapt(Sum, PAIRS, 0) is None, "a class is a factory"
    assert adapt(lambda batch: batch, PAIRS, 0) is None


def test_torch_is_never_imported_to_recognise_a_module():
    code = (
        "import sys; from farshift.benchmarks.adapters import adapt_model; from farshift.benchmarks.model import Task\n"
        "print(adapt_model(object(), Task('classification', ('a',), 'b', 2), 0))\n"
        "print(sorted({'torch', 'transformers', 'sklearn', 'openai'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["None", "[]"]


class Trained(Sum):
    """Its `fit` moves the weights by a draw, and says so."""

    def fit(self, train, val, budget):
        assert self.training
        with torch.no_grad():
            self.out.bias.copy_(torch.randn(7))
        return {"rows": len(train), "steps": budget.steps}


def test_a_module_with_a_fit_is_trained_as_the_seed_says_and_leaves_torch_s_generator_alone():
    net = Trained()
    train = ModelRows({"a": BATCH["a"], "b": BATCH["b"], "sum": BATCH["a"]}, np.arange(7, dtype=np.uint64))
    before, scores = torch.get_rng_state(), []
    for seed in (0, 0, 1):
        model = adapt(net, PAIRS, seed)
        assert model.fit(train, None, Budget(steps=3)) == {"rows": 7, "steps": 3}
        scores.append(model.predict(BATCH).scores)
    assert np.array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])
    assert torch.equal(torch.get_rng_state(), before)
    assert not hasattr(adapt(module(), PAIRS, 0), "fit")


FILE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.out = nn.Embedding(classes, classes)
    def forward(self, a, b):
        return self.out(a)
    def fit(self, train, val, budget):
        raise AssertionError("trained already")

def make(task):
    return Net(task.classes)

def plain():
    return Net(7)

def wrong():
    return [1]
"""


@pytest.fixture
def saved(tmp_path: Path) -> tuple[Path, dict]:
    (tmp_path / "net_of_test.py").write_text(FILE)
    state = {"out.weight": torch.randn(7, 7, generator=torch.Generator().manual_seed(3))}
    torch.save(state, tmp_path / "net@3.pt")
    return tmp_path, state


def built(folder: Path, weights: str = "net@3.pt", attribute: str = "make", **options: str):
    return from_spec(f"{folder}/{weights}@{folder}/net_of_test.py:{attribute}", options)


@pytest.mark.parametrize("attribute", ["make", "plain"])
def test_a_module_s_weights_come_from_a_file(saved, attribute):
    folder, state = saved
    factory = built(folder, attribute=attribute)
    model = factory(seed=0, task=PAIRS, device="cpu", prompt=None)
    assert np.allclose(model.predict(BATCH).scores, state["out.weight"].softmax(dim=1).numpy(), atol=1e-6)
    assert not hasattr(model, "fit"), "it is trained"
    assert factory.name == "net@3"


def test_weights_may_be_safetensors(saved):
    safetensors = pytest.importorskip("safetensors.torch")
    folder, state = saved
    safetensors.save_file(state, folder / "net.safetensors")
    answers = built(folder, "net.safetensors")(0, PAIRS, "cpu").predict(BATCH)
    assert np.allclose(answers.scores, state["out.weight"].softmax(dim=1), atol=1e-6)
    (folder / "net.safetensors").write_bytes(b"no tensors")
    with pytest.raises(ModelError, match="net.safetensors cannot be read as plain tensors"):
        built(folder, "net.safetensors")(0, PAIRS, "cpu")


def test_the_code_of_a_module_from_files_is_both_files(saved):
    folder, state = saved
    codes = [built(folder).code, built(folder).code]
    (folder / "net_of_test.py").write_text(FILE + "\n")
    codes.append(built(folder).code)
    torch.save({"out.weight": state["out.weight"] + 1}, folder / "net@3.pt")
    codes.append(built(folder).code)
    assert codes[0] == codes[1]
    assert len(set(codes)) == 3


class Evil:
    """Makes the file `touched` where it is unpickled."""

    def __reduce__(self):
        return (open, ("touched", "w"))


@pytest.mark.parametrize(
    ("state", "complaint"),
    [
        ({"out.weight": torch.zeros(7, 7), "old": torch.zeros(1)}, 'does not fit Net: .*Unexpected key.*"old"'),
        ({}, 'does not fit Net: .*Missing key.*"out.weight"'),
        ({"out.weight": torch.zeros(3, 7)}, "does not fit Net: .*size mismatch for out.weight"),
        ({"out.weight": 3}, "does not fit Net: "),
        (torch.zeros(3), "has a Tensor, not a state dict: save only module.state_dict"),
        ({1: torch.zeros(3)}, "has a dict, not a state dict"),
        ({"out.weight": Evil()}, r"cannot be read as plain tensors \(UnpicklingError\)"),
    ],
)
def test_weights_that_are_no_state_dict_of_the_module_are_one_clear_line(saved, monkeypatch, state, complaint):
    folder, _ = saved
    monkeypatch.chdir(folder)
    torch.save(state, folder / "net@3.pt")
    with pytest.raises(ModelError, match=f"^weights file .*net@3.pt {complaint}") as raised:
        built(folder)(0, PAIRS, "cpu")
    assert "\n" not in str(raised.value)
    assert not (folder / "touched").exists(), "no pickle is run"


def test_a_spec_that_names_no_module_or_no_weights_is_refused(saved):
    folder, _ = saved
    with pytest.raises(FarshiftError, match=r"write it as torch:weights.pt@file.py:factory"):
        from_spec("net.pt", {})
    with pytest.raises(FarshiftError, match=r"weights file .*absent.pt does not exist"):
        built(folder, "absent.pt")
    with pytest.raises(UnknownName, match="no option of torch: named 'dtype'"):
        built(folder, dtype="half")
    with pytest.raises(ModelError, match="the factory returned a list, which has no predict"):
        built(folder, attribute="wrong")(0, PAIRS, "cpu")
    with pytest.raises(ModelError, match=r"cannot be opened: \[Errno \d+\] Is a directory"):
        load_state_dict(folder)
