"""The score of guessing that a metric gives is what it gives to guesses."""

from __future__ import annotations

import numpy as np
import pytest
from farshift import Answers
from farshift.benchmarks.metrics import find_metric
from farshift.benchmarks.model import Task
from farshift.core.errors import BadDefinition


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        *(
            (name, classes)
            for name in ("accuracy", "balanced_accuracy", "macro_f1", "brier", "nll")
            for classes in (2, 5)
        ),
        ("auroc", 2),
    ],
)
def test_chance_is_the_score_of_all_guesses_on_all_classes(name, classes):
    truth, guesses = (column.ravel() for column in np.indices((classes, classes)))
    task = Task("classification", ("x",), "y", classes=classes)
    uniform = np.full((len(truth), classes), 1 / classes, np.float32)
    metric = find_metric(name)
    answers = Answers.all_given(guesses, uniform if metric.needs == "scores" else None)
    assert metric.chance(task) == pytest.approx(metric.value(answers, truth, task), abs=1e-6)


def test_a_metric_says_whether_it_is_a_smooth_function_of_the_rows():
    assert find_metric("accuracy").smooth
    assert not find_metric("worst_group_accuracy", options={"by": ["site"]}).smooth


def test_a_metric_of_ones_own_without_its_constants_is_refused_by_its_file(tmp_path, monkeypatch):
    folder = tmp_path / "benchmarks" / "metrics"
    folder.mkdir(parents=True)
    (folder / "bare.py").write_text('VERSION = 1\nTASKS = ("classification",)\n')
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    with pytest.raises(BadDefinition, match=r"bare\.py has no NEEDS, BETTER, BOUNDS: add it at the top$"):
        find_metric("bare")
