"""Models for the tests: an honest one, and ones with every defect."""

from __future__ import annotations

import numpy as np


class Adder:
    """Knows modular addition, and is wrong on a share of the rows that its seed decides."""

    def __init__(self, seed: int = 0, wrong: float = 0.1) -> None:
        self.seed, self.wrong = seed, wrong

    def predict(self, batch):
        a, b = batch["a"], batch["b"]
        noise = ((a * 31 + b * 17 + self.seed * 7) % 100) < 100 * self.wrong
        return (a + b + noise) % 97


class Memoriser:
    """Gives back the label it was given, or 0 for a row it never saw."""

    def fit(self, train, val, budget):
        rows = train.numpy()
        self.known = dict(
            zip(zip(rows["a"].tolist(), rows["b"].tolist(), strict=True), rows["sum"].tolist(), strict=True)
        )
        return {"rows": len(train)}

    def predict(self, batch):
        pairs = zip(batch["a"].tolist(), batch["b"].tolist(), strict=True)
        return np.array([self.known.get(pair, 0) for pair in pairs])


class Breaking:
    """Is always right, but once raises, when it was asked for `breaks` batches. asked: the rows of each."""

    def __init__(self, breaks: int) -> None:
        self.breaks: int | None = breaks
        self.asked: list[int] = []

    def predict(self, batch):
        if len(self.asked) == self.breaks:
            self.breaks = None
            raise ConnectionError("gone")
        self.asked.append(len(batch["a"]))
        return (batch["a"] + batch["b"]) % 97


class Bad:
    """`predict` answers with what `answer` makes of the batch."""

    def __init__(self, answer):
        self.answer = answer

    def predict(self, batch):
        return self.answer(batch)


def raising(seed: int) -> Bad:
    def answer(batch):
        raise ValueError("out of luck")

    return Bad(answer)


class Echo:
    """Translates each primitive of a SCAN command and ignores all else."""

    def predict(self, batch):
        known = {"walk", "look", "run", "jump"}
        return [" ".join(f"I_{word.upper()}" for word in text.split() if word in known) for text in batch["command"]]
