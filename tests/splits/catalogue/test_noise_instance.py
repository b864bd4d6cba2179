"""Label noise by image: what it depends on, its exact rates, and the same bits everywhere."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from farshift.core.draws import UNIT, draw_normal_units, draw_uniform
from farshift.core.errors import BadDefinition, UnknownName
from farshift.splits.rules import noise_instance as instance
from noise_tables import CLASSES, TRAIN, counted, given, labelled
from scipy.special import softmax
from scipy.stats import chisquare, kstest
from sklearn.neighbors import NearestCentroid

TABLE = labelled()
COMMON = {"label": "digit", "classes": CLASSES, "image": "image", "train": TRAIN, "seed": "test@1", "draw": 1}
OBSERVED = COMMON | {"brightest": 255}


def images(table):
    return np.stack(table["image"].to_numpy(zero_copy_only=False))


def wrong(outcome):
    return ~np.ma.getmaskarray(outcome.label)


def test_normal_draws_are_normal_and_exact():
    values = draw_normal_units("test/normal", 200_000)
    assert values.dtype == np.int64
    assert abs(values.mean() / UNIT) < 0.01
    assert abs(values.std() / UNIT - 1) < 0.01
    assert kstest(values[:20_000] / UNIT, "norm").pvalue > 1e-3
    assert np.array_equal((values / UNIT).astype(np.float32).astype(np.float64) * UNIT, values)
    assert np.array_equal(draw_normal_units("test/normal", 100), values[:100])


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.4, 0.45])
def test_instance_noise_makes_exactly_the_stated_share_wrong(rate):
    outcome = instance.instance_dependent(TABLE, rate=rate, **OBSERVED)
    assert wrong(outcome).sum() == round(rate * TRAIN)
    assert (given(TABLE, outcome) != TABLE["digit"].to_numpy()).sum() == round(rate * TRAIN)
    assert not wrong(outcome)[outcome.part == "id_test"].any()


def test_the_wrong_class_is_the_one_that_the_observer_s_softmax_draws():
    outcome = instance.instance_dependent(TABLE, rate=0.4, **OBSERVED)
    rows = np.flatnonzero(wrong(outcome))
    x, truth, label = images(TABLE).astype(float), TABLE["digit"].to_numpy(), given(TABLE, outcome)
    observer = draw_normal_units("test@1/draw 1/observer", 16 * CLASSES).reshape(16, CLASSES) / UNIT
    mean = np.rint(x[outcome.part == "train"].mean(axis=0))
    logits = (x[rows] - mean) / 255 @ observer
    logits[np.arange(len(rows)), truth[rows]] = -np.inf
    reached = softmax(logits, axis=1).cumsum(axis=1)
    draws = draw_uniform("test@1/draw 1/observed class", TABLE["row_id"].to_numpy()[rows])
    expected = (reached <= draws[:, None]).sum(axis=1)
    assert (expected == label[rows]).mean() > 0.99, "logits are rounded to 1/256"


def test_the_softmax_of_equal_logits_is_uniform_over_the_other_classes():
    rows = 20_000
    draws = draw_uniform("test/equal", np.arange(rows, dtype=np.uint64))
    chosen = instance._draw_softmax(np.zeros((rows, 5)), np.full(rows, 3), draws)
    counts = np.bincount(chosen, minlength=5)
    assert counts[3] == 0
    assert chisquare(counts[[0, 1, 2, 4]]).pvalue > 1e-4


def test_no_entry_of_the_exponential_s_table_hangs_on_a_last_digit():
    table = instance._tabulate_exponentials()
    exact = 2**30 * np.exp(-np.arange(len(table)) / 256)
    to_half = np.abs(exact - np.floor(exact) - 0.5)
    assert to_half.min() > 1e-5, "an exponential wrong by an ulp is wrong by 1e-7 here"
    assert table[0] == 2**30
    assert table[-1] == 0
    assert (np.diff(table) <= 0).all()


def test_each_draw_has_an_observer_of_its_own():
    item, two = (instance.instance_dependent(TABLE, rate=0.4, **OBSERVED | {"draw": draw}) for draw in (1, 2))
    both = wrong(item) & wrong(two)
    assert both.sum() > 500
    assert (given(TABLE, item)[both] == given(TABLE, two)[both]).mean() < 0.5


def test_the_harder_half_has_twice_the_noise_and_the_whole_the_stated_rate():
    outcome = instance.harder_noisier(TABLE, rate=0.3, **COMMON)
    train, severity = outcome.part == "train", outcome.severity
    hard, easy = wrong(outcome)[train & (severity > 5)], wrong(outcome)[train & (severity <= 5)]
    assert hard.sum() == round(0.4 * len(hard))
    assert easy.sum() == round(0.2 * len(easy))
    assert abs(wrong(outcome).sum() - 0.3 * TRAIN) <= 1


def test_severity_is_the_tenth_of_the_training_rows_by_hardness():
    outcome = instance.harder_noisier(TABLE, rate=0.3, **COMMON)
    counts = np.bincount(outcome.severity[outcome.part == "train"], minlength=11)
    assert counts[0] == 0
    assert np.abs(counts[1:] - TRAIN / 10).max() <= 1
    assert set(outcome.severity[outcome.part == "id_test"].tolist()) == set(range(1, 11))


def test_hardness_is_the_margin_of_a_nearest_mean_classifier():
    x, truth = images(TABLE), TABLE["digit"].to_numpy()
    rows = np.arange(TRAIN)
    margin = instance._compute_centroid_margin(x, truth, rows)
    nearest = NearestCentroid().fit(x[rows].astype(float), truth[rows])
    assert ((margin > 0) == (nearest.predict(x.astype(float)) != truth)).all()
    distances = ((x[:50, None, :].astype(float) - nearest.centroids_[None]) ** 2).sum(axis=2)
    own = distances[np.arange(50), truth[:50]].copy()
    distances[np.arange(50), truth[:50]] = np.inf
    assert np.allclose(margin[:50], own - distances.min(axis=1))


def test_the_wrong_labels_of_hard_rows_are_those_of_symmetric_noise():
    counts = np.array(counted(TABLE, instance.harder_noisier(TABLE, rate=0.6, **COMMON)))
    off = counts[~np.eye(CLASSES, dtype=bool)].reshape(CLASSES, CLASSES - 1)
    assert chisquare(off.sum(axis=0)).pvalue > 1e-4


@pytest.mark.parametrize(
    ("rule", "change", "complaint"),
    [
        ("instance_dependent", {"rate": 1.01}, "rate = 1.01: a share"),
        ("instance_dependent", {"rate": 0.2, "image": "digit"}, "needs a tensor of uint8"),
        ("instance_dependent", {"rate": 0.2, "image": "picture"}, "no field named 'picture'"),
        ("instance_dependent", {"rate": 0.2, "brightest": 0}, "brightest = 0"),
        ("instance_dependent", {"rate": 0.2, "classes": 1_000_000}, "takes at most 1000"),
        ("harder_noisier", {"rate": 0.8}, "the harder half would have 1.07 of its labels wrong"),
        ("harder_noisier", {"rate": -0.2}, "rate = -0.2: a share"),
        ("harder_noisier", {"rate": 0.2, "train": 3}, "a training row of each"),
    ],
)
def test_a_definition_that_cannot_be_says_why_in_one_line(rule, change, complaint):
    parameters = (OBSERVED if rule == "instance_dependent" else COMMON) | change
    with pytest.raises((BadDefinition, UnknownName), match=complaint) as refused:
        getattr(instance, rule)(TABLE, **parameters)
    assert "\n" not in str(refused.value)


def test_other_processes_give_the_same_labels():
    """Another hash seed, another number of threads: the rules give the same bytes."""
    code = (
        "from hashlib import sha256; from noise_tables import *; from farshift.splits.rules import noise, noise_instance;"
        "t = labelled(); c = dict(label='digit', classes=10, train=5000, seed='s', draw=1, rate=.4);"
        "rules = [(noise.symmetric_exclusive, {}), (noise.symmetric_inclusive, {}), (noise.pair_flip, {}),"
        " (noise_instance.instance_dependent, dict(image='image', brightest=255)),"
        " (noise_instance.harder_noisier, dict(image='image'))];"
        "print(*(sha256(given(t, rule(t, **c, **more)).tobytes()).hexdigest() for rule, more in rules))"
    )
    result = set()
    for seed, threads in (("0", "1"), ("4242", "2")):
        environment = os.environ | {"PYTHONHASHSEED": seed, "OMP_NUM_THREADS": threads, "PYTHONPATH": "tests"}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
        result.add(done.stdout)
    assert len(result) == 1
    assert len(set(result.pop().split())) == 5
