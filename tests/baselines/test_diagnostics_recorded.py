"""Diagnostics of a run: chosen by name, measured of each trained replica, and kept on its card."""

from __future__ import annotations

import farshift as fs
import pytest
import torch
from farshift import FarshiftError
from farshift.baselines.diagnostics import ROWS, diagnose_stack, list_diagnostics, parse_diagnostics
from farshift.baselines.diagnostics._subject import Subject, sample_rows
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.recipe import read_literal
from farshift.baselines.running.sweep import run_baseline
from farshift.baselines.training.replica_group import ReplicaGroup
from farshift.baselines.training.training_rows import Member
from farshift.benchmarks.model import Budget
from farshift.core.errors import ModelError
from farshift.core.plugins import find_module_file

from .killed_groups import made, rows
from .toys import ADD
from .trained_replicas import NAMES, mlp, numbers, stack, texts

ON = "modadd97/xi35"


@pytest.mark.parametrize("name", list_diagnostics())
def test_every_diagnostic_cites_its_source_and_says_its_tasks(name):
    file = find_module_file("baselines/diagnostics", name, "diagnostic")
    assert len(read_literal(file, "CITATION")) > 40
    assert set(read_literal(file, "TASKS")) <= {"classification", "sequence"}


def test_diagnostics_are_chosen_by_name_and_the_nearest_is_offered():
    assert parse_diagnostics("") == ()
    assert parse_diagnostics("sharpness, coherence,sharpness") == ("coherence", "sharpness")
    assert parse_diagnostics("all") == tuple(list_diagnostics())
    with pytest.raises(FarshiftError, match=r"^no diagnostic named 'sharp': did you mean sharpness\? \(or all\)$"):
        parse_diagnostics("sharp")


def test_what_does_not_fit_is_said_with_its_reason_and_is_no_number():
    data = texts()
    result = diagnose_stack(
        stack("lstm", data, Sizes(8, source=8), width=6), data, "sequence", "toy/toy", list_diagnostics()
    )[0]
    assert result["class_manifolds"] == "n/a (it is for classification tasks)"
    assert result["environment_gradients"] == "n/a (the training rows come from one environment)"
    assert result["information"] == "n/a (the training rows come from one environment)"
    assert isinstance(result["coherence.alpha"], float)
    assert isinstance(result["weight_participation.weights"], float)


def test_an_adaptive_algorithm_has_features_to_measure_and_no_gradients():
    data = numbers()
    result = diagnose_stack(
        mlp(data, algorithm="t3a").stack, data, "classification", "t/t", ["coherence", "dimension"]
    )[0]
    assert result["coherence"] == "n/a (it adapts while it predicts, so it has no gradients of its own)"
    assert isinstance(result["dimension.participation"], float)


def test_a_value_that_is_not_defined_is_said_to_be_none():
    data = numbers()
    subject = mlp(data)
    with torch.no_grad():
        subject.stack.network.hidden[0].weight.zero_()
    result = diagnose_stack(subject.stack, data, "classification", "toy/toy", ["dimension"])[0]
    assert result["dimension.participation"] == "n/a (not defined on these rows)"


def test_the_rows_are_a_draw_by_the_benchmark_s_name_and_none_has_no_weight():
    data = numbers(rows=600)
    weight = (torch.arange(600) % 2).double()[None]
    some = sample_rows(type(data)(data.inputs, data.target, data.lengths, weight, data.group), "toy/toy", ROWS)
    assert len(some) == ROWS
    assert bool((some.weight > 0).all())
    again = sample_rows(data, "toy/toy", ROWS)
    assert torch.equal(again.inputs[1], sample_rows(data, "toy/toy", ROWS).inputs[1])
    assert not torch.equal(again.inputs[1], sample_rows(data, "toy/other", ROWS).inputs[1])
    assert len(sample_rows(data, "toy/toy", 1000)) == 600


def test_texts_that_are_drawn_lose_the_columns_that_only_others_need():
    data = texts()
    short = sample_rows(data, "toy/toy", 5)
    assert short.target.shape == (1, 5, 4)
    only = Subject(stack("lstm", data, Sizes(8, source=8), width=6), sample_rows(texts(1), "toy/toy", 5), "sequence")
    assert only.data.target.shape == (1, 1, 2)
    assert only.data.inputs[1].shape == (1, 2)


