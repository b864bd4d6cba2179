"""Faults that real file servers have, each planned for a number of requests that fit a pattern.

A pattern is a shell pattern of method and path, such as `GET */train.parquet`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from threading import Lock


@dataclass(frozen=True)
class Refuse:
    """An answer with this status and no content."""

    status: int
    retry_after: str | None = None


@dataclass(frozen=True)
class Cut:
    """The connection ends after so many bytes of the content; with `reset`, by a TCP reset."""

    after: int
    reset: bool = False


@dataclass(frozen=True)
class WrongLength:
    """A Content-Length that is too long, or (negative) too short by so many bytes; then the connection ends."""

    by: int


@dataclass(frozen=True)
class Flip:
    """One bit is wrong in the byte at this place of the file."""

    at: int


@dataclass(frozen=True)
class Trickle:
    """The content comes in small blocks, with a pause (seconds) before each."""

    block: int
    pause: float


@dataclass(frozen=True)
class Stall:
    """After so many bytes nothing comes any more, and the connection stays open."""

    after: int


@dataclass(frozen=True)
class IgnoreRange:
    """The whole file with status 200, whatever range was asked for."""


@dataclass(frozen=True)
class OtherRange:
    """A partial answer that begins so many bytes later than asked, and says so."""

    later: int


SHORT = 0.5
LONG = 30.0


def patience(*faults: object) -> float:
    """The seconds without a byte after which a client should give a connection up: few where one of these faults
    stalls, and else so many that a busy machine is never taken for a fault."""
    return SHORT if any(isinstance(fault, Stall) for fault in faults) else LONG


Fault = Refuse | Cut | WrongLength | Flip | Trickle | Stall | IgnoreRange | OtherRange


@dataclass(frozen=True)
class Meanwhile:
    """While the answer is sent, as it was before, something changes: a branch moves, a file is replaced."""

    change: Callable[[], object]
    fault: Fault | None = None


@dataclass
class _Planned:
    pattern: str
    fault: Fault | Meanwhile
    skip: int
    left: int


class Faults:
    """Which request has which fault. A request takes the first planned fault that fits it, and uses it."""

    def __init__(self) -> None:
        self._planned: list[_Planned] = []
        self._lock = Lock()

    def plan(self, pattern: str, fault: Fault | Meanwhile, times: int = 1, skip: int = 0) -> None:
        """The fault for the next `times` requests that fit the pattern, after `skip` good ones."""
        with self._lock:
            self._planned.append(_Planned(pattern, fault, skip, times))

    def clear(self) -> None:
        with self._lock:
            self._planned.clear()

    def take(self, request: str) -> Fault | None:
        """The fault of a request whose answer has been made up, and is about to be sent."""
        fault = self._due(request)
        if isinstance(fault, Meanwhile):
            fault.change()
            return fault.fault
        return fault

    def _due(self, request: str) -> Fault | Meanwhile | None:
        with self._lock:
            for planned in self._planned:
                if planned.left and fnmatchcase(request, planned.pattern):
                    if planned.skip:
                        planned.skip -= 1
                        return None
                    planned.left -= 1
                    return planned.fault
        return None

    @property
    def left(self) -> int:
        """How many planned faults no request has had yet."""
        with self._lock:
            return sum(planned.left for planned in self._planned)
