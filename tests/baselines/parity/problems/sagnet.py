"""The two losses of a step of style-agnostic features at the toy's weights: released code steps along parts of them in
turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farshift.baselines.training.algorithm import StepState

from .. import toy
from .steps import batches, training


def ours(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """`network`: the content head's loss plus the weighted adversary's, by all weights but the style head's; `style`: the
    style head's, by its own. Each is the loss and then its gradient."""
    built = training(name, settings)
    network, algorithm, batch = built.stack.network, built.stack.algorithm, next(batches(built))
    clock = StepState(0, built.steps, 0, 0, built.stack.keys)
    features = network.encode(network.embed(*batch.inputs)).detach()
    own = [*network.style_head.parameters()]
    rest = [*network.hidden.parameters(), *network.head.parameters()]
    return {
        "network": toy.loss_and_gradient(algorithm.loss(network, batch, clock), rest),
        "style": toy.loss_and_gradient(algorithm.style_loss(network, features, batch, clock), own),
    }
