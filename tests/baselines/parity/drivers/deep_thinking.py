"""Deep thinking networks (Bansal et al., NeurIPS 2022): one batch through `train_progressive`."""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from .. import draws, toy
from ..make import Made
from ..plain import on_cpu, taken
from ..problems.values import MOST, STEP, Thinker, tokens
from ..reference import Numbers

REPOSITORY = "aks2203/deep-thinking"
COMMIT = "152fb1182fb5dc11275859407ceec46102c20e42"
ALPHA = 0.4


class Called(nn.Module):
    """The thinker as it calls one: rows (n, INPUTS, tokens), logits (n, classes, tokens), and a state that may be given."""

    def __init__(self) -> None:
        super().__init__()
        self.thinker = Thinker()

    def forward(self, x: Tensor, iters_to_do: int, interim_thought: Any = None, **_: Any) -> tuple[Tensor, Tensor]:
        x, state, seen = self.thinker.begin(x.mT)
        state = state if interim_thought is None else interim_thought
        for _ in range(iters_to_do):
            state = self.thinker.think(x, state, seen)
        return self.thinker.head(state).mT, state


def progressive() -> Numbers:
    first, second = draws.even("progressive", STEP, (2,)).tolist()
    skipped = int(first * MOST)
    drawn = draws.dealt([skipped, 1 + int(second * (MOST - skipped))])
    with on_cpu():
        code = taken(
            "deepthinking/utils/training.py",
            "get_output_for_prog_loss",
            "train_progressive",
            torch=torch,
            randrange=drawn,
            tqdm=lambda loader, leave: loader,
            get_predicted=lambda inputs, outputs, problem: outputs.argmax(1),
        )
        silent = SimpleNamespace(step=lambda: None, zero_grad=lambda: None, dampen=lambda: None)
        setup = SimpleNamespace(scheduler=silent, warmup=silent, clip=None)
        setup.optimizer = silent  # codespell:ignore optimizer
        setup.alpha, setup.max_iters, setup.problem = ALPHA, MOST, "prefix_sums"
        built, (x, y) = Called(), tokens()
        loss, _ = code["train_progressive"](built, {"train": [(x.mT, y)]}, setup, torch.device("cpu"))
    return {"loss": [loss, *toy.flat([parameter.grad for parameter in built.parameters()])]}


MADE = {
    "progressive": Made(
        progressive,
        "deepthinking/utils/training.py: train_progressive",
        {"alpha": ALPHA},
        "thinking",
        remark="drawn as ours",
    )
}
