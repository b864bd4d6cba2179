"""The metrics of published benchmarks, held against what the official evaluators gave on the same predictions.

WILDS: p-lambda/wilds at 472677590de351857197a9bf24958838c39c272b, `eval` of the data set's class. OGB: snap-stanford/ogb
at 61e9784ca76edeaa6e259ba0f836099608ff0586. AugMix: google-research/augmix at 9b9824c7c19bf7e72df2d085d97b99b3bfb00ba4.
pycocotools 2.0.11. seqeval 1.2.2. The predictions are those of `made_predictions.py`.
"""

from __future__ import annotations

from typing import Any

import made_predictions as made
import numpy as np
import pytest
from farshift import Answers
from farshift.benchmarks.boxes import write_boxes
from farshift.benchmarks.metrics import find_metric
from farshift.benchmarks.model import Task

ALEXNET = (
    *(0.886428, 0.894468, 0.922640, 0.819880, 0.826268, 0.785948, 0.798360, 0.866816, 0.826572, 0.819324),
    *(0.564592, 0.853204, 0.646056, 0.717840, 0.606500),
)
"""AlexNet's mean errors under the 15 corruptions of ImageNet-C, as in `imagenet.py` of AugMix."""


def value(name: str, truth: Any, prediction: Any, columns: Any = None, options: Any = None, **task: Any) -> float:
    answers = Answers.all_given(np.asarray(prediction), task.pop("scores", None))
    result = find_metric(name, options=options)
    kind = task.pop("type", result.tasks[0])
    return result.value(answers, truth, Task(kind, ("x",), "y", **task), columns or {})


def near(official: float) -> object:
    """WILDS computes in float32."""
    return pytest.approx(official, rel=2e-7)


def test_the_worst_of_the_sixteen_overlapping_groups_of_civilcomments():
    truth, given, shares = made.comments()
    options = {"of": list(made.IDENTITIES), "by": ["y"]}
    assert value("worst_group_accuracy", truth, given, shares, options, classes=2) == near(0.6816479563713074)
    named = find_metric("worst_group_accuracy", options=options).memberships(
        truth, Task("classification", (), "y"), shares
    )
    assert len(set(named[named != ""].tolist())) == 16
    assert ((named != "").sum(axis=1) > 1).any()
    assert value("accuracy", truth, given, classes=2) == near(0.8090000152587891)


def test_the_worst_region_of_fmow_without_the_other_one():
    truth, given, region = made.places()
    columns = {"region": np.array(made.REGIONS, object)[region]}
    options = {"by": ["region"], "without": ["Other"]}
    assert value("worst_group_accuracy", truth, given, columns, options, classes=62) == near(0.48605579137802124)
    with_other = value("worst_group_accuracy", truth, given, columns, {"by": ["region"]}, classes=62)
    assert with_other == near(0.21991701424121857)


def test_the_tenth_percentile_of_the_users_of_amazon():
    truth, given, user = made.reviews()
    result = value("group_percentile_accuracy", truth, given, {"user": user}, {"by": ["user"]}, classes=5)
    assert result == near(0.5253133058547974)


def test_the_worse_of_urban_and_rural_correlation_of_povertymap():
    truth, given, urban = made.wealth()
    result = value("worst_group_pearson", truth, given, {"urban": urban}, {"by": ["urban"]})
    assert result == near(0.5765598221261542)
    assert value("pearson", truth, given) == near(0.7057528451588686)


def test_macro_f1_over_the_species_that_iwildcam_has():
    truth, given = made.animals()
    assert value("macro_f1_present", truth, given, classes=30) == near(0.4319184422492981)
    assert value("macro_f1", truth, given, classes=30) < 0.43, "the others that are named count there"
    assert value("balanced_accuracy", truth, given, classes=30) == near(0.5045709013938904)


@pytest.mark.parametrize(
    ("marks", "scheme", "official"),
    [
        ("BI", "conlleval", 0.7531645569620254),
        ("BIES", "conlleval", 0.8003952569169961),
        ("BI", "IOB1", 0.679035250463822),
        ("BI", "IOB2", 0.7824451410658307),
        ("BIES", "BIOES", 0.8009153318077804),
    ],
)
def test_the_f1_of_entities_by_what_the_tags_of_a_scheme_mark(marks, scheme, official):
    truth, given = [np.array([" ".join(tags) for tags in rows], object) for rows in made.names(marks)]
    assert value("entity_f1", truth, given, options={"scheme": scheme}) == pytest.approx(official, rel=1e-12)


