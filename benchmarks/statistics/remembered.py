"""What was worked out before, kept by name together with what it was worked out from.

A value is taken again only where it is asked for with equal inputs; so whoever asks gets what working it out anew would
give, as long as it is a function of its inputs alone. What nobody asked for during a whole turn is forgotten, so that
memory is that of one turn's values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Value = TypeVar("Value")


class Remembered:
    """Values by name. Not for several threads at once."""

    def __init__(self) -> None:
        self._before: dict[Hashable, tuple[Any, Any]] = {}
        self._now: dict[Hashable, tuple[Any, Any]] = {}
        self._within: dict[Hashable, Remembered] = {}

    def has(self, name: Hashable, inputs: Any) -> bool:
        """Whether the value is there, so that `of` would not make it."""
        found = self._now.get(name) or self._before.get(name)
        return found is not None and (found[0] is inputs or found[0] == inputs)

    def of(self, name: Hashable, inputs: Any, make: Callable[[], Value]) -> Value:
        """The value of this name for these inputs: the one that is there, or else what `make` gives."""
        found = self._now.get(name) or self._before.get(name)
        if found is None or not (found[0] is inputs or found[0] == inputs):
            found = (inputs, make())
        self._now[name] = found
        value: Value = found[1]
        return value

    def turn(self) -> None:
        """End a turn: forget what nobody asked for during it."""
        self._before, self._now = self._now, {}

    def within(self, name: Hashable) -> Remembered:
        """Values of their own, for what is asked for only while the value of this name is made: a turn of theirs ends
        whenever they are asked for."""
        found = self._within.setdefault(name, Remembered())
        found.turn()
        return found
