"""Simple data balancing (Idrissi et al., CLeaR 2022), whose repository also has JTT."""

from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from .. import toy
from ..make import Made
from ..plain import descended, descent, network, on_cpu
from ..problems.steps import uneven_rows
from ..reference import Numbers

REPOSITORY = "facebookresearch/BalancingGroups"
COMMIT = "72d31e56e168b8ab03348810d4c5bac0f8a90a7a"
FIRST, TWICE = 1, 4
"""The epoch in which the error set is looked for, and what its rows weigh."""

ABSENT: dict[str, Any] = {
    "torchvision": {"transforms": None},
    "transformers": dict.fromkeys(("BertForSequenceClassification", "BertTokenizer", "AdamW", "get_scheduler")),
}


def twice() -> Numbers:
    """Rows are taken as often as its data set takes them."""
    with on_cpu(**ABSENT):
        from models import JTT

        class Toy(JTT):  # type: ignore[misc, unused-ignore]
            def init_model_(self, *_: Any, **__: Any) -> None:
                self.network = network()
                self.optimizer = descent(self.network.parameters())
                self.loss = nn.CrossEntropyLoss(reduction="none")
                self.lr_scheduler, self.clip_grad, self.data_type = None, False, "toy"

        x, y, g = toy.inputs(), toy.labels(), toy.groups()
        rows = torch.arange(len(y))
        about = Loader([None])
        about.dataset = Rows(data_type="toy", y=y.tolist(), g=g.tolist())
        built = Toy({"T": FIRST, "up": TWICE}, about)
        built.weights = built.weights.double()  # whole numbers refuse what it adds
        for _ in range(toy.STEPS):
            built.update(rows, x, y, g, FIRST - 1)
        built.update(rows, x, y, g, FIRST)
        rows = rows.repeat_interleave(built.weights.long())
        result: dict[str, Any] = {"losses": [], "parameters": []}
        for step in range(toy.STEPS):
            result["losses"].append(built.update(rows, x[rows], y[rows], g[rows], FIRST + 1 + step))
            result["parameters"].append(toy.flat(built.network.parameters()))
    return result | {"weights": built.weights.tolist()}


class Loader(list[Any]):
    """As many batches as it has, of a data set."""

    dataset: Any


class Rows(SimpleNamespace):
    def __len__(self) -> int:
        return len(self.y)


def by_class() -> Numbers:
    """The weights that its sampler draws rows by."""
    with on_cpu(**ABSENT):
        from datasets import GroupDataset

        built = GroupDataset.__new__(GroupDataset)
        built.y, built.g = toy.labels().tolist(), toy.groups().tolist()
        built.i = list(range(len(built.y)))
        built.count_groups()
    return {"weights": [weight / sum(built.wy) for weight in built.wy]}


def by_group() -> Numbers:
    """Steps on rows that count by the weights that its sampler draws them by; a group is an environment."""
    x, y, groups = uneven_rows()
    with on_cpu(**ABSENT):
        from datasets import GroupDataset

        built = GroupDataset.__new__(GroupDataset)
        built.y, built.g, built.i = [0] * len(y), groups.tolist(), list(range(len(y)))
        built.count_groups()
    weights, plain = torch.tensor(built.wg, dtype=torch.float64), network()
    errors = nn.CrossEntropyLoss(reduction="none")
    return descended([plain], lambda step: (weights * errors(plain(x), y)).sum() / weights.sum())


MADE = {
    "jtt": Made(
        twice,
        "models.py: JTT",
        {"first_percent": 50, "upweight": TWICE},
        "twice",
        remark="the second model begins with the toy's weights too",
    ),
    "class_reweighting": Made(
        by_class,
        "datasets.py: GroupDataset",
        {},
        "row_weights",
        remark="what a row counts, which is its chance of being drawn there",
    ),
    "group_reweighting": Made(
        by_group,
        "datasets.py: GroupDataset",
        {},
        "rebalanced",
        remark="rows count there by their chance of being drawn, and its groups of class and attribute are environments",
    ),
}
