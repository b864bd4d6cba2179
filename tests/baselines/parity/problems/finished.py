"""The weights that an algorithm ends with after three steps from the toy's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import toy
from .steps import training


def ours(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """`parameters`, all of them."""
    built = training(name, settings)
    (stack,) = built.run().ended
    return {"parameters": toy.flat(stack.network.parameters())}
