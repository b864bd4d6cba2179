"""How long do 20 algorithms x 5 seeds take on features that a frozen encoder has made of PACS?

make bench-features [ARGS="--steps 300 irm coral"]

The features are random, 512 wide, a direction for each class and a shift for each domain: as many as PACS has of each
domain (art, cartoon, photo; sketch is held out). Each baseline trains with its recipe's own settings and steps (`full`),
all seeds in one replica group, then every seed is asked for all 9,991 rows. Seconds are this process's processor time,
on one thread, and wall clock.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch
from farshift.baselines.recipe import find_recipe
from farshift.baselines.training.replica_group import ReplicaGroup
from farshift.baselines.training.training_rows import FitInput, Member
from farshift.benchmarks.model import Budget, Task

ALGORITHMS = (
    "and-mask", "cdann", "coral", "dann", "domain-mixup", "eqrm", "erm", "fish", "fishr", "group-dro", "ib-erm",
    "ib-irm", "iga", "irm", "mldg", "mmd", "rsc", "sagnet", "sd", "vrex",
)  # fmt: skip
"""DomainBed's, and those of later papers that compare with them."""
PACS = {"art_painting": 2048, "cartoon": 2344, "photo": 1670, "sketch": 3929}
CLASSES, WIDTH = 7, 512
TASK = Task("classification", ("image",), "kind", classes=CLASSES)


class Rows:
    """Rows as the harness hands them to a model."""

    def __init__(self, columns: dict[str, Any]) -> None:
        self.columns = columns

    def numpy(self) -> dict[str, Any]:
        return dict(self.columns)

    def batches(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.columns["kind"])


def made() -> dict[str, Any]:
    draws = np.random.default_rng(0)
    domain = np.repeat(list(PACS), list(PACS.values()))
    kind = draws.integers(0, CLASSES, len(domain))
    directions, shifts = draws.normal(size=(CLASSES, WIDTH)), draws.normal(size=(len(PACS), WIDTH))
    position = np.searchsorted(list(PACS), domain)
    image = 0.2 * directions[kind] + 0.5 * shifts[position] + draws.normal(size=(len(domain), WIDTH))
    return {"image": image.astype(np.float32), "kind": kind, "group": domain}


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("names", nargs="*", default=ALGORITHMS)
    given.add_argument("--steps", type=int, help="optimiser steps of each replica; the recipe's by default")
    given.add_argument("--seeds", type=int, default=5)
    requested = given.parse_args()
    torch.set_num_threads(1)
    columns = made()
    seen = columns["group"] != "sketch"
    validation = np.arange(len(seen)) % 5 == 0
    train, val = ({name: x[seen & which] for name, x in columns.items()} for which in (~validation, validation))
    inputs = {"image": columns["image"]}
    print(
        f"{len(train['kind'])} training rows of {WIDTH} numbers, {len(seen)} asked, {requested.seeds} seeds, one thread"
    )
    total = np.zeros(2)
    for name in requested.names:
        start = np.array([time.process_time(), time.perf_counter()])
        baseline = find_recipe(name)
        members = [Member(seed, {}) for seed in range(requested.seeds)]
        group = ReplicaGroup(baseline, TASK, members, "bench/features")
        fit = group.fit(FitInput(Rows(train), Rows(val)), Budget("full", requested.steps))
        right = np.mean(
            [np.mean(fit.predict(member, inputs).prediction[~seen] == columns["kind"][~seen]) for member in members]
        )
        spent = np.array([time.process_time(), time.perf_counter()]) - start
        total += spent
        steps = requested.steps or baseline.steps("full", "bench/features")
        print(
            f"{name:14} {steps:5} steps {spent[0]:7.1f} s CPU {spent[1]:7.1f} s wall   sketch {right:.3f}", flush=True
        )
    print(f"{'all':14} {'':11} {total[0]:7.1f} s CPU {total[1]:7.1f} s wall")


if __name__ == "__main__":
    main()
