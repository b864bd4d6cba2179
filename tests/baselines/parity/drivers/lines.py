"""Layer-increasing scaling (Wang et al., ICLR 2025): `LiNeS_scaling`."""

import copy
from types import SimpleNamespace

from .. import toy
from ..make import Made
from ..plain import taken
from ..reference import Numbers
from ..weights import along

REPOSITORY = "wang-kee/LiNeS"
COMMIT = "43a7bdd564a16195b164abc2c64ec1856c59c211"


def scaled() -> Numbers:
    """Its blocks are told by the numbers in their names."""
    early, *_, last = along()
    layers = {name: f"layer.{int(name[0]) // 2}.{name[2:]}" for name in early}
    change = SimpleNamespace(vector={layers[name]: last[name] - early[name] for name in early})
    scaling = taken("src/eval/eval.py", "LiNeS_scaling", copy=copy, print=lambda *_: None)["LiNeS_scaling"]
    result = scaling(change, 0.2, 0.7, 2).vector
    return {"parameters": toy.flat(early[name] + result[layers[name]] for name in early)}


MADE = {
    "lines": Made(
        scaled, "src/eval/eval.py: LiNeS_scaling", {"alpha": 0.2, "beta": 0.7, "early_percent": 33}, "finished"
    )
}
