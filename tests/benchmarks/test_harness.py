"""The harness: what a model sees, and what a definition may not do."""

from __future__ import annotations

import farshift as fs
import models
import numpy as np
import pytest
from farshift import FarshiftError
from farshift.benchmarks.model_inputs.rows import ModelRows
from farshift.core.errors import ModelError

ON = "modadd97/xi35"


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
    with pytest.raises(FarshiftError, match="cannot be compared"):
        fs.compare(item, other)


def test_what_has_no_predict_is_no_model():
    with pytest.raises(ModelError, match="no predict"):
        fs.evaluate(object(), on=ON)


def test_a_scikit_learn_pipeline_is_a_model():
    pytest.importorskip("sklearn")
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    result = fs.score(fs.evaluate(make_pipeline(StandardScaler(), KNeighborsClassifier(1)), on=ON, seeds=1))
    assert result.views["memorised"].value == 1.0
    assert result.model == "StandardScaler+KNeighborsClassifier"