def test_accuracy_on_the_class_and_method_tokens_of_py150():
    truth, given, types = made.code()
    texts = [np.array([" ".join(map(str, row)) for row in rows], object) for rows in (truth, given)]
    columns = {"types": np.array([" ".join(made.TYPES[kind] for kind in row) for row in types], object)}

    def on(*count: str) -> float:
        options = {"types": "types", "count": list(count)}
        return value("token_type_accuracy", *texts, columns, options)

    assert on("class", "method") == near(0.5147058963775635)
    assert on(*made.TYPES[:-1]) == near(0.6563574075698853)
    assert on("builtin") == near(0.7112970948219299)


def boxes(classes: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    true, given, session = made.wheat(classes=classes)
    drop = -1 if classes == 1 else None
    labels = [";".join(" ".join(map(str, box)) for box in item[:, :drop].tolist()) for item in true]
    result = [write_boxes(item[:, :drop]) for item in given]
    return np.array(labels, object), np.array(result, object), session


def test_detection_accuracy_of_globalwheat_over_pictures_and_over_sessions():
    truth, given, session = boxes()
    assert value("detection_accuracy", truth, given) == near(0.43871623277664185)
    result = value("domain_detection_accuracy", truth, given, {"session": session}, {"by": ["session"]})
    assert result == near(0.44077736636002857)


@pytest.mark.parametrize(
    ("classes", "mean", "at_half"),
    [(1, 0.23123582565307832, 0.5371115415482298), (3, 0.2426544618564365, 0.5556890503539096)],
)
def test_mean_average_precision_of_boxes(classes, mean, at_half):
    truth, given, _ = boxes(classes)
    assert value("mean_average_precision", truth, given) == pytest.approx(mean, rel=1e-6)
    assert value("mean_average_precision", truth, given, None, {"overlaps": [0.5]}) == pytest.approx(at_half, rel=1e-6)


def test_average_precision_of_the_assays_of_molpcba_where_they_are_known():
    truth, logits = made.assays()
    result = value(
        "multilabel_average_precision",
        truth.astype(np.float32),
        np.zeros(len(truth), np.int64),
        scores=logits.astype(np.float32),
        classes=truth.shape[1],
    )
    assert result == pytest.approx(0.5551483149407009, rel=1e-12)


def corrupted(**more: Any) -> tuple[Any, ...]:
    truth, given, corruption, severity = made.corrupted()
    columns = {"corruption": np.array(made.CORRUPTIONS, object)[corruption], "severity": severity}
    options = {"corruption": "corruption", "severity": "severity"} | more
    return truth, given, columns, options


def test_mean_corruption_error_in_units_of_alexnets():
    reference = dict(zip(made.CORRUPTIONS, ALEXNET, strict=True))
    result = value("mean_corruption_error", *corrupted(reference=reference), classes=10)
    assert 100 * result == pytest.approx(55.38326261525704, rel=1e-12)


def test_without_a_reference_it_is_the_mean_error_over_corruptions():
    truth, given, columns, options = corrupted()
    result = value("mean_corruption_error", truth, given, columns, options, classes=10)
    assert result == pytest.approx(np.mean(truth != given))


def test_relative_corruption_error_by_its_formula():
    reference, clean_error = dict(zip(made.CORRUPTIONS, ALEXNET, strict=True)), 0.435
    truth, given, columns, options = corrupted(reference=reference, reference_clean=clean_error)
    expected, clean = [], np.arange(400) % 4 == 0
    for number, name in enumerate(made.CORRUPTIONS):
        of = columns["corruption"] == name
        error = np.mean([np.mean((truth != given)[of & (columns["severity"] == item)]) for item in range(1, 6)])
        expected.append((error - clean.mean()) / (ALEXNET[number] - clean_error))

    def on(*kinds: str) -> float:
        full = [truth, given, columns["corruption"], columns["severity"]]
        plain = [np.zeros(400, np.int64), clean.astype(np.int64), np.full(400, "none", object), np.zeros(400, np.int64)]
        parts = [{"corrupted": full, "clean": plain}[kind] for kind in kinds]
        t, p, c, s = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return value("relative_corruption_error", t, p, {"corruption": c, "severity": s}, options, classes=10)

    assert on("corrupted", "clean") == pytest.approx(np.mean(expected))
    assert on("corrupted") - on("clean") == pytest.approx(np.mean(expected)), "OOD minus ID, where these are views"
