"""The harness: what a model sees; its answers are read, and a bad one is named with part, batch and rows."""

from __future__ import annotations

import sys
from pathlib import Path

import farshift as fs
import models
import numpy as np
import pytest
from farshift import FarshiftError
from farshift.benchmarks.model_inputs.rows import ModelRows
from farshift.core.errors import BadRun, ModelError

ON = "modadd97/xi35"


def test_a_model_that_writes_into_its_input_changes_nothing():
    class Vandal:
        def predict(self, batch):
            answer = (batch["a"] + batch["b"]) % 97
            for values in batch.values():
                values[:] = 0
            return answer

    assert fs.score(fs.evaluate(Vandal(), on=ON, seeds=2)).id.value == 1.0
    assert fs.load(ON).numpy(["a"])["a"].any()


@pytest.mark.parametrize(
    ("factory", "complaint"),
    [
        (
            lambda batch: np.zeros(len(batch["a"]) - 1, int),
            r"511 predictions for 512 rows on id_test, batch 0 \(rows [0-9a-f]{16} \.\. [0-9a-f]{16}\)",
        ),
        (
            lambda batch: np.where(batch["a"] == 5, np.nan, 0.0),
            r"NaN or infinity for row [0-9a-f]{16} \(\d+ rows\) on id_test, batch 0",
        ),
        (lambda batch: sys.exit(0), r"predict on id_test, batch 0 .* raised SystemExit"),
        (models.raising, r"predict on id_test, batch 0 \(rows .*\) raised ValueError: out of luck \(models.py:\d+\)"),
        (lambda seed: 1 / 0, "factory raised ZeroDivisionError: division by zero"),
        (
            lambda batch: np.zeros((len(batch["a"]), 97)),
            r"not probabilities for row .*its scores sum to 0: apply a softmax",
        ),
        (lambda seed: 5, r"returned a int, which has no predict"),
        (object(), r"the model is of type object: it has no predict"),
    ],
)
def test_a_bad_answer_is_named_with_part_batch_and_rows(tmp_path, factory, complaint):
    with pytest.raises(ModelError, match=complaint):
        fs.evaluate(factory, on=ON, seeds=1, out=tmp_path / "run")
    with pytest.raises(BadRun, match=r"unfinished|the folder does not exist"):
        fs.read_run(tmp_path / "run")


def test_a_fit_that_raises_is_named():
    class Unfit(models.Adder):
        def fit(self, train, val, budget):
            raise MemoryError("too big\nsecond line")

    with pytest.raises(ModelError, match=r"seed 0: fit raised MemoryError: too big \(test_answering.py:\d+\)$"):
        fs.evaluate(Unfit, on=ON, seeds=1)


def test_a_hold_out_is_disjoint_whole_and_spares_weighted_rows():
    bench = fs.benchmark("scan/addprim_jump")
    train, withheld = bench.part("train"), bench.part("id_test")
    full = fs.load("scan/addprim_jump", part="train")
    val = bench.part("id_val")
    assert (len(withheld), len(val)) == (1320, 594)
    drawn = [*train.row_ids.tolist(), *withheld.row_ids.tolist(), *val.row_ids.tolist()]
    assert sorted(drawn) == full.row_ids.tolist()
    assert train.weighted_rows == len(train) + 1466
    assert set(withheld.row_metadata["weight"].tolist()) == {1}


def test_training_sees_inputs_given_labels_and_weights_and_nothing_else():
    seen = {}

    class Spy:
        def fit(self, train, val, budget):
            seen.update(train=train, val=val, budget=budget)

        def predict(self, batch):
            seen.setdefault("batches", []).append(sorted(batch))
            return np.zeros(len(batch["a"]), int)

    fs.evaluate(Spy, on=ON, seeds=1, budget="quick", steps=7)
    assert isinstance(seen["train"], ModelRows)
    assert sorted(seen["train"].numpy()) == ["a", "b", "sum", "weight"]
    batches = [list(seen["train"].batches(1000, seed=seed, epoch=0)) for seed in (0, 0, 1)]
    orders = [np.concatenate([batch["a"] * 97 + batch["b"] for batch in some]).tolist() for some in batches]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2])
    assert sorted(seen["val"].numpy()) == ["a", "b", "sum", "weight"]
    assert len(seen["val"]) == round(len(fs.load(ON)) / 20)
    assert (seen["budget"].name, seen["budget"].steps) == ("quick", 7)
    assert all(names == ["a", "b"] for names in seen["batches"])


def test_steps_set_by_hand_make_another_identity(tmp_path):
    item = fs.evaluate(models.Adder(), on=ON, seeds=2, steps=5, name="m")
    other = fs.evaluate(models.Adder(), on=ON, seeds=2, name="m")
    assert item.entry_identity != other.entry_identity
    assert fs.score(item).steps == 5
    with pytest.raises(
        FarshiftError, match=r"cannot be compared: m is on .* \(budget full, 5 steps, .*\(budget full, sel"
    ):
        fs.compare(item, other)


def test_steps_of_a_model_without_fit_are_announced_once_as_of_no_use(command, tmp_path):
    given = ("evaluate", f"{Path(models.__file__)}:Adder", "--on", ON, "--out")
    notes = " ".join(command(*given, tmp_path / "a", "--steps", "5", "--seeds", "2").stderr.split())
    assert notes.count("Adder has no fit, and steps change nothing but the protocol") == 1
    assert "no fit" not in command(*given, tmp_path / "b", "--seeds", "1").stderr


def test_a_trial_of_fewer_rows_than_the_prompt_has_examples_is_scored(tmp_path):
    run = fs.evaluate(lambda batch: ["jump"] * len(batch["command"]), on="scan/length", seeds=1, limit=5, name="m")
    assert fs.score(run).ood.rows == 5
