"""Batches of CIFAR in their Python form, without unpickling them.

A batch is a dictionary of texts to texts, lists and one array of bytes, pickled with protocol 2. Unpickling runs
whatever a file says. Here its instructions are listed (`pickletools`), and the few that such a dictionary needs are
followed; any other is refused by its name, and so is any name of a function or class but those that stand for an array
of bytes. None of these is looked up or called.
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
    """What stands for a function or class: its name, and nothing else."""

    name: str


class _Byte:
    """The type of the array's elements."""


class _Pixels:
    """The array, empty until its state is read."""

    values: NDArray[np.uint8] | None = None


def read_batch(content: bytes, where: str) -> dict[str, Any]:
    """A batch's entries: texts, lists of texts or of whole numbers, whole numbers, and arrays of bytes (uint8).

    `BadData` where the bytes are anything else; `where` names them in messages.
    """
    try:
        entries = _interpret_pickle(content)
    except BadData as error:
        raise BadData(f"{where}: {error}") from error
    except (ValueError, IndexError, KeyError, TypeError, UnicodeError) as error:
        raise BadData(f"{where} is no batch of CIFAR's Python form, or is cut off: {get_first_line(error)}") from error
    if not isinstance(entries, dict):
        raise BadData(f"{where} holds no dictionary")
    batch: dict[str, Any] = {}
    for name, value in entries.items():
        flat = value.values if isinstance(value, _Pixels) else value
        is_list = isinstance(flat, list) and all(isinstance(item, (int, str)) for item in flat)
        if not isinstance(name, str) or not (is_list or isinstance(flat, (int, str, np.ndarray))):
            raise BadData(f"{where}: its entry {str(name)[:40]!r} is no text, number, list of them or array of bytes")
        batch[name] = flat
    return batch


def _interpret_pickle(content: bytes) -> Any:
    """What the instructions build, from the few kinds of values that there are."""
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
                raise BadData(f"its pickle names {argument.replace(' ', '.')[:80]!r}, which no batch needs: refused")
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
            reason = f"is of protocol {argument}" if name == "PROTO" else f"has the instruction {name}"
            raise BadData(f"its pickle {reason}, which no batch has: refused")
    raise ValueError("the pickle has no end")


def _pop_items(stack: list[Any], count: int) -> list[Any]:
    if not 0 <= count <= len(stack):
        raise ValueError("the pickle takes more than there is")
    items = stack[len(stack) - count :]
    del stack[len(stack) - count :]
    return items


def _add_items(name: str, stack: list[Any], items: list[Any]) -> None:
    """Put items into the list or dictionary below them, or make them a tuple."""
    if name == "TUPLE":
        stack.append(tuple(items))
    elif name == "APPENDS" and type(stack[-1]) is list:
        stack[-1].extend(items)
    elif name == "SETITEMS" and type(stack[-1]) is dict and len(items) % 2 == 0:
        stack[-1].update(zip(items[::2], items[1::2], strict=True))
    else:
        raise ValueError(f"{name} of what is no list or dictionary")


def _call_function(function: Any, given: Any) -> Any:
    """What stands for the result of a call that an array's pickle has."""
    name = function.name if isinstance(function, _Name) else ""
    if name in _MAKER and given[0] == _Name(_ARRAY):
        return _Pixels()
    if name == _TYPE and given[0] in ("u1", "uint8"):
        return _Byte()
    if name == _BYTES and len(given) == 2 and isinstance(given[0], str) and given[1] in ("latin1", "latin-1"):
        return given[0]  # how Python 3 writes bytes in protocol 2
    raise BadData(f"its pickle calls {name.replace(' ', '.') or 'no function'} as no array of bytes does: refused")


def _set_state(target: Any, state: Any) -> None:
    if isinstance(target, _Byte):
        return  # the order of the bytes of one byte
    if not isinstance(target, _Pixels):
        raise BadData("its pickle gives a state to what is no array: refused")
    _, shape, kind, columns_first, text = state
    if not isinstance(kind, _Byte) or columns_first or not isinstance(text, str):
        raise BadData("its array is not of bytes, rows first: refused")
    target.values = np.frombuffer(text.encode("latin-1"), np.uint8).reshape(shape)
