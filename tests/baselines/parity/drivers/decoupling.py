"""Decoupled training (Kang et al., ICLR 2020): rows are drawn for the second stage of cRT by its class-aware sampler."""

from importlib import import_module
from types import SimpleNamespace

import torch

from ..make import Made
from ..problems.steps import uneven_labels
from ..reference import Numbers

REPOSITORY = "facebookresearch/classifier-balancing"
COMMIT = "f162adef63fdf592d0b8a0f6e52bc481fc08785f"


def sampled() -> Numbers:
    """How often an epoch of the sampler draws each row: each class gives all of its rows equally often."""
    sampler = import_module("data.ClassAwareSampler").ClassAwareSampler
    drawn = torch.tensor(list(sampler(SimpleNamespace(labels=uneven_labels().tolist()))))
    return {"weights": (torch.bincount(drawn).double() / len(drawn)).tolist()}


MADE = {
    "crt": Made(
        sampled,
        "data/ClassAwareSampler.py: ClassAwareSampler",
        {"first_percent": 50},
        "rebalanced",
        remark="what a row counts in the second stage, which is its share of an epoch there",
    )
}
