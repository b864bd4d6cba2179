"""Accuracy along a stream of tasks, by evaluation after every step (De Lange et al., section 3).

With A(i, n) the accuracy on task i after step n, and t_i the last step of task i of T:

    accuracy             mean over i of A(i, t_T)
    forgetting           mean over i < T of A(i, t_i) - A(i, t_T)
    min_accuracy         mean over i < T of min over n, t_i < n <= t_T, of A(i, n)           (min-ACC)
    worst_case_accuracy  A(T, t_T) / T + (1 - 1 / T) min_accuracy                            (WC-ACC)
    stability_gap        mean over i < j of min(A(i, t_{j-1}), A(i, t_j)) - min over n, t_{j-1} <= n <= t_j, of A(i, n)

The paper describes the stability gap, a fall while a new task is begun from which the network recovers, and has no
number for it: the one here is ours, the part of the fall during task j that is made up for at its end. It is 0 if
accuracy is only known at the ends of tasks. It is of the in-distribution validation rows, and of the algorithm
`task_stream`.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from . import NotApplicable
from ._subject import Subject

CITATION = (
    "De Lange, van de Ven and Tuytelaars, Continual evaluation for lifelong learning: identifying the stability gap, "
    "ICLR 2023 (arXiv:2205.13452)"
)
TASKS = ("classification",)


def measure(subject: Subject) -> dict[str, Tensor]:
    """Each (K,). `NotApplicable` if the algorithm learns no stream of tasks."""
    algorithm: Any = subject.stack.algorithm
    if not hasattr(algorithm, "curve"):
        raise NotApplicable("it learns no stream of tasks: use the algorithm task_stream")
    return summarise_stream(algorithm.curve.double(), algorithm.ends)


def summarise_stream(curve: Tensor, ends: Sequence[int]) -> dict[str, Tensor]:
    """The measures of accuracies (K, steps, T), NaN after steps without evaluation; ends: the last step of each task,
    (T,). Each (K,)."""
    tasks, known = len(ends), torch.where(curve.isnan(), torch.inf, curve)
    at_ends = curve[:, list(ends)]
    last = at_ends[:, -1]
    lowest = [known[:, end + 1 :, task].amin(1) for task, end in enumerate(ends[:-1])]
    min_accuracy = torch.stack(lowest).mean(0)
    gaps = [
        torch.minimum(at_ends[:, new - 1, task], at_ends[:, new, task])
        - known[:, ends[new - 1] : ends[new] + 1, task].amin(1)
        for new in range(1, tasks)
        for task in range(new)
    ]
    learnt = at_ends.diagonal(dim1=1, dim2=2)
    return {
        "accuracy": last.mean(1),
        "forgetting": (learnt - last)[:, :-1].mean(1),
        "min_accuracy": min_accuracy,
        "worst_case_accuracy": last[:, -1] / tasks + (1 - 1 / tasks) * min_accuracy,
        "stability_gap": torch.stack(gaps).mean(0),
    }
