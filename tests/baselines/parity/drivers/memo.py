"""MEMO (Zhang, Levine and Finn, NeurIPS 2022): the toy's pictures, one by one, through the functions of
cifar-10-exps/test_calls/test_adapt.py, a script that runs when it is imported; of it they alone are compiled. Its views
are replaced by ours."""

import ast
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from .. import pictures
from ..make import Made
from ..problems.predictions import make_adapting as made
from ..reference import Numbers

REPOSITORY = "zhangmarvin/memo"
COMMIT = "228b2908d271c954ef8bf19cf143ede3b2fa8e3e"
RATE, VIEWS = 0.1, 8


def call() -> Numbers:
    script = Path(sys.path[0]) / "cifar-10-exps" / "test_calls" / "test_adapt.py"
    tree = ast.parse(script.read_text())
    tree.body = [item for item in tree.body if isinstance(item, ast.FunctionDef) and item.name != "test_single"]
    stack, network = made("memo", dict(SETTINGS)), pictures.plain(3.0)
    start = {name: value.clone() for name, value in network.state_dict().items()}
    scope: dict[str, Any] = {
        "np": np,
        "torch": torch,
        "net": network,
        "args": Namespace(niter=1, batch_size=VIEWS),
        "optimizer": torch.optim.SGD(network.parameters(), RATE),
        "aug": lambda views: next(views),
    }
    exec(compile(tree, str(script), "exec"), scope)

    def answered(batch: Tensor) -> Tensor:
        result = []
        for picture in batch:
            network.load_state_dict(start)
            nothing = torch.zeros(1, 1, 0, dtype=torch.int64)
            _, views = stack.algorithm.views(nothing, picture.flatten()[None, None])
            scope["adapt_single"](iter(views[0].view(VIEWS, *picture.shape)))
            with torch.no_grad():
                result.append(network(picture[None])[0])
        network.load_state_dict(start)
        return torch.stack(result)

    with patch.object(Tensor, "cuda", lambda self: self):
        return pictures.recorded(None, network, lambda _, batch: answered(batch))


SETTINGS = {"adaptive_lr": RATE, "views": VIEWS, "sharpness": 3.0}
CODE = "cifar-10-exps/test_calls/test_adapt.py: adapt_single"
REMARK = "Views are drawn by our augmentations flip_crop and augmix in both."
MADE = {"memo": Made(call, CODE, SETTINGS, "adapting", remark=REMARK)}
