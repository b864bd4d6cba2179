"""Arrays of 64-bit integers from a torch file, read without unpickling.

Unpickling can run arbitrary code. Here the pickle's instructions are only listed, and none is executed: an array is the
long string (latin-1, as protocol 2 writes bytes) that follows its name.
"""

from __future__ import annotations

import pickletools
import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, get_first_line


def read_pickled_integers(path: Path, names: Iterable[str], length: int) -> dict[str, NDArray[np.int64]]:
    """Read the arrays `names`, each of `length` numbers, of a dictionary that torch saved in its zip format.

    Raises `BadData` if the file has another format, or a name is missing or holds something else.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            (member,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
            pickled = archive.read(member)
    except (zipfile.BadZipFile, ValueError) as error:
        raise BadData(f"{path.name}: not a file that torch saved as a zip with one pickle") from error
    expected_names, arrays, name = set(names), {}, ""
    try:
        for instruction, argument, _ in pickletools.genops(pickled):
            if instruction.name != "BINUNICODE" or not isinstance(argument, str):
                continue
            if argument in expected_names:
                name = argument
            elif name and len(argument) == 8 * length:
                arrays[name] = np.frombuffer(argument.encode("latin-1"), "<i8").astype(np.int64)
                name = ""
    except (ValueError, UnicodeEncodeError) as error:
        raise BadData(f"{path.name}: its pickle cannot be read: {get_first_line(error)}") from error
    if absent := sorted(expected_names - arrays.keys()):
        raise BadData(f"{path.name} has no array of {length} whole numbers named {', '.join(absent)}")
    return arrays
