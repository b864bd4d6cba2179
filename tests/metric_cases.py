"""Answers to score, of every type of task: with ties, absent classes, empty texts, and rows that were lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from farshift import Answers
from farshift.benchmarks.answers import ANSWERED, FAILED
from farshift.benchmarks.metrics import Metric
from farshift.benchmarks.model import Task
from hypothesis import strategies as st

TEXTS = st.lists(st.sampled_from("aB"), max_size=5).map(" ".join)
NUMBERS = st.integers(-8, 8).map(lambda eighths: eighths / 8)


@dataclass(frozen=True)
class Case:
    """Answers of which some rows may be lost, and what is true of them; `columns` is what metrics may read besides."""

    answers: Answers
    truth: np.ndarray
    task: Task
    columns: dict[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.truth)

    def __getitem__(self, rows: Any) -> Case:
        columns = {name: values[rows] for name, values in self.columns.items()}
        return Case(self.answers[rows], self.truth[rows], self.task, columns)

    @property
    def settled(self) -> Answers:
        return self.answers.fill_missing(self.truth, self.task)

    def state(self, metric: Metric) -> dict[str, np.ndarray]:
        return metric.update(self.settled, self.truth, self.task, self.columns)

    def value(self, metric: Metric) -> float:
        return metric.value(self.settled, self.truth, self.task, self.columns)

    def losing(self, row: int) -> Case:
        """The same with one row lost."""
        status = self.answers.status.copy()
        status[row] = FAILED
        return replace(self, answers=replace(self.answers, status=status))

    def right(self) -> Case:
        """The same with every row answered rightly, and with certainty."""
        if self.task.type == "detection":
            return replace(self, answers=Answers.all_given(np.array([scored(text) for text in self.truth], object)))
        if self.task.type == "multilabel":
            return replace(self, answers=labelled(np.nan_to_num(self.truth)))
        scores = np.eye(self.task.classes, dtype=np.float32)[self.truth] if self.task.classes else None
        return replace(self, answers=Answers.all_given(self.truth, scores))


OPTIONS: dict[str, dict[str, Any]] = {
    "worst_group_accuracy": {"by": ["y"], "of": ["one", "two"], "without": ["two, 0"]},
    "group_percentile_accuracy": {"by": ["place"]},
    "worst_group_pearson": {"by": ["place"], "without": ["Other"]},
    "worst_group_regret": {"by": ["place"], "of": ["one", "two"], "without": ["two, Other"]},
    "worst_group_squared_regret": {"by": ["place"], "of": ["one", "two"], "without": ["two, Other"]},
    "demographic_parity_difference": {"by": ["place"], "without": ["Other"]},
    "equalised_odds_difference": {"by": ["place"]},
    "counterfactual_flip_rate": {"person": "place"},
    "domain_detection_accuracy": {"by": ["place"]},
    "token_type_accuracy": {"types": "types", "count": ["class", "method"]},
    "shape_bias": {"against": "one"},
    "mean_corruption_error": {"corruption": "place", "severity": "one", "clean": "Other"},
    "relative_corruption_error": {
        "corruption": "place",
        "severity": "one",
        "clean": "Other",
        "reference": {"Asia": 0.5, "Europe": 0.75},
        "reference_clean": 0.25,
    },
}
"""What a benchmark would say to those metrics that ask."""


def _columns(draw: Callable[..., Any], truth: Any) -> dict[str, np.ndarray]:
    """Fields beside answer and label: a place, two properties that may overlap, and types of the tokens of texts."""
    row = st.tuples(st.sampled_from(["Asia", "Europe", "Other"]), st.integers(0, 1), st.sampled_from([0.0, 0.25, 0.5]))
    position, item, two = zip(*draw(st.lists(row, min_size=len(truth), max_size=len(truth))), strict=True)
    types = [
        " ".join(draw(st.sampled_from(["class", "method", "literal"])) for _ in str(text).split()) for text in truth
    ]
    return {
        "place": np.array(position, object),
        "one": np.array(item),
        "two": np.array(two),
        "types": np.array(types, object),
    }


def _status(lost: list[bool]) -> np.ndarray:
    return np.where(lost, FAILED, ANSWERED).astype(np.int8)


def distribution(weights: tuple[int, ...]) -> np.ndarray:
    """Small whole numbers as probabilities, so that ties are common; uniform where all are zero."""
    given = np.array(weights, np.float32)
    return given / given.sum() if given.any() else np.full(len(weights), 1 / len(weights), np.float32)


def probabilities_of(classes: int) -> st.SearchStrategy[np.ndarray]:
    return st.tuples(*[st.integers(0, 3)] * classes).map(distribution)


@st.composite
def classified(draw: Callable[..., Any], classes: int | None = None, losses: bool = True) -> Case:
    """Rows of 2 to 4 classes (or just so many), not all of which need occur. The class named is mostly, but need not
    be, the one of most probability."""
    classes = classes or draw(st.integers(2, 4))
    label = st.integers(0, classes - 1)
    item = st.tuples(
        label, probabilities_of(classes), label, st.booleans(), st.booleans() if losses else st.just(False)
    )
    truth, scores, other, named_otherwise, lost = zip(*draw(st.lists(item, min_size=1, max_size=20)), strict=True)
    scores = np.stack(scores)
    prediction = np.where(named_otherwise, other, scores.argmax(axis=1))
    answers = Answers(prediction, _status(lost), scores)
    return Case(answers, np.array(truth), Task("classification", ("x",), "y", classes), _columns(draw, truth))


@st.composite
def written(draw: Callable[..., Any], tokens: str = "whitespace") -> Case:
    """Texts of up to five tokens out of two."""
    given, expected, lost = zip(
        *draw(st.lists(st.tuples(TEXTS, TEXTS, st.booleans()), min_size=1, max_size=12)), strict=True
    )
    task = Task("sequence", ("x",), "y", tokens=tokens)
    columns = _columns(draw, expected) if tokens == "whitespace" else {}
    return Case(Answers(np.array(given, object), _status(lost)), np.array(expected, object), task, columns)


@st.composite
def measured(draw: Callable[..., Any], losses: bool = True) -> Case:
    """Numbers in eighths between -1 and 1."""
    item = st.tuples(NUMBERS, NUMBERS, st.booleans() if losses else st.just(False))
    given, true, lost = zip(*draw(st.lists(item, min_size=1, max_size=20)), strict=True)
    task = Task("regression", ("x",), "y")
    return Case(Answers(np.array(given), _status(lost)), np.array(true), task, _columns(draw, true))


def labelled(scores: np.ndarray, lost: Any = None) -> Answers:
    """Scores of labels as answers."""
    status = np.zeros(len(scores), np.int8) if lost is None else _status(list(lost))
    return Answers((scores > 0).sum(axis=1), status, scores.astype(np.float32))


@st.composite
def multilabelled(draw: Callable[..., Any], losses: bool = True) -> Case:
    """Rows of three labels, some of them missing, with scores that are often equal."""
    label = st.sampled_from([0.0, 1.0, np.nan])
    item = st.tuples(st.tuples(*[label] * 3), st.tuples(*[NUMBERS] * 3), st.booleans() if losses else st.just(False))
    truth, scores, lost = zip(*draw(st.lists(item, min_size=1, max_size=12)), strict=True)
    answers = labelled(np.array(scores), lost)
    return Case(answers, np.array(truth, np.float32), Task("multilabel", ("x",), "y", 3), _columns(draw, truth))


def scored(boxes: str) -> str:
    """True boxes as if they were found, with certainty."""
    rows = [item.split() for item in boxes.split(";")] if boxes else []
    return ";".join(" ".join([*row[:4], "1", *row[4:]]) for row in rows)


def box(draw: Callable[..., Any]) -> list[int]:
    """A box on a grid of 8 by 8, so that many overlap, and its class."""
    x, y = draw(st.tuples(st.integers(0, 5), st.integers(0, 5)))
    return [x, y, x + draw(st.integers(1, 3)), y + draw(st.integers(1, 3)), draw(st.integers(0, 1))]


@st.composite
def boxed(draw: Callable[..., Any]) -> Case:
    """Pictures with up to four boxes, and as many found."""
    true, given, lost = [], [], []
    for _ in range(draw(st.integers(1, 6))):
        expected = {tuple(item[:4]): item for item in (box(draw) for _ in range(draw(st.integers(0, 4))))}
        true.append(";".join(" ".join(map(str, item)) for item in expected.values()))
        named = [box(draw) for _ in range(draw(st.integers(0, 4)))]
        scores = [draw(st.sampled_from([0.25, 0.5, 0.75, 0.875])) for _ in named]
        given.append(
            ";".join(f"{a} {b} {c} {d} {score} {kind}" for (a, b, c, d, kind), score in zip(named, scores, strict=True))
        )
        lost.append(draw(st.booleans()))
    answers = Answers(np.array(given, object), _status(lost))
    return Case(answers, np.array(true, object), Task("detection", ("x",), "y"), _columns(draw, true))


CASES = {
    "classification": classified(),
    "multilabel": multilabelled(),
    "sequence": written(),
    "detection": boxed(),
    "regression": measured(),
}
"""Cases by type of task."""
