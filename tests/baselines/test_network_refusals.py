"""What a network cannot read, or be, it refuses in words that say what to change, before anything is trained."""

from typing import Any

import pytest
from farshift.baselines.encoding.encoding import Sizes
from farshift.core.errors import ModelError
from farshift.core.plugins import load_module

TEXTS, IMAGES = Sizes(8, source=9, aligned=True), Sizes(4, numbers=64, shape=(8, 8))
PROMPT = Sizes(1, numbers=25, shape=(5, 5))
PAIRS, POINTS = Sizes(7, (7, 6)), Sizes(3, numbers=8, shape=(4, 2))

REFUSED: list[tuple[str, Sizes, dict[str, Any], str]] = [
    *(("quadratic_mlp", sizes, {}, "categories only") for sizes in (Sizes(2, numbers=4), Sizes(2, (3, 3), 1))),
    *(("deep_sets", sizes, {}, "categories alone or numbers alone") for sizes in (Sizes(2, (3, 3), 2), Sizes(2))),
    ("deep_sets", POINTS, {"depth": 0}, "depth = 0"),
    ("message_passing", TEXTS, {"graph": "ring"}, "use chain or full"),
    *(
        (name, sizes, {}, "reads prompts, one numeric input of two axes")
        for name in ("prompt_bayes", "prompt_ridge", "prompt_transformer")
        for sizes in (Sizes(1, numbers=9), Sizes(1, (3, 3)), Sizes(1, numbers=48, shape=(3, 4, 4)))
    ),
    ("prompt_ridge", PROMPT, {"penalty": 0.0}, r"penalty = 0\.0: give a number above 0"),
    ("prompt_bayes", PROMPT, {"least": 0.0}, "use 0 < least <= most"),
    *((name, Sizes(2, numbers=4), {}, "inputs = 'graphs'") for name in ("gin", "gcn")),
    *(
        (name, sizes, {}, "reads images")
        for name in ("cnn", "resnet", "grey_mlp")
        for sizes in (Sizes(2, categories=(3, 4)), Sizes(2, numbers=9), Sizes(2, (3,), 64, shape=()))
    ),
    ("resnet", IMAGES, {"activation": "tanh"}, "use gelu or relu"),
    ("resnet", IMAGES, {"widths": []}, "one convolution or more"),
    ("resnet", IMAGES, {"ghost": 1}, "ghost = 1: use 2 rows or more"),
    ("patch_network", Sizes(2, numbers=10, shape=(10,)), {}, "patch_network"),
    *(
        ("reward", sizes, {}, "a prompt and two replies")
        for sizes in (Sizes(2, numbers=8), Sizes(3, numbers=9), Sizes(2, (4,), 9), Sizes(2))
    ),
    ("lstm", TEXTS, {"width": 7}, "setting width = 7: use an even number"),
    ("syntactic_attention", TEXTS, {"syntax": 7}, "setting syntax = 7: use an even number"),
    ("rnn", TEXTS, {"cell": "qrnn"}, "use elman, gru, lstm"),
    ("transformer", TEXTS, {"width": 15, "heads": 2}, "width = 15, heads = 2: width must be a multiple of heads"),
    ("transformer", TEXTS, {"width": 6, "heads": 2, "position": "rope"}, "rope turns pairs of features"),
]


@pytest.mark.parametrize(("name", "sizes", "settings", "words"), REFUSED)
def test_what_makes_no_network_is_refused(name: str, sizes: Sizes, settings: dict[str, Any], words: str) -> None:
    file = load_module("baselines/networks", name, "network")
    with pytest.raises(ModelError, match=words):
        file.Network(sizes, file.SETTINGS | settings)