def test_a_member_s_diagnostics_are_those_that_it_has_alone():
    names = ("coherence", "dimension", "environment_gradients")
    members = [Member(seed, {}) for seed in range(3)]
    given = rows(groups=3)
    every = ReplicaGroup(made(), ADD, members, "toy/toy", diagnose=names).fit(given, Budget("quick"))
    for member in members:
        alone = (
            ReplicaGroup(made(), ADD, [member], "toy/toy", diagnose=names).fit(given, Budget("quick")).remarks(member)
        )
        for name, value in every.remarks(member).items():
            if "." in name:
                assert alone[name] == pytest.approx(value, rel=1e-3), name
    assert every.remarks(members[0])["diagnostic_rows"] == 33


def test_replicas_that_stop_early_are_diagnosed_as_the_best_of_what_they_were():
    stopping = made(steps=60, lr=0.5, check_every=2, patience=2)
    members = [Member(seed, {}) for seed in range(3)]
    fit = ReplicaGroup(stopping, ADD, members, "toy/toy", diagnose=["coherence"]).fit(rows(), Budget("quick"))
    result = [fit.remarks(member) for member in members]
    assert any(item["steps"] < 60 for item in result)
    assert all(0 < item["coherence.alpha"] <= 1 for item in result)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("diagnosed") / "run"
    return run_baseline("quadratic-mlp", ON, seeds=2, steps=3, out=out, diagnose="weight_participation,dimension")


def test_a_run_s_card_has_the_diagnostics_of_each_seed(run):
    card = fs.read_run(run.path).card.to_dict()
    assert card["model"]["diagnose"] == ["dimension", "weight_participation"]
    values = [card["spent"]["by_seed"][f"seed_{seed}"] for seed in range(2)]
    assert values[0]["dimension.two_nn"] != values[1]["dimension.two_nn"]
    for own in values:
        assert 1 < own["dimension.participation"] < ROWS == own["diagnostic_rows"]
        assert 0 < own["weight_participation.fourier"] < 1


def test_diagnosing_does_not_change_what_is_predicted(run, tmp_path):
    other = run_baseline("quadratic-mlp", ON, seeds=2, steps=3, out=tmp_path / "r")
    assert other.predictions().equals(run.predictions())


def test_a_run_whose_replicas_cannot_all_be_shown_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"^knn: an estimator has no network to diagnose: leave --diagnose out$"):
        run_baseline("knn", ON, out=tmp_path / "r", diagnose="all")
    two = {"a": {"lr": 0.1}, "b": {"lr": 0.2}}
    with pytest.raises(ModelError, match="diagnostics need one replica a seed, and several settings are tried"):
        run_baseline("quadratic-mlp", ON, out=tmp_path / "r", settings=two, diagnose="all")


def test_a_diagnostic_of_one_s_own_is_one_file(tmp_path, monkeypatch):
    home = tmp_path / "baselines" / "diagnostics"
    home.mkdir(parents=True)
    (home / "norm.py").write_text(
        '"""The norm of the features."""\n'
        'CITATION = "none"\nTASKS = ("classification",)\n\n\n'
        'def measure(subject):\n    return {"mean": subject.features.norm(dim=2).mean(1)}\n'
    )
    (home / "broken.py").write_text(
        'CITATION = "none"\nTASKS = ("classification",)\n\n\n'
        'def measure(subject):\n    return {"mean": subject.features.norm(dim=2)}\n'
    )
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    subject = mlp(numbers())
    result = diagnose_stack(subject.stack, numbers(), "classification", "toy/toy", parse_diagnostics("norm"))
    expected = subject.features.norm(dim=2).mean(1).tolist()
    assert [item["norm.mean"] for item in result] == pytest.approx(expected)
    with pytest.raises(ModelError, match=r"^diagnostic broken: mean has the shape \(3, 12\): give one value a replica"):
        diagnose_stack(subject.stack, numbers(), "classification", "toy/toy", ["broken"])


def test_names_of_replicas_seed_what_is_drawn_for_them():
    data = numbers(rows=40)
    result = diagnose_stack(mlp(data).stack, data, "classification", "toy/toy", ["information"])
    assert len({item["information.label"] for item in result}) == len(NAMES)
