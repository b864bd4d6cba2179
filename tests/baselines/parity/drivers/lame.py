"""LAME (Boudiaf et al., CVPR 2022): its affinities and its optimisation, of the features and probabilities of the toy's
pictures."""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import torch
import torch.nn.functional as F

from .. import pictures, toy
from ..make import Made
from ..reference import Numbers

REPOSITORY = "fiveai/LAME"
COMMIT = "d2e5f63090bc1c8129bf7cbd781029a5955e1a67"


def smoothed(kind: str) -> Callable[[], Numbers]:
    def call() -> Numbers:
        # The package imports its whole framework; of it this file asks for a register and a base class alone.
        package, build, base = ModuleType("src.adaptation"), ModuleType("build"), ModuleType("non_adaptive")
        package.__path__ = [str(Path(sys.path[0]) / "src" / "adaptation")]
        build.ADAPTER_REGISTRY = type("", (), {"register": lambda self: lambda kind: kind})()  # type: ignore[attr-defined]
        base.NonAdaptiveMethod = object  # type: ignore[attr-defined]
        absent = {"src.adaptation": package, "src.adaptation.build": build, "src.adaptation.non_adaptive": base}
        with patch.dict(sys.modules, absent):
            lame = import_module("src.adaptation.lame")
        network = pictures.plain()
        affinity = getattr(lame, f"{kind}_affinity")
        affinity = affinity() if kind == "linear" else affinity(sigma=1.0, knn=3)
        answers = []
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        with torch.no_grad():
            for batch in pictures.batches():
                features = network.encode(batch)
                unary = -torch.log(network.head(features).softmax(-1) + 1e-10)
                result = lame.laplacian_optimization(unary, affinity(F.normalize(features, dim=-1)))
                answers.append(toy.flat([result.log()]))
        torch.set_default_dtype(before)
        return {"answers": answers, "parameters": [toy.flat(network.parameters())] * len(answers)}

    return call


CODE = "src/adaptation/lame.py: laplacian_optimization"
MADE = {
    "lame": Made(smoothed("rbf"), CODE, {"affinity": "rbf", "neighbours": 3}, "adapting"),
    "lame.knn": Made(smoothed("kNN"), CODE, {"affinity": "knn", "neighbours": 3}, "adapting"),
    "lame.linear": Made(smoothed("linear"), CODE, {"affinity": "linear"}, "adapting"),
}
