"""Entity debiasing (Zhu et al., SIGIR 2022): the training of its recurrent model, whose parts are replaced by the toy's."""

from contextlib import suppress
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock, patch

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import toy
from ..make import Made
from ..plain import descent, on_cpu, taken
from ..problems.steps import CLASSES, VALUES, WIDTH
from ..problems.steps import list_entities as entities
from ..reference import Numbers

REPOSITORY = "ICTMCG/ENDEF-SIGIR2022"
COMMIT = "4bea78095e379a5083929c30c334975c1713b555"
FOLDER = "ENDEF_en"


class Score(nn.Sequential):
    """What speaks for class 1 against class 0: the released code has one score of two classes."""

    def forward(self, x: Tensor) -> Tensor:
        classes = super().forward(x)
        return classes[:, 1:] - classes[:, :1]


class Entities(nn.Embedding):
    """The sum of a row's vectors; each field has one more, of an entity that is masked."""

    def forward(self, ids: Tensor) -> Tensor:
        return super().forward(ids + torch.tensor([0, VALUES[0] + 1])).sum(1)


def trained() -> Numbers:
    losses: list[float] = []
    parameters: list[list[float]] = []
    average = SimpleNamespace(add=losses.append, item=lambda: losses[-1])
    content = torch.cat([F.one_hot(ids) for ids in entities().unbind(1)] + [toy.inputs()], dim=1)
    batch = {"content": content, "content_masks": None, "entity": entities(), "label": toy.labels(CLASSES)}
    given: dict[str, Any] = {
        "torch": torch, "tqdm": MagicMock(tqdm=lambda items: items), "os": MagicMock(), "Averager": lambda: average,
        "Recorder": MagicMock(), "get_dataloader": lambda *_, **__: [batch], "data2gpu": lambda item, _: item,
    }  # fmt: skip

    class Finished(Exception):
        pass

    def stop(*_: Any) -> None:
        parameters.append(toy.flat(model.parameters()))
        if len(parameters) == toy.STEPS:
            raise Finished

    with on_cpu():
        code = taken("models/bigruendef.py", "BiGRU_ENDEFModel", "Trainer", **given)
        model = code["BiGRU_ENDEFModel"].__new__(code["BiGRU_ENDEFModel"])
        nn.Module.__init__(model)
        model.mlp = Score(nn.Linear(content.shape[1], toy.WIDTH), nn.ReLU(), nn.Linear(toy.WIDTH, CLASSES))
        model.entity_net = Score(
            Entities(sum(VALUES) + 2, WIDTH), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, CLASSES)
        )
        toy.fill(model.parameters())
        model.embedding = lambda item: item
        model.rnn = model.attention = lambda item, *_: (item, None)
        code["BiGRU_ENDEFModel"] = lambda *_, **__: model
        trainer = code["Trainer"](MagicMock())
        trainer.config = config()
        trainer.test = stop
        descending = patch.object(torch.optim, "Adam", lambda params, **_: descent(params))
        with descending, suppress(Finished):
            trainer.train()
    return {"losses": losses, "parameters": parameters}


def config() -> dict[str, Any]:
    """The options that its training reads."""
    shown = dict.fromkeys(("lr", "weight_decay", "early_stop", "max_len", "batchsize", "aug_prob", "emb_dim"))
    mlp = {"dims": None, "dropout": None}
    return shown | {"model": {"mlp": mlp}, "use_cuda": False, "root_path": "", "epoch": toy.STEPS}


MADE = {
    "endef": Made(
        trained,
        "ENDEF_en/models/bigruendef.py: BiGRU_ENDEFModel, Trainer.train",
        {"entity_share": 0.1, "entity_weight": 0.2, "masked": 0.0, "dropped": 0.0},
        "entities",
        remark="the recurrent network and the entities' convolutions are replaced by the toy's, and none is masked",
    )
}
