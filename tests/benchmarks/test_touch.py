"""What may be touched: a model gets what the protocol opens, nothing else, and its run says what it took."""

from __future__ import annotations

import farshift as fs
import models
import numpy as np
import pytest
from farshift.core.errors import ModelError
from own import changed

ON = "modadd97/xi35"
DIGITS = "optdigits/writers"


class Curious(models.Bad):
    """Asks for everything that there is."""

    def __init__(self, seed):
        super().__init__(lambda batch: np.zeros(len(next(iter(batch.values()))), int))

    def fit(self, train, val, budget, ood_val=None, unlabelled=None):
        Curious.seen = (ood_val, unlabelled)
        return {"steps": 50, "epochs": 2}


def test_a_model_gets_shifted_rows_only_where_the_protocol_opens_them(tmp_path):
    run = fs.evaluate(Curious, on=DIGITS, seeds=1, out=tmp_path / "closed")
    assert Curious.seen == (None, None)
    assert run.card.spent.touched == ()

    holdouts = [
        {"part": "train", "to": "id_test", "share": 0.2},
        {"part": "ood_test", "to": "ood_val", "share": 0.25},
    ]
    protocol = {"selection": ["last"], "crafted": None}
    touch = {"ood_val_labels": True, "ood_test_inputs": True}
    opened = changed(DIGITS, {"holdouts": holdouts, "protocol": protocol | {"touch": touch}})
    run = fs.evaluate(Curious, on=opened, seeds=1, out=tmp_path / "opened")
    ood_val, unlabelled = Curious.seen
    assert len(ood_val) == round(1797 / 4)
    assert sorted(ood_val.numpy()) == ["digit", "group", "pixels", "weight"]
    assert sorted(unlabelled) == ["pixels"]
    assert len(unlabelled["pixels"]) == 1797 - round(1797 / 4)
    assert run.card.spent.touched == ("ood_val", "unlabelled")


def test_rows_held_out_for_one_part_are_in_no_other():
    holdouts = [
        {"part": "ood_test", "to": "ood_val", "share": 0.25},
        {"part": "train", "to": "id_test", "share": 0.2},
        {"part": "train", "to": "id_val", "share": 0.5},
    ]
    bench = changed(DIGITS, {"holdouts": holdouts})
    parts = {name: bench.part(name).row_ids for name in ("train", "id_val", "id_test", "ood_val", "ood_test")}
    everything = np.concatenate(list(parts.values()))
    assert len(np.unique(everything)) == len(everything) == 3823 + 1797
    assert len(parts["id_val"]) == round(0.5 * (3823 - round(0.2 * 3823)))


@pytest.mark.parametrize(
    ("ceiling", "complaint"),
    [
        ({"epochs": 1}, "fit used 2 epochs, and the protocol allows 1"),
        ({"device_seconds": 1e-9}, "device_seconds, and the protocol allows 1e-09"),
    ],
)
def test_a_model_that_spends_more_than_the_protocol_allows_is_stopped(ceiling, complaint):
    class Slow(Curious):
        def fit(self, train, val, budget):
            import time

            time.sleep(0.01)
            return {"steps": 50, "epochs": 2}

    with pytest.raises(ModelError, match=complaint):
        fs.evaluate(Slow, on=changed(ON, {"protocol": {"ceiling": ceiling}}), seeds=1)
    assert fs.evaluate(Slow, on=changed(ON, {"protocol": {"ceiling": {"steps": 50}}}), seeds=1).seeds == (0,)


class Adapting:
    """Notes what it is asked and when it is reset."""

    def __init__(self, seed):
        self.events = Adapting.events = []

    def reset(self):
        self.events.append("reset")

    def predict(self, batch):
        self.events.append(batch["pixels"].sum(axis=(1, 2)).tolist())
        return np.zeros(len(batch["pixels"]), int)


def adaptive(**adaptation):
    return changed(DIGITS, {"protocol": {"touch": {"adaptation": adaptation}}})


def test_a_model_that_adapts_is_refused_where_the_protocol_does_not_allow_it():
    with pytest.raises(
        ModelError, match=r"model Adapting has reset\(\), so it adapts at test time, and the protocol of optdigits"
    ):
        fs.evaluate(Adapting, on=DIGITS, seeds=1)


@pytest.mark.parametrize(("reset", "resets"), [("part", [1, 1, 1]), ("batch", [8, 4, 18]), ("never", [0, 0, 0])])
def test_batches_order_and_resets_come_from_the_protocol_whatever_the_user_asks_for(reset, resets):
    bench = adaptive(batch_size=100, reset=reset)
    fs.evaluate(Adapting, on=bench, seeds=1, batch_size=7)
    sizes = [len(event) for event in Adapting.events if event != "reset"]
    parts = [bench.part(part) for part in ("id_test", "id_val", "ood_test")]
    expected = [[100] * (len(part) // 100) + [len(part) % 100] * (len(part) % 100 > 0) for part in parts]
    assert sizes == [size for some in expected for size in some]
    assert Adapting.events.count("reset") == sum(resets)
    requested = [value for event in Adapting.events if event != "reset" for value in event]
    assert requested == [int(v) for part in parts for v in part.numpy(["pixels"])["pixels"].sum(axis=(1, 2))], (
        "stored order"
    )


def test_a_shuffled_order_is_the_same_for_everybody_and_answers_come_back_to_their_rows():
    bench = adaptive(batch_size=64, order="shuffled")
    orders = []
    for _ in range(2):
        run = fs.evaluate(lambda seed: Bright(), on=bench, seeds=1)
        orders.append(Bright.asked)
    assert orders[0] == orders[1]
    part = bench.part("ood_test")
    table = run.predictions().to_pydict()
    got = {
        i: p
        for i, p, where in zip(table["row_id"], table["prediction"], table["part"], strict=True)
        if where == "ood_test"
    }
    bright = part.numpy(["pixels"])["pixels"].sum(axis=(1, 2)) % 10
    assert got == dict(zip(part.row_ids.tolist(), bright.tolist(), strict=True))
    assert orders[0] != sorted(orders[0])


class Bright:
    """Its answer can be told from the row alone, so that a row that was mixed up shows."""

    def __init__(self):
        Bright.asked = []

    def reset(self):
        pass

    def predict(self, batch):
        sums = batch["pixels"].sum(axis=(1, 2))
        Bright.asked += sums.tolist()
        return sums % 10


def test_a_reset_before_each_group_keeps_groups_apart():
    bench = adaptive(batch_size=1000, order="grouped", reset="group")
    fs.evaluate(Adapting, on=bench, seeds=1)
    groups = [len(set(bench.part(part).row_metadata["group"].tolist())) for part in ("id_test", "id_val", "ood_test")]
    assert Adapting.events.count("reset") == sum(groups)


@pytest.mark.parametrize("adaptation", [{"order": "grouped"}, {"reset": "group"}])
def test_resets_by_group_go_with_grouped_order_alone(adaptation):
    with pytest.raises(ValueError, match="requires order = 'grouped', and the reverse"):
        adaptive(batch_size=8, **adaptation)


def test_a_model_that_does_not_adapt_is_asked_as_everywhere():
    class Plain:
        def predict(self, batch):
            return np.zeros(len(batch["pixels"]), int)

    runs = [fs.evaluate(Plain(), on=bench, seeds=1) for bench in (DIGITS, adaptive(batch_size=10))]
    assert runs[0].predictions() == runs[1].predictions()
