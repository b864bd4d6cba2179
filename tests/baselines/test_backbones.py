"""The architectures of pretrained networks compute what the released code does: `backbone_outputs.json`."""

import json

import numpy as np
import pytest
from farshift.core.errors import Unavailable
from published_files import PUBLIC
from torch import nn

from .backbone_outputs import FILE, NETWORKS, build, find, outputs, read_released, seeded

RECORD = json.loads(FILE.read_text())


def measure_difference(module: nn.Module, name: str, which: str) -> float:
    """The largest difference from the recorded logits, as a share of the largest of them."""
    expected = np.array(RECORD[name][which])
    return float(np.abs(np.array(outputs(module, name)) - expected).max() / np.abs(expected).max())


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_computes_what_released_code_does(name: str) -> None:
    module = build(name)
    module.load_state_dict(seeded({key: tuple(value.shape) for key, value in module.state_dict().items()}))
    assert measure_difference(module, name, "seeded") < 1e-5


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.usefixtures("cache")
def test_released_weights_fit_and_give_the_released_outputs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARSHIFT_OFFLINE", "1")
    try:
        (path,) = find(name).fetch((PUBLIC,) if PUBLIC.is_dir() else ()).values()
    except Unavailable:
        pytest.skip(f"{find(name).files[0].name} is not in {PUBLIC}: FARSHIFT_PUBLIC_DATA may name its folder")
    module = build(name)
    module.load_state_dict({module.rename(key): value for key, value in read_released(name, path).items()})
    assert measure_difference(module, name, "released") < 1e-5
