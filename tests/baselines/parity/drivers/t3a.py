"""T3A (Iwasawa and Matsuo, NeurIPS 2021), in a fork of DomainBed: what it answers with."""

from types import SimpleNamespace

import torch
from torch import nn

from .. import toy
from ..make import Made
from ..problems.predictions import asked, shares
from ..reference import Numbers
from .domainbed import Hidden, library

REPOSITORY = "matsuolab/T3A"
COMMIT = "ff8cde5f06f61035c957720c6275c33893e0f564"


def adapted() -> Numbers:
    with library():
        from domainbed.adapt_algorithms import T3A

        given = SimpleNamespace(featurizer=Hidden(), classifier=nn.Linear(toy.WIDTH, toy.CLASSES))
        toy.fill([*given.featurizer.parameters(), *given.classifier.parameters()])
        hparams = {"filter_K": 3, "cached_loader": False}
        built = T3A((toy.INPUTS,), toy.CLASSES, toy.ENVIRONMENTS, hparams, given)
        assert built.warmup_labels.argmax(1).tolist() == [0, 1, 2], "its first supports are of other classes"
        with torch.no_grad():
            answers = [shares(built.predict(x, adapt=True).softmax(-1)) for x in asked()]
    return dict(zip(("first", "second", "third"), answers, strict=True))


MADE = {"t3a": Made(adapted, "domainbed/adapt_algorithms.py: T3A", {"supports": 3}, "answers")}
