"""Answers to score, of every type of task: with ties, absent classes, empty texts, and rows that were lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from farshift.benchmarks.answers import ANSWERED, FAILED, Answers
from farshift.benchmarks.metrics import Metric
from farshift.benchmarks.model import Task
from hypothesis import strategies as st

TEXTS = st.lists(st.sampled_from("ab"), max_size=5).map(" ".join)
NUMBERS = st.integers(-8, 8).map(lambda eighths: eighths / 8)


@dataclass(frozen=True)
class Case:
    """Answers of which some rows may be lost, and what is true of them."""

    answers: Answers
    truth: np.ndarray
    task: Task

    def __len__(self) -> int:
        return len(self.truth)

    def __getitem__(self, rows: Any) -> Case:
        return Case(self.answers[rows], self.truth[rows], self.task)

    @property
    def settled(self) -> Answers:
        return self.answers.settled(self.truth, self.task)

    def state(self, metric: Metric) -> dict[str, np.ndarray]:
        return metric.update(self.settled, self.truth, self.task)

    def value(self, metric: Metric) -> float:
        return metric.value(self.settled, self.truth, self.task)

    def losing(self, row: int) -> Case:
        """The same with one row lost."""
        status = self.answers.status.copy()
        status[row] = FAILED
        return replace(self, answers=replace(self.answers, status=status))

    def right(self) -> Case:
        """The same with every row answered rightly, and with certainty."""
        scores = np.eye(self.task.classes, dtype=np.float32)[self.truth] if self.task.classes else None
        return replace(self, answers=Answers.all_given(self.truth, scores))


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
    one = st.tuples(label, probabilities_of(classes), label, st.booleans(), st.booleans() if losses else st.just(False))
    truth, scores, other, named_otherwise, lost = zip(*draw(st.lists(one, min_size=1, max_size=20)), strict=True)
    scores = np.stack(scores)
    prediction = np.where(named_otherwise, other, scores.argmax(axis=1))
    answers = Answers(prediction, _status(lost), scores)
    return Case(answers, np.array(truth), Task("classification", ("x",), "y", classes))


@st.composite
def written(draw: Callable[..., Any], tokens: str = "whitespace") -> Case:
    """Texts of up to five tokens out of two."""
    given, expected, lost = zip(
        *draw(st.lists(st.tuples(TEXTS, TEXTS, st.booleans()), min_size=1, max_size=12)), strict=True
    )
    task = Task("sequence", ("x",), "y", tokens=tokens)
    return Case(Answers(np.array(given, object), _status(lost)), np.array(expected, object), task)


@st.composite
def measured(draw: Callable[..., Any], losses: bool = True) -> Case:
    """Numbers in eighths between -1 and 1."""
    one = st.tuples(NUMBERS, NUMBERS, st.booleans() if losses else st.just(False))
    given, true, lost = zip(*draw(st.lists(one, min_size=1, max_size=20)), strict=True)
    return Case(Answers(np.array(given), _status(lost)), np.array(true), Task("regression", ("x",), "y"))


CASES = {"classification": classified(), "sequence": written(), "regression": measured()}
"""Cases by type of task."""
