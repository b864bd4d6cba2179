"""Functions as models: one that takes the batch is a model, one that takes a seed makes models."""

from __future__ import annotations

from functools import partial
from operator import itemgetter

import numpy as np
import pytest
from farshift import predictor
from farshift.benchmarks.adapters.function import adapt
from farshift.benchmarks.fingerprint import compute_fingerprint
from farshift.benchmarks.harness.factory import get_model_name, make_factory
from farshift.benchmarks.model import Task
from farshift.core.errors import ModelError

ADD = Task("classification", ("a", "b"), "sum", classes=7)
BATCH = {"a": np.array([1, 6, 3]), "b": np.array([1, 6, 3])}


def add(batch):
    return (batch["a"] + batch["b"]) % 7


def shifted(batch, by=0):
    return (add(batch) + by) % 7


class Adder:
    def __init__(self, seed=0):
        self.seed = seed

    def add(self, batch):
        return add(batch)

    def __call__(self, batch):
        return add(batch)


@pytest.mark.parametrize(
    "function",
    [
        add,
        lambda rows: add(rows),
        lambda batch, /: add(batch),
        lambda batch, *more, **options: add(batch),
        shifted,
        partial(shifted, by=7),
        partial(partial(shifted, by=1), by=0),
        Adder().add,
    ],
)
def test_a_function_of_one_required_argument_is_a_model(function):
    assert adapt(function, ADD, 0).predict(BATCH).tolist() == [2, 5, 6]
    assert make_factory(function, ADD)(0, {}).predict(BATCH).tolist() == [2, 5, 6]


@pytest.mark.parametrize(
    "thing",
    [
        lambda seed: Adder(seed),
        lambda task: add,
        lambda device: add,
        lambda prompt: add,
        lambda seed, task: add,
        lambda: add,
        lambda kind="a": add,
        lambda *, batch: add,
        lambda batch, *, temperature: add,
        lambda a, b: add,
        partial(add, BATCH),
        partial(Adder),
        Adder,
        Adder(),
        itemgetter("a"),
        dict,
        7,
    ],
)
def test_whatever_else_can_be_called_is_none(thing):
    assert adapt(thing, ADD, 0) is None


def test_a_function_with_a_predict_of_its_own_is_a_model_already():
    def odd(batch):
        raise AssertionError

    odd.predict = add
    assert adapt(odd, ADD, 0) is None


def test_a_factory_may_give_a_function():
    assert make_factory(lambda seed: lambda batch: batch["a"] + seed, ADD)(3, {}).predict(BATCH).tolist() == [4, 9, 6]


def test_any_callable_can_be_said_to_be_a_model():
    wrapped = predictor(Adder())
    assert wrapped.predict(BATCH).tolist() == [2, 5, 6]
    assert make_factory(wrapped, ADD)(0, {}) is wrapped
    assert predictor(lambda *batch: add(*batch)).predict(BATCH).tolist() == [2, 5, 6]
    with pytest.raises(ModelError, match=r"^predictor: a int is not callable: give a function of the batch$"):
        predictor(7)


def test_a_wrapped_function_is_named_and_identified_by_its_own_source():
    assert get_model_name(predictor(add)) == get_model_name(add) == "add"
    assert predictor(add).code == compute_fingerprint(add)
    assert get_model_name(predictor(Adder())) == "Adder"
    assert predictor(Adder()).code == compute_fingerprint(Adder)
    codes = [
        predictor(item).code for item in (add, shifted, partial(shifted, by=1), partial(shifted, by=2), Adder().add)
    ]
    assert len(set(codes)) == len(codes)
    assert predictor(partial(shifted, by=1)).code == codes[2]
    assert predictor(partial(len)).code == predictor(len).code == "", "without a source nothing identifies it"
