"""The settings of a replica stack: floats may differ between replicas, everything else is the same in all."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import ModelError, UnknownName


class Hyperparameters(nn.Module):
    """Settings by name: a float setting is a tensor (K,) in the network's dtype, any other the plain value.

    Floats are saved buffers with the replica axis, so that selecting replicas of a stack selects their settings too."""

    def __init__(self, each: Sequence[Mapping[str, Any]], dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.dtype = dtype
        self.common: dict[str, Any] = {}
        self.names: list[str] = []
        for name, first in each[0].items():
            values = [settings[name] for settings in each]
            if isinstance(first, float):
                self.names.append(name)
                self.register_buffer(f"of_{name}", torch.tensor(values, dtype=torch.float64))
            elif any(value != first for value in values):
                raise ModelError(
                    f"setting {name}: replicas trained together must share it, and these differ: {first!r} and others"
                )
            else:
                self.common[name] = first

    def __getitem__(self, name: str) -> Any:
        if name in self.common:
            return self.common[name]
        return self._read(name).to(self.dtype)

    def exact(self, name: str) -> list[float]:
        """The K values of a float setting as they were given."""
        return [float(item) for item in self._read(name).tolist()]

    def _read(self, name: str) -> Tensor:
        if name not in self.names:
            raise UnknownName("setting", name, self)
        value: Tensor = getattr(self, f"of_{name}")
        return value

    def on(self, name: str, like: Tensor) -> Tensor:
        """A float setting (K,) with as many axes as `like`, so that it broadcasts."""
        value: Tensor = self[name]
        return value.view(-1, *[1] * (like.ndim - 1))

    def __iter__(self) -> Iterator[str]:
        return iter((*self.common, *self.names))


def make_stack_key(settings: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """What replicas must have in common to be trained together: all settings that are not floats, and whether steps are
    sharpness-aware, since those draw noise twice."""
    common = {name: repr(value) for name, value in settings.items() if not isinstance(value, float)}
    return tuple(sorted((common | {"sharp": repr(bool(settings.get("sharpness")))}).items()))
