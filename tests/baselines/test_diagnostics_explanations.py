"""Fidelity of local linear explanations: against closed forms, and against a plain weighted regression."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from farshift.baselines.diagnostics import NotApplicable, explanation_fidelity
from farshift.baselines.diagnostics._subject import Subject
from farshift.baselines.encoding.encoding import Sizes
from farshift.core.draws import UNIT, draw_normal_units

from .trained_replicas import CLASSES, WIDTH, mlp, numbers, plain, stack


class Given:
    """A subject of one replica whose logit of class 1 is a given function of the numbers, and of class 0 is 0."""

    def __init__(self, function, rows, groups):
        rows = torch.as_tensor(rows, dtype=torch.float64)
        self.replicas, self.groups = 1, torch.tensor(groups)
        self.data = SimpleNamespace(inputs=(torch.zeros(len(rows), 0, dtype=torch.int64), rows))

        def both(x):
            return torch.stack([torch.zeros(x.shape[:-1]).double(), function(x)], dim=-1)

        self.stack = SimpleNamespace(network=None, algorithm=SimpleNamespace(logits=lambda _, __, x: both(x)))
        self.logits = lambda: both(rows[None])

    def __len__(self):
        return len(self.data.inputs[1])


def test_a_linear_network_is_explained_exactly():
    data = numbers()
    subject = Subject(stack("linear", data, Sizes(CLASSES, numbers=WIDTH)), data, "classification")
    result = explanation_fidelity.measure(subject)
    assert result["mean"].tolist() == pytest.approx([1] * 3, abs=1e-12)
    assert result["disparity"].tolist() == pytest.approx([0] * 3, abs=1e-12)


def test_a_square_is_explained_as_the_closed_form_says_whatever_its_unit(monkeypatch):
    monkeypatch.setattr(explanation_fidelity, "PERTURBATIONS", 40_000)
    rows = np.array([[0.0, 1.0], [1.0, 4.0], [2.0, 0.0], [-3.0, 2.0]])
    a = rows[:, 0] / rows[:, 0].std(ddof=1)
    v = 1 / (1 + 2 / (0.75**2 * 2))
    expected = 2 * a**2 / (2 * a**2 + v)
    for unit in (1.0, 100.0):
        subject = Given(lambda x: x[..., 0] ** 2, rows * unit, [0, 0, 1, 1])
        assert explanation_fidelity.compute_fidelities(subject)[0].numpy() == pytest.approx(expected, abs=0.01)
    result = {name: float(value) for name, value in explanation_fidelity.measure(subject).items()}
    of_group = expected.reshape(2, 2).mean(1)
    assert result["mean"] == pytest.approx(expected.mean(), abs=0.01)
    assert result["lowest"] == pytest.approx(of_group.min(), abs=0.01)
    assert result["disparity"] == pytest.approx(np.ptp(of_group), abs=0.01)
    assert np.ptp(of_group) > 0.3


def test_the_explanation_of_a_perceptron_is_a_weighted_regression_of_its_logit():
    subject = mlp(numbers())
    fidelity = explanation_fidelity.compute_fidelities(subject)
    x = subject.data.inputs[1]
    for replica, row in ((0, 0), (1, 5), (2, 11)):
        z = draw_normal_units(f"explanation_fidelity/{row}", 512 * WIDTH).reshape(512, WIDTH) / UNIT
        model = plain(subject, replica)
        with torch.no_grad():
            output = model(x[row] + torch.from_numpy(z) * x.std(0))
            output = output[:, model(x[row]).argmax()] - output.mean(1)
        weight = np.exp(-(z**2).sum(1) / (0.75**2 * WIDTH))
        design = np.concatenate([np.ones((512, 1)), z], axis=1)
        f = output.numpy()
        g = design @ np.linalg.solve(design.T @ (weight[:, None] * design), design.T @ (weight * f))
        residual, total = ((weight * (f - of) ** 2).sum() for of in (g, np.average(f, weights=weight)))
        assert float(fidelity[replica, row]) == pytest.approx(1 - residual / total, rel=1e-9)


def test_a_constant_is_explained_and_an_input_that_never_varies_is_not_perturbed():
    rows = [[0.0, 5.0], [1.0, 5.0], [2.0, 5.0]]
    assert explanation_fidelity.measure(Given(lambda x: 0 * x[..., 0] + 3, rows, [0, 0, 1]))["mean"].tolist() == [1]
    assert explanation_fidelity.measure(Given(lambda x: (x[..., 1] - 5) ** 2, rows, [0, 0, 1]))["mean"].tolist() == [1]


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (lambda: mlp(numbers(groups=1)), "one environment"),
        (lambda: Given(lambda x: x[..., 0], torch.zeros(4, 2), [0, 0, 1, 1]), "0 numbers vary"),
        (lambda: Given(lambda x: x[..., 0], torch.randn(4, 200), [0, 0, 1, 1]), "200 numbers vary"),
    ],
)
def test_rows_without_groups_or_with_none_or_too_many_numbers_say_why(subject, reason):
    with pytest.raises(NotApplicable, match=reason):
        explanation_fidelity.measure(subject())
