"""Batches of CIFAR's Python version, read without unpickling.

A batch is a dictionary from strings to strings, lists and one array of bytes, pickled with protocol 2. Unpickling can
run arbitrary code. Here `pickletools` lists the instructions, and only the few that a batch needs are interpreted. Any
other instruction is refused, and so is any function or class except those of an array of bytes. No function or class
is imported or called.
"""

from __future__ import annotations

import pickletools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, get_first_line

_MAKER = ("numpy.core.multiarray _reconstruct", "numpy._core.multiarray _reconstruct")
_ARRAY, _TYPE, _BYTES = "numpy ndarray", "numpy dtype", "_codecs encode"
_VALUES = frozenset(("BININT", "BININT1", "BININT2", "SHORT_BINSTRING", "BINSTRING", "BINUNICODE"))
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, type] = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


@dataclass(frozen=True)
class _Name:
    """A placeholder for a function or class: only its name."""

    name: str


class _Byte:
    """The element type of the array."""


class _Pixels:
    """The array; it is empty until its state is read."""

    values: NDArray[np.uint8] | None = None


def read_batch(content: bytes, where: str) -> dict[str, Any]:
    """Read a batch's entries: strings, whole numbers, lists of either, and arrays of bytes (uint8).

    Raises `BadData` if the content is anything else; `where` names it in messages.
    """
    try:
        entries = _interpret_pickle(content)
    except BadData as error:
        raise BadData(f"{where}: {error}") from error
    except (ValueError, IndexError, KeyError, TypeError, UnicodeError) as error:
        raise BadData(
            f"{where} is not a batch of CIFAR's Python version, or is cut off: {get_first_line(error)}"
        ) from error
    if not isinstance(entries, dict):
        raise BadData(f"{where} is not a pickled dictionary")
    batch: dict[str, Any] = {}
    for name, value in entries.items():
        flat = value.values if isinstance(value, _Pixels) else value
        is_list = isinstance(flat, list) and all(isinstance(item, (int, str)) for item in flat)
        if not isinstance(name, str) or not (is_list or isinstance(flat, (int, str, np.ndarray))):
            raise BadData(
                f"{where}: entry {str(name)[:40]!r} is not a text, a number, a list of them or an array of bytes"
            )
        batch[name] = flat
    return batch


def _interpret_pickle(content: bytes) -> Any:
    """Interpret the instructions of a pickle that has only a batch's kinds of values."""
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}
    argument: Any
    for instruction, argument, _ in pickletools.genops(content):
        name = instruction.name
        if name in _VALUES:
            stack.append(argument)
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name == "MARK":
            marks.append(len(stack))
        elif name in ("TUPLE", "APPENDS", "SETITEMS"):
            items = _pop_items(stack, len(stack) - marks.pop())
            _add_items(name, stack, items)
        elif name in ("APPEND", "SETITEM"):
            _add_items(name + "S", stack, _pop_items(stack, 1 if name == "APPEND" else 2))
        elif name in _TUPLES:
            stack.append(tuple(_pop_items(stack, _TUPLES[name])))
        elif name == "GLOBAL":
            if argument not in (*_MAKER, _ARRAY, _TYPE, _BYTES):
                raise BadData(
                    f"its pickle names {argument.replace(' ', '.')[:80]!r}, which a batch does not need: refused"
                )
            stack.append(_Name(argument))
        elif name == "REDUCE":
            function, given = _pop_items(stack, 2)
            stack.append(_call_function(function, given))
        elif name == "BUILD":
            (state,) = _pop_items(stack, 1)
            _set_state(stack[-1], state)
        elif name == "STOP":
            (result,) = stack
            return result
        elif name != "PROTO" or argument != 2:
            reason = f"has protocol {argument}" if name == "PROTO" else f"has the instruction {name}"
            raise BadData(f"its pickle {reason}, which a batch does not have: refused")
    raise ValueError("the pickle has no end")


def _pop_items(stack: list[Any], count: int) -> list[Any]:
    if not 0 <= count <= len(stack):
        raise ValueError("the pickle pops more values than its stack has")
    items = stack[len(stack) - count :]
    del stack[len(stack) - count :]
    return items


def _add_items(name: str, stack: list[Any], items: list[Any]) -> None:
    """Add items to the list or dictionary below them on the stack, or make them a tuple."""
    if name == "TUPLE":
        stack.append(tuple(items))
    elif name == "APPENDS" and type(stack[-1]) is list:
        stack[-1].extend(items)
    elif name == "SETITEMS" and type(stack[-1]) is dict and len(items) % 2 == 0:
        stack[-1].update(zip(items[::2], items[1::2], strict=True))
    else:
        raise ValueError(f"{name} on a value that is not a list or dictionary")


def _call_function(function: Any, given: Any) -> Any:
    """Return a placeholder for the result of a call in an array's pickle."""
    name = function.name if isinstance(function, _Name) else ""
    if name in _MAKER and given[0] == _Name(_ARRAY):
        return _Pixels()
    if name == _TYPE and given[0] in ("u1", "uint8"):
        return _Byte()
    if name == _BYTES and len(given) == 2 and isinstance(given[0], str) and given[1] in ("latin1", "latin-1"):
        return given[0]  # Python 3 writes bytes so in protocol 2
    raise BadData(f"its pickle calls {name.replace(' ', '.') or 'no function'}, unlike an array of bytes: refused")


def _set_state(target: Any, state: Any) -> None:
    if isinstance(target, _Byte):
        return  # the byte order, which has no effect on single bytes
    if not isinstance(target, _Pixels):
        raise BadData("its pickle sets the state of a value that is not an array: refused")
    _, shape, kind, columns_first, text = state
    if not isinstance(kind, _Byte) or columns_first or not isinstance(text, str):
        raise BadData("its array is not an array of bytes in C order: refused")
    target.values = np.frombuffer(text.encode("latin-1"), np.uint8).reshape(shape)
