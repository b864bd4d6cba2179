"""AdaNPC (Zhang et al., ICML 2023), which is also where domain-specific risks (Zhang et al., KDD 2023) are: a fork of
DomainBed."""

from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from .. import toy
from ..make import Made
from ..plain import on_cpu
from ..problems.predictions import asked, shares
from ..reference import Numbers
from .domainbed import Hidden, library, made_of, trained

REPOSITORY = "yfzhang114/AdaNPC"
COMMIT = "29fe27abf4f062a0fb0d7e33acae83cb5a94f374"

K, TEMPERATURE = 5, 0.2


def neighbours() -> Numbers:
    with library(), on_cpu():
        from domainbed.adapt_algorithms import AdaNPC

        featurizer = Hidden()
        toy.fill(featurizer.parameters())
        hparams = {"beta": 0.0, "k": K, "temperature": TEMPERATURE}
        given = SimpleNamespace(featurizer=featurizer)
        built = AdaNPC((toy.INPUTS,), toy.CLASSES, toy.ENVIRONMENTS, hparams, given)
        built.classifier.memory, built.classifier.memory_label = built.classifier.memory[:0], toy.labels()[:0]
        with torch.no_grad():
            built.classifier.extend_test(featurizer(toy.inputs()), toy.labels())
            answers = [shares(built.predict(featurizer(x), adapt=True)) for x in asked()]
    return dict(zip(("first", "second", "third"), answers, strict=True))


def heads(made: Any) -> list[nn.Parameter]:
    """Of the featurizer, the pooled head, and the weights and then the biases of the environments' heads, which are one
    layer of ours."""
    *own, pooled = made.classifier_list
    first = [*made.featurizer.parameters(), *pooled.parameters()]
    return [*first, *(head.weight for head in own), *(head.bias for head in own)]


@torch.no_grad()
def fill(made: Any) -> None:
    given = heads(made)
    toy.fill(given[:4])
    for number, some in ((4, given[4:7]), (5, given[7:])):
        layer = torch.zeros(sum(item.numel() for item in some))
        toy.fill([layer], number)
        for item, part in zip(some, layer.chunk(len(some)), strict=True):
            item.copy_(part.view_as(item))


def drm(gamma: float) -> Numbers:
    """Three steps, and what it then answers: without adaptation, whose threshold nothing reaches."""
    with library() as algorithms, on_cpu():
        from domainbed.adapt_algorithms import DRMFull

        result = trained("DRM", {"lf_alg": "entropy"}, weights=heads, before=fill)()
        built = made_of(algorithms, "DRM", {"lf_alg": "entropy"})
        fill(built)
        adapting = SimpleNamespace(model=built, gamma=gamma, beta=1.1)
        with torch.no_grad():
            for name, x in zip(("first", "second", "third"), asked(), strict=True):
                output = DRMFull.entropy_predict_label_drm(adapting, built.featurizer(x), built, None)
                result[name] = shares(output)
    return result


FILE = "domainbed/adapt_algorithms.py"
ANSWERS = (
    "before training; shares of 1, since it divides weights by their sum with the pooled head, which it leaves out"
)

MADE = {
    "ada_npc": Made(
        neighbours,
        f"{FILE}: AdaNPC",
        {"k": K, "temperature": TEMPERATURE, "beta": 0.0},
        "answers",
        within=1e-4,
        remark="every row joins the memory, since it takes the softmax of p twice; it adds 1e-5 to every p",
    ),
    "drm": Made(lambda: drm(1.5), f"{FILE}: DRMFull", {"certainty": 1.5}, "drm", remark=ANSWERS),
    "drm.surest": Made(lambda: drm(-1.0), f"{FILE}: DRMFull", {"certainty": -1.0}, "drm", remark=ANSWERS),
}
