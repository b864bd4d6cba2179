"""A clock for a step that is traced: what is read from it stays open, or becomes a condition of the trace.

A trace holds the operations of one step. Where an algorithm computes with the step's number and tensors, the number
becomes a tensor, set anew each time the trace runs. Where it compares the number with another (a penalty switched on,
say), the answer holds for the trace, which then serves the steps whose answers are the same."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from torch import Tensor

from ...replicas.rng import stream
from ..algorithm import Clock


class NotTraceable(Exception):
    """A step that cannot be one graph, and why."""


Condition = tuple[Callable[[Clock], bool], bool]
"""A question about the clock, and the answer that a trace has taken for granted."""


class SymbolicNumber:
    """A whole number read from a clock. value: by the clock. tensor: the same in the trace, () int64."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Callable[[Clock], int], tensor: Tensor, now: Clock, taken: list[Condition]) -> None:
        self.value, self.tensor, self.now, self.taken = value, tensor, now, taken

    def _compared(self, compare: Callable[[Any, Any], Any], other: Any) -> Any:
        if isinstance(other, Tensor):
            return compare(self.tensor, other)
        if not isinstance(other, int | float):
            return NotImplemented
        own = self.value

        def asked(clock: Clock) -> bool:
            return bool(compare(own(clock), other))

        answer = asked(self.now)
        self.taken.append((asked, answer))
        return answer

    def _computed(self, compute: Callable[[Any, Any], Any], other: Any) -> Any:
        if isinstance(other, Tensor):
            return compute(self.tensor, other)
        if type(other) is not int:
            return NotImplemented
        own = self.value
        return SymbolicNumber(
            lambda clock: int(compute(own(clock), other)), compute(self.tensor, other), self.now, self.taken
        )

    def __lt__(self, other: Any) -> Any:
        return self._compared(operator.lt, other)

    def __le__(self, other: Any) -> Any:
        return self._compared(operator.le, other)

    def __gt__(self, other: Any) -> Any:
        return self._compared(operator.gt, other)

    def __ge__(self, other: Any) -> Any:
        return self._compared(operator.ge, other)

    def __eq__(self, other: object) -> Any:
        return self._compared(operator.eq, other)

    def __ne__(self, other: object) -> Any:
        return self._compared(operator.ne, other)

    def __bool__(self) -> bool:
        return bool(self._compared(operator.ne, 0))

    def __add__(self, other: Any) -> Any:
        return self._computed(operator.add, other)

    def __sub__(self, other: Any) -> Any:
        return self._computed(operator.sub, other)

    def __mul__(self, other: Any) -> Any:
        return self._computed(operator.mul, other)

    def __floordiv__(self, other: Any) -> Any:
        return self._computed(operator.floordiv, other)

    def __mod__(self, other: Any) -> Any:
        return self._computed(operator.mod, other)

    def __truediv__(self, other: Any) -> Any:
        """A tensor: () float64, or as `other`, which has been read from tensors."""
        if isinstance(other, Tensor | int | float):
            return self.tensor.double() / other
        return NotImplemented


class TracedClock(Clock):
    """A clock whose step and total are readings. where: () int64 each, the step and the total in the trace."""

    def __init__(self, now: Clock, step: Tensor, total: Tensor, taken: list[Condition]) -> None:
        numbers = {
            "step": SymbolicNumber(lambda clock: clock.step, step, now, taken),
            "total": SymbolicNumber(lambda clock: clock.total, total, now, taken),
        }
        known = {"steps": now.steps, "stage": now.stage, "keys": now.keys, "count": total}
        for name, value in (numbers | known).items():
            object.__setattr__(self, name, value)

    def draw(self, name: str) -> Tensor:
        counter: Tensor = self.__dict__["count"]
        return stream(self.keys, name, counter)


def holds(taken: list[Condition], now: Clock) -> bool:
    """Whether all that a trace has taken for granted is so at this step."""
    return all(asked(now) is answer for asked, answer in taken)
