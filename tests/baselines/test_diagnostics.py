"""What is measured of trained replicas, against plain loops and closed forms, and what a run's card has of it."""

import math

import farshift as fs
import pytest
import torch
from farshift import FarshiftError
from farshift.baselines.diagnostics import (
    ROWS,
    _subject,
    coherence,
    diagnose_stack,
    environment_gradients,
    list_diagnostics,
    parse_diagnostics,
    sharpness,
    vendi,
)
from farshift.baselines.diagnostics._subject import Subject, sample_rows
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.recipe import read_literal
from farshift.baselines.replicas.stacked import select_replicas
from farshift.baselines.running.sweep import run_baseline
from farshift.baselines.training.replica_group import ReplicaGroup
from farshift.baselines.training.training_rows import Member
from farshift.benchmarks.model import Budget
from farshift.core.errors import ModelError
from farshift.core.plugins import find_module_file
from torch import nn

from .killed_groups import made, rows
from .toys import ADD
from .trained_replicas import NAMES, mlp, numbers, plain, row_gradients, stack, texts


@pytest.mark.parametrize("held", [10_000, 150])
def test_the_gradients_of_rows_are_those_of_a_plain_loop_however_many_are_held_at_once(held, monkeypatch):
    monkeypatch.setattr(_subject, "HELD_VALUES", held)
    subject = mlp(numbers())
    for replica in range(3):
        ours = torch.cat(list(subject.row_gradients(replica)))
        torch.testing.assert_close(ours, row_gradients(subject, replica), rtol=1e-12, atol=1e-12)
    assert subject.held_rows == (12 if held == 10_000 else 3)


def test_gradients_of_texts_are_those_of_a_replica_that_is_given_one_text():
    data = texts()
    subject = Subject(stack("lstm", data, Sizes(8, source=8), width=6, dropout=0.5), data, "sequence")
    ours = torch.cat(list(subject.row_gradients(1)))
    alone = select_replicas(subject.stack.network, [1])
    for row, (source, target) in enumerate(zip(*data.inputs, strict=True)):
        real = int(data.lengths[row])
        logits = alone(source[None, None], target[None, None, :real])[0, 0]
        loss = nn.functional.cross_entropy(logits, target[:real])
        expected = torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(alone.parameters()))])
        torch.testing.assert_close(ours[row], expected, rtol=1e-10, atol=1e-12)


def test_coherence_is_the_squared_mean_gradient_over_the_mean_squared():
    subject = mlp(numbers())
    result = coherence.measure(subject)
    for replica in range(3):
        g = row_gradients(subject, replica)
        expected = g.mean(0).square().sum() / g.square().sum(1).mean()
        assert result["alpha"][replica].item() == pytest.approx(expected.item(), rel=1e-12)
        assert result["rows_helped"][replica].item() == pytest.approx(12 * expected.item(), rel=1e-12)


class Given:
    """A subject whose rows have the gradients given, (K, n, parameters)."""

    def __init__(self, gradients):
        self.gradients, self.replicas = gradients, len(gradients)

    def __len__(self):
        return self.gradients.shape[1]

    def row_gradients(self, replica):
        return self.gradients[replica].split(2)


def test_identical_gradients_cohere_wholly_and_orthogonal_ones_by_one_row():
    eye = torch.eye(5, dtype=torch.float64)
    result = coherence.measure(Given(torch.stack([eye[:1].expand(5, 5), eye, 0 * eye])))
    assert result["alpha"].tolist()[:2] == pytest.approx([1.0, 0.2])
    assert result["rows_helped"].tolist()[:2] == pytest.approx([5.0, 1.0])
    assert math.isnan(result["alpha"][2])


def test_the_vendi_score_counts_directions():
    eye = torch.eye(5, dtype=torch.float64)
    pairs = torch.stack([eye[0], 3 * eye[0], eye[1], 2 * eye[1], eye[1] * 0])
    result = vendi.measure(Given(torch.stack([eye[:1].expand(5, 5), eye, pairs, 0 * eye])))["score"].tolist()
    assert result[:3] == pytest.approx([1.0, 5.0, 2.0])
    assert math.isnan(result[3])


def test_the_vendi_score_is_the_exponential_of_the_kernel_s_entropy(monkeypatch):
    monkeypatch.setattr(_subject, "HELD_VALUES", 150)
    subject = mlp(numbers())
    result = vendi.measure(subject)["score"]
    for replica in range(3):
        unit = nn.functional.normalize(row_gradients(subject, replica))
        spectrum = torch.linalg.svdvals(unit).square() / 12
        spectrum = spectrum[spectrum > 1e-14]
        expected = math.exp(-(spectrum * spectrum.log()).sum())
        assert result[replica].item() == pytest.approx(expected, rel=1e-8)


