"""A model that looks its labels up by the library, while it is trained or asked, is refused them by one clear error."""

from __future__ import annotations

import threading

import farshift as fs
import numpy as np
import pytest
from farshift.core.errors import LabelsWithheld
from farshift.core.label_access import hide_labels, refuse_labels
from farshift.loaders.acquire.source import find_source

pytestmark = pytest.mark.attack("entrant", "a model that opens the benchmark during evaluation, itself or in a thread")

ON = "modadd97/xi35"


def lookup(batch, benchmark=None):
    """The attack of an entrant: the truth of every row, by its inputs."""
    part, truth = (benchmark or fs.benchmark(ON)).view("ood")
    return labelled(batch, part.numpy(["a", "b"]), truth)


def labelled(batch, rows, truth):
    known = dict(zip(zip(rows["a"].tolist(), rows["b"].tolist(), strict=True), truth.tolist(), strict=True))
    return [known.get(pair, 0) for pair in zip(batch["a"].tolist(), batch["b"].tolist(), strict=True)]


def refused(model, tmp_path):
    with pytest.raises(LabelsWithheld, match="cannot be opened while a model is trained or evaluated") as result:
        fs.evaluate(model, on=ON, seeds=1, budget="quick", out=tmp_path / "run")
    assert "\n" not in str(result.value)


def test_a_model_that_opens_the_benchmark_when_it_is_asked_is_refused(tmp_path):
    refused(lookup, tmp_path)
    assert fs.benchmark(ON).view("ood")[1].size, "the labels are there again, for scoring"


def test_labels_that_were_opened_before_the_run_are_refused_in_it(tmp_path):
    opened = fs.benchmark(ON)
    part, truth = opened.view("ood")
    rows = part.numpy()
    refused(lambda batch: lookup(batch, opened), tmp_path)
    refused(lambda batch: part.true_labels(), tmp_path)
    refused(lambda batch: part.observed_labels(), tmp_path)
    refused(lambda batch: next(part.batches(8))["sum"], tmp_path)
    refused(lambda batch: part[0]["sum"], tmp_path)
    assert np.array_equal(part.numpy()["sum"], rows["sum"])
    assert np.array_equal(part.true_labels(), truth)


@pytest.mark.parametrize(
    "look",
    [
        lambda: fs.load(ON, part="train"),  # the rows of the ID test are among the published training rows
        lambda: find_source("modadd97").table(),
        lambda: fs.load("modadd97/xi20", part="train"),  # another split of the same rows
        lambda: fs.stream(ON, "train", "/nowhere"),
    ],
)
def test_no_other_way_through_the_library_leads_to_them(look):
    look_or_fail = pytest.raises(LabelsWithheld, match="score the run when it is finished")
    with hide_labels(), look_or_fail:
        look()


class Trained:
    """Looks in `fit` and answers from memory."""

    def fit(self, train, val, budget):
        part, truth = fs.benchmark(ON).view("ood")
        self.rows, self.truth = part.numpy(["a", "b"]), truth

    def predict(self, batch):
        return labelled(batch, self.rows, self.truth)


class Made(Trained):
    """Looks as it is made."""

    def __init__(self):
        super().fit(None, None, None)

    def fit(self, train, val, budget):
        """Trains nothing."""


@pytest.mark.parametrize("model", [Trained, Made])
def test_a_model_that_looks_before_it_is_asked_is_refused(model, tmp_path):
    refused(model, tmp_path)


def test_a_thread_is_refused_them_too(tmp_path):
    def predict(batch):
        result = []

        def look():
            try:
                result.append(lookup(batch))
            except LabelsWithheld as error:
                result.append(error)

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        if isinstance(result[0], Exception):
            raise result[0]
        return result[0]

    refused(predict, tmp_path)


def test_labels_are_there_again_when_the_last_model_is_done():
    with hide_labels():
        with hide_labels(), pytest.raises(LabelsWithheld):
            refuse_labels("a split")
        with pytest.raises(LabelsWithheld):
            refuse_labels("a split")
    refuse_labels("a split")
