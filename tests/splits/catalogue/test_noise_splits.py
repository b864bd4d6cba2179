"""The frozen splits of label noise: complete families, true rates, the same rows in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from farshift import load
from farshift.benchmarks.benchmark import load_benchmarks
from farshift.core.errors import Unavailable
from farshift.loaders.acquire.source import find_source
from farshift.splits.catalogue import list_manifests

FROZEN = {manifest.name: manifest for manifest in list_manifests() if manifest.frozen}
SOURCES = ("optdigits", "pendigits", "mnist", "fashion_mnist")
FORMS = {
    "symmetric_exclusive": (20, 40, 60),
    "symmetric_inclusive": (20, 40, 60),
    "pair_flip": (20, 40, 45),
    "asymmetric": (20, 40, 45),
    "instance": (20, 40, 45),
}


def trained(name: str):
    try:
        return load(name, part="train")
    except Unavailable as error:
        pytest.skip(str(error))


def test_every_image_source_has_five_forms_at_three_rates_in_five_draws():
    expected = {
        f"{source}/{form}_{percent}_draw{draw}"
        for source in SOURCES
        for form, rates in FORMS.items()
        for percent in rates
        for draw in range(1, 6)
    }
    assert len(expected) == 300
    assert not expected - FROZEN.keys()
    assert not expected - load_benchmarks().keys()


def test_no_split_by_rule_ships_rows():
    noisy = [item for name, item in FROZEN.items() if item.definition.rule.startswith("noise")]
    assert len(noisy) > 300
    assert not any(item.definition.ships_rows for item in noisy)
    assert not any((item.folder / "rows.parquet").exists() for item in noisy)


@pytest.mark.parametrize("percent", [20, 40, 60])
def test_the_true_rate_of_exclusive_noise_is_the_stated_one(percent):
    part = trained(f"optdigits/symmetric_exclusive_{percent}_draw3")
    assert (part.observed_labels() != part.true_labels()).mean() == percent / 100
    assert ((part.observed_labels() != part.true_labels()) == part.corrupted).all()


def test_half_the_classes_keep_their_labels_under_asymmetric_noise():
    part = trained("optdigits/asymmetric_40_draw1")
    truth, given = part.true_labels(), part.observed_labels()
    pairs = {(int(a), int(b)) for a, b in zip(truth[part.corrupted], given[part.corrupted], strict=True)}
    assert pairs == {(2, 7), (3, 8), (5, 6), (6, 5), (7, 1)}
    for true, _ in sorted(pairs):
        assert abs(part.corrupted[truth == true].mean() - 0.4) < 1 / (truth == true).sum()


def test_five_draws_train_on_the_same_rows_with_different_labels():
    parts = [trained(f"optdigits/instance_40_draw{draw}") for draw in range(1, 6)]
    assert all(np.array_equal(part.row_ids, parts[0].row_ids) for part in parts)
    assert len({part.observed_labels().tobytes() for part in parts}) == 5


@pytest.mark.parametrize("source", ["modadd97", "modmul97"])
def test_the_wrong_labels_at_one_rate_are_wrong_at_every_higher_one(source):
    parts = [load(f"{source}/xi{percent}", part="train") for percent in (10, 20, 35, 50)]
    assert [int(part.corrupted.sum()) for part in parts] == [470, 941, 1646, 2352]
    for low, high in pairwise(parts):
        assert np.array_equal(low.row_ids, high.row_ids)
        assert (low.observed_labels()[low.corrupted] == high.observed_labels()[low.corrupted]).all()


def test_flipped_clusters_are_an_exact_share():
    for percent in (5, 10, 15, 20):
        part = load(f"xor_clusters/eta{percent}", part="train")
        assert (part.observed_labels() != part.true_labels()).sum() == 4 * percent
        assert (len(part), len(load(f"xor_clusters/eta{percent}", part="id_test"))) == (400, 2000)


def test_two_core_benchmarks_come_from_here():
    core = [name for name, item in load_benchmarks().items() if "core" in item.definition.suites]
    assert {"optdigits/harder_noisier_40", "xor_clusters/eta10"} <= set(core)


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


def test_sources_of_noise_are_pinned_but_for_the_user_s_own():
    assert all(find_source(name).definition.digest for name in (*SOURCES, "modadd97", "modmul97", "xor_clusters"))
    assert not any(find_source(name).definition.digest for name in ("cifar10", "cifar100"))