def test_environment_gradients_are_compared_by_the_mean_cosine_of_their_pairs():
    subject = mlp(numbers(groups=4))
    result = environment_gradients.measure(subject)
    for replica in range(3):
        rows = row_gradients(subject, replica)
        each = [rows[subject.data.group == item].mean(0) for item in range(4)]
        pairs = [nn.functional.cosine_similarity(a, b, dim=0) for n, a in enumerate(each) for b in each[:n]]
        assert result["cosine"][replica].item() == pytest.approx(float(torch.stack(pairs).mean()), rel=1e-10)
    assert result["environments"].tolist() == [4, 4, 4]


def shifted_losses(subject, replica, shares):
    """The mean loss of a plain model whose weights are w + |w| d."""
    model = plain(subject, replica)
    with torch.no_grad():
        for parameter, share in zip(model.parameters(), shares, strict=True):
            parameter += parameter.abs() * share
        return nn.functional.cross_entropy(model(subject.data.inputs[1]), subject.data.target[0])


def test_average_sharpness_is_the_mean_rise_over_moves_in_proportion_to_the_weights(monkeypatch):
    monkeypatch.setattr(sharpness, "DRAWS", 300)
    subject = mlp(numbers(), names=NAMES[:1])
    result = sharpness.measure(subject)["average"].item()
    drawn = torch.Generator().manual_seed(0)
    rises = []
    for _ in range(300):
        shares = [
            0.1 * torch.randn(p.shape, generator=drawn, dtype=torch.float64) for p in plain(subject, 0).parameters()
        ]
        rises.append(shifted_losses(subject, 0, shares))
    still = shifted_losses(subject, 0, [0.0] * 4)
    rises = torch.stack(rises) - still
    assert result == pytest.approx(rises.mean().item(), abs=6 * rises.std().item() * (2 / 300) ** 0.5)


def test_worst_sharpness_is_above_any_random_move_of_its_radius_and_the_first_order_one():
    subject = mlp(numbers())
    result = sharpness.measure(subject)["worst"]
    for replica in range(3):
        model = plain(subject, replica)
        loss = nn.functional.cross_entropy(model(subject.data.inputs[1]), subject.data.target[0])
        slopes = torch.autograd.grad(loss, list(model.parameters()))
        uphill = [g * p.detach().abs() for g, p in zip(slopes, model.parameters(), strict=True)]
        norm = torch.cat([item.flatten() for item in uphill]).norm()
        first = shifted_losses(subject, replica, [sharpness.RHO * item / norm for item in uphill]) - loss
        assert result[replica] >= first - 1e-12 > 0
        drawn = torch.Generator().manual_seed(replica)
        for _ in range(50):
            move = [torch.randn(p.shape, generator=drawn, dtype=torch.float64) for p in model.parameters()]
            norm = torch.cat([item.flatten() for item in move]).norm()
            moved = shifted_losses(subject, replica, [sharpness.RHO * item / norm for item in move])
            assert moved - loss <= result[replica]


def test_adaptive_sharpness_does_not_see_a_rescaling_that_leaves_the_function():
    subject = mlp(numbers(), names=NAMES[:1])
    before = sharpness.measure(subject)
    network = subject.stack.network
    with torch.no_grad():
        network.hidden[0].weight *= 7
        network.hidden[0].bias *= 7
        network.head.weight /= 7
    after = sharpness.measure(subject)
    for name in ("average", "worst"):
        assert after[name].item() == pytest.approx(before[name].item(), rel=1e-9)


def test_a_replica_is_diagnosed_alike_alone_and_among_others():
    data = numbers(rows=40)
    every = diagnose_stack(mlp(data).stack, data, "classification", "toy/toy", list_diagnostics())
    for replica, name in enumerate(NAMES):
        alone = diagnose_stack(mlp(data, names=(name,)).stack, data, "classification", "toy/toy", list_diagnostics())[0]
        assert alone.keys() == every[replica].keys()
        for what, value in alone.items():
            assert every[replica][what] == (value if isinstance(value, str) else pytest.approx(value, rel=1e-9)), what


def test_diagnosing_leaves_the_replicas_as_they_were():
    data = numbers(rows=40)
    built = mlp(data).stack
    before = [parameter.detach().clone() for parameter in built.parameters()]
    answers = built.answer(*data.inputs)
    diagnose_stack(built, data, "classification", "toy/toy", list_diagnostics())
    assert all(torch.equal(a, b) for a, b in zip(before, built.parameters(), strict=True))
    assert torch.equal(built.answer(*data.inputs), answers)


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
