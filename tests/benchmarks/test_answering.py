"""Answers: every kind is taken, and a bad one is named with part, batch and rows."""

from __future__ import annotations

import sys

import farshift as fs
import models
import numpy as np
import pytest
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
        (models.too_few, r"511 predictions for 512 rows on id_test, batch 0 \(rows [0-9a-f]{16} \.\. [0-9a-f]{16}\)"),
        (models.nan, r"NaN or infinity for row [0-9a-f]{16} \(\d+ rows\) on id_test, batch 0"),
        (models.raising, r"predict on id_test, batch 0 \(rows .*\) raised ValueError: out of luck \(models.py:\d+\)"),
        (models.broken_factory, r"factory raised RuntimeError: no weights"),
        (
            lambda seed: models.Bad(lambda batch: np.zeros((len(batch["a"]), 97))),
            r"not probabilities for row .*its scores sum to 0: apply a softmax",
        ),
        (lambda seed: 5, r"returned a int, which has no predict"),
    ],
)
def test_a_bad_answer_is_named_with_part_batch_and_rows(tmp_path, factory, complaint):
    with pytest.raises(ModelError, match=complaint):
        fs.evaluate(factory, on=ON, seeds=1, out=tmp_path / "run")
    with pytest.raises(BadRun, match="unfinished"):
        fs.read_run(tmp_path / "run")


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (lambda batch: [1] * len(batch["command"]), "returned int instead of text"),
        (lambda batch: ["\ud800"] * len(batch["command"]), "not valid Unicode"),
        (lambda batch: "text", r"returned str instead of 512 predictions"),
        (lambda batch: ["x" * 100_001] * len(batch["command"]), "a text of 100001 characters"),
    ],
)
def test_a_bad_text_is_named(answer, complaint):
    with pytest.raises(ModelError, match=complaint):
        fs.evaluate(models.Bad(answer), on="scan/length", seeds=1)


def test_a_fit_that_raises_is_named():
    class Unfit(models.Adder):
        def fit(self, train, val, budget):
            raise MemoryError("too big\nsecond line")

    with pytest.raises(ModelError, match=r"seed 0: fit raised MemoryError: too big \(test_answering.py:\d+\)$"):
        fs.evaluate(Unfit, on=ON, seeds=1)


def test_an_exit_inside_a_model_is_no_way_out():
    class Quitter(models.Adder):
        def predict(self, batch):
            sys.exit(0)

    with pytest.raises(ModelError, match="raised SystemExit"):
        fs.evaluate(Quitter, on=ON, seeds=1)


def test_logits_with_gradients_are_a_named_error():
    torch = pytest.importorskip("torch")
    answer = lambda batch: torch.zeros(len(batch["a"]), requires_grad=True)  # noqa: E731
    with pytest.raises(ModelError, match=r"reading the Tensor that predict returned on id_test, batch 0"):
        fs.evaluate(lambda seed: models.Bad(answer), on=ON, seeds=1)
