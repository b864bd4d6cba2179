"""EIIL's released code: the environments that it infers from the scores of a network."""

from importlib import import_module
from unittest.mock import patch

import torch
from torch import Tensor

from ..make import Made
from ..problems.values import scores
from ..reference import Numbers

REPOSITORY = "ecreager/eiil"
COMMIT = "0e9daed7198ea7206b9cd673982b6f2823f28a2f"
SETTINGS = {"steps": 60, "rate": 0.05}


def eiil() -> Numbers:
    """The start is given, and read again where its Adam has left it."""
    split = import_module("opt_env.utils.opt_utils").split_data_opt
    score, labels, start = scores()
    given = {"images": score[:, None], "labels": labels[:, None].double()}
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with patch.object(Tensor, "cuda", lambda self: self), patch.object(torch, "randn", lambda _: start):
            split(given, lambda x: x, n_steps=SETTINGS["steps"], lr=SETTINGS["rate"], join=False, no_tqdm=True)
    finally:
        torch.set_default_dtype(before)
    return {"shares": start.tolist()}


MADE = {
    "eiil": Made(
        eiil,
        "opt_env/utils/opt_utils.py: split_data_opt",
        SETTINGS,
        "estimates",
        remark="the inference of environments, of two classes; what follows is IRM",
    )
}
