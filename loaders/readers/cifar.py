"""CIFAR-10 and CIFAR-100, as arrays and as a folder of images, with human labels.

Batches of the Python version and human labels are pickles, and unpickling can run arbitrary code. Here `pickletools`
lists the instructions, and only the few that a batch needs are interpreted; any other is refused, and so is any
function or class except those of an array of bytes. No function or class is imported or called.
"""

from __future__ import annotations

import csv
import json
import pickletools
import re
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.errors import BadData, BadDefinition, get_first_line
from ..acquire.archive_files import ArchiveFiles
from ._layout import load_npy, refuse_malformed

_PIXELS = 3 * 32 * 32
NOBODY = -1
"""The human label of images that were not annotated."""


def cifar(
    files: dict[str, Path],
    *,
    archive: str,
    labels: list[str],
    train: list[str],
    test: list[str],
    true: str = "",
    human: str = "",
    given: dict[str, str] | None = None,
    workers: str = "",
    python: dict[str, str] | None = None,
) -> pa.Table:
    """CIFAR-10 and CIFAR-100 as published (binary or Python version), with the human labels of CIFAR-N next to the true
    labels.

    Fields: `image` (uint8, 3 x 32 x 32), a whole number for each of `labels` (the label bytes before each image), the
    text `published` (train or test), for each column of `given` the human label (its array in the file `human`), and,
    if the file `workers` is given, the text `worker`: who gave the label.

    `train` and `test` are members of `archive`, in the order of the human labels. The array `clean_label` must equal
    the column `true`; otherwise the labels belong to other images (`BadData`). Without `human` there are no human
    labels. `python`: the members are batches of the Python version, where each of `labels` has the name given here ({
    fine = "fine_labels" }); they are read without unpickling.
    """
    if absent := sorted({archive, human or archive, workers or archive} - files.keys()):
        raise BadDefinition(f"cifar reads {', '.join(absent)}, but the files are {', '.join(sorted(files)) or 'none'}")
    parts = [_read_records(files[archive], members, labels, python) for members in (train, test)]
    records = np.concatenate(parts)
    count, rest = len(parts[0]), len(parts[1])
    flat = pa.array(np.ascontiguousarray(records[:, len(labels) :]).ravel())
    columns: dict[str, pa.Array | NDArray[np.int64]] = {"image": pa.FixedSizeListArray.from_arrays(flat, _PIXELS)}
    for index, name in enumerate(labels):
        columns[name] = records[:, index].astype(np.int64)
    columns["published"] = pa.array(["train"] * count + ["test"] * rest)
    if not human:
        return pa.table(columns)
    given = given or {}
    arrays = read_pickled_integers(files[human], [*given.values(), "clean_label"], count)
    unequal = np.flatnonzero(arrays["clean_label"] != columns[true][:count])
    if len(unequal):
        raise BadData(f"{human} is in another order than {archive}: {len(unequal)} of {count} true labels differ")
    for name, array in given.items():
        columns[name] = np.concatenate([arrays[array], np.full(rest, NOBODY)])
    if workers:
        columns["worker"] = pa.array([*_read_workers(files[workers], count), *[""] * rest])
    return pa.table(columns)


def _read_records(
    archive: Path, members: list[str], labels: list[str], python: dict[str, str] | None
) -> NDArray[np.uint8]:
    """Read the records of the members: label bytes, then pixels; shape (rows, labels + 3072)."""
    width = len(labels) + _PIXELS
    contents = []
    try:
        with tarfile.open(archive) as tape:
            for member in members:
                file = tape.extractfile(member)
                raw = b"" if file is None else file.read()
                if python is not None:
                    raw = _convert_batch(raw, f"{archive.name}: {member}", [python[label] for label in labels])
                if not raw or len(raw) % width:
                    raise BadData(f"{archive.name}: {member} has {len(raw)} bytes, which is not a multiple of {width}")
                contents.append(np.frombuffer(raw, np.uint8))
    except (KeyError, tarfile.TarError, EOFError) as error:
        raise BadData(f"{archive.name}: {get_first_line(error)}") from error
    return np.concatenate(contents).reshape(-1, width)


def _convert_batch(content: bytes, where: str, labels: list[str]) -> bytes:
    """Convert a batch of the Python version to records of the binary version."""
    batch = read_batch(content, where)
    pixels = batch.get("data")
    if not isinstance(pixels, np.ndarray) or pixels.ndim != 2 or pixels.shape[1] != _PIXELS:
        raise BadData(f"{where}: its 'data' are not rows of {_PIXELS} bytes")
    columns = []
    for name in labels:
        column = batch.get(name)
        fits = isinstance(column, list) and len(column) == len(pixels)
        if not fits or not all(type(value) is int and 0 <= value < 256 for value in column or ()):
            raise BadData(f"{where}: its {name!r} are not {len(pixels)} whole numbers between 0 and 255")
        columns.append(np.array(column, np.uint8).reshape(-1, 1))
    return np.concatenate([*columns, pixels], axis=1).tobytes()


def _read_workers(path: Path, rows: int) -> list[str]:
    """Read who labelled each training image, from lines such as `5--9,239,41` (images 5 to 9, worker 239, 41 s)."""
    who = [""] * rows
    with path.open(newline="", encoding="utf-8") as file:
        for line in list(csv.reader(file))[1:]:
            span = re.fullmatch(r"(\d+)--(\d+)", line[0]) if line else None
            if not span or len(line) < 2 or not int(span[1]) <= int(span[2]) < rows:
                raise BadData(f"{path.name}: {','.join(line)[:40]!r} is not a line of images, worker and seconds")
            for image in range(int(span[1]), int(span[2]) + 1):
                who[image] = line[1]
    if "" in who:
        raise BadData(f"{path.name} names no worker for image {who.index('')}")
    return who


CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_PATH = re.compile(rf"(?P<part>train|test)/(?P<kind>{'|'.join(CLASSES)})/(?P<number>\d+)\.jpg")
_PIECE = 4096
"""Rows per piece."""


def cifar10_pictures(
    files: dict[str, Any], *, pictures: str, human: str, given: dict[str, str], test: str, crowd: str, errors: str
) -> Iterator[pa.Table]:
    """CIFAR-10 as a folder of images, `part/class/number.jpg`, joined with human labels.

    The published human labels follow the order of the published arrays. The k-th image of a class, by file name, is the
    k-th image of that class in the arrays, which is found by the true labels.

    Fields: `image`, `object` (0 to 9), `published` (train or test) and `number` (the index in the published arrays),
    for each image of the tree `pictures`.

    Training images have a label from the arrays of CIFAR-10N (`human`) for each field of `given`. Test images, in the
    order of the true labels `test`, have `disagreement`, the share of CIFAR-10H's annotators (`crowd`, counts of shape
    (10000, 10)) who did not choose the true label, and `disputed`, whether most of the five annotators of Northcutt et
    al. (`errors`) did not choose the given label. Elsewhere the values are -1, 0 and false.
    """
    label_arrays = read_pickled_integers(files[human], [*given.values(), "clean_label"], 50_000)
    counts, disputed = load_npy(crowd, files[crowd]), _read_disputed(errors, files[errors])
    truth = {"train": label_arrays["clean_label"], "test": load_npy(test, files[test])}
    if truth["test"].shape != (10_000,) or counts.shape != (10_000, 10):
        raise BadData(f"{test} and {crowd} have the shapes {truth['test'].shape} and {counts.shape}, not 10,000 rows")
    tree: ArchiveFiles = files[pictures]
    rows: list[tuple[bytes, int, str, int]] = []
    # For each class, the indices of its images in the published order.
    numbers = {part: [np.flatnonzero(own == kind) for kind in range(len(CLASSES))] for part, own in truth.items()}
    given_labels = {field: label_arrays[array] for field, array in given.items()}
    for name, content in tree.walk(lambda name: name.endswith(".jpg")):
        path = _PATH.fullmatch(name)
        if path is None:
            raise BadData(f"{tree.where}: {name} is not part/class/number.jpg")
        kind = CLASSES.index(path["kind"])
        own = numbers[path["part"]][kind]
        if int(path["number"]) >= len(own):
            raise BadData(f"{tree.where}: {name}: more images of {path['kind']} than the {len(own)} published")
        if not content.startswith(b"\xff\xd8") or not content.endswith(b"\xff\xd9"):
            raise BadData(f"{tree.where}: {name} is not a complete JPEG")
        rows.append((content, kind, path["part"], int(own[int(path["number"])])))
        if len(rows) == _PIECE:
            yield _make_table(rows, given_labels, counts, disputed)
            rows = []
    yield _make_table(rows, given_labels, counts, disputed)


def _make_table(
    rows: list[tuple[bytes, int, str, int]],
    given_labels: dict[str, NDArray[np.int64]],
    counts: NDArray[Any],
    disputed: NDArray[np.int64],
) -> pa.Table:
    """Add the human labels to rows (image, object, part, number)."""
    pictures, objects, parts, places = zip(*rows, strict=True) if rows else ((), (), (), ())
    kinds, number = np.array(objects, np.int64), np.array(places, np.int64)
    in_training = np.array(parts, np.str_) == "train"
    columns: dict[str, Any] = {"image": pa.array(pictures, pa.binary()), "object": kinds}
    columns |= {"published": pa.array(parts, pa.string()), "number": number}
    for field, labels in given_labels.items():
        columns[field] = np.where(in_training, labels[number], NOBODY)
    test_numbers = np.where(in_training, 0, number)
    chosen = counts[test_numbers, kinds] / counts[test_numbers].sum(axis=1)
    columns["disagreement"] = np.where(in_training, 0.0, 1.0 - chosen)
    columns["disputed"] = ~in_training & np.isin(number, disputed)
    return pa.table(columns)


def _read_disputed(name: str, path: Path) -> NDArray[np.int64]:
    """Return the test images whose given label fewer than three of five annotators chose."""
    with refuse_malformed(f"{name} is not a list of answers"):
        answers = json.loads(path.read_bytes())
        return np.array([answer["id"] for answer in answers if answer["mturk"]["given"] < 3], np.int64)


_MAKERS = ("numpy.core.multiarray _reconstruct", "numpy._core.multiarray _reconstruct")
_ARRAY, _TYPE, _BYTES = "numpy ndarray", "numpy dtype", "_codecs encode"
_VALUES = ("BININT", "BININT1", "BININT2", "SHORT_BINSTRING", "BINSTRING", "BINUNICODE")
_NEW = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple, "NONE": type(None), "NEWFALSE": bool}
_FIXED = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3, "APPEND": 1, "SETITEM": 2, "REDUCE": 2, "BUILD": 1}
"""How many values these instructions take from the stack; `TUPLE`, `APPENDS` and `SETITEMS` take those above a mark."""


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
        elif name in _NEW:
            stack.append(_NEW[name]())
        elif name == "NEWTRUE":
            stack.append(True)
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name == "MARK":
            marks.append(len(stack))
        elif name == "GLOBAL":
            if argument not in (*_MAKERS, _ARRAY, _TYPE, _BYTES):
                raise BadData(
                    f"its pickle names {argument.replace(' ', '.')[:80]!r}, which a batch does not need: refused"
                )
            stack.append(_Name(argument))
        elif name in _FIXED or name in ("TUPLE", "APPENDS", "SETITEMS"):
            start = len(stack) - _FIXED[name] if name in _FIXED else marks.pop()
            if not 0 <= start <= len(stack):
                raise ValueError("the pickle takes more values than its stack has")
            items, stack[start:] = stack[start:], []
            _combine_items(name, stack, items)
        elif name == "STOP":
            (result,) = stack
            return result
        elif name != "PROTO" or argument != 2:
            reason = f"has protocol {argument}" if name == "PROTO" else f"has the instruction {name}"
            raise BadData(f"its pickle {reason}, which a batch does not have: refused")
    raise ValueError("the pickle has no end")


def _combine_items(name: str, stack: list[Any], items: list[Any]) -> None:
    """Make items from the stack a tuple, the result of a call, or a part of the value that is now on top of it."""
    if name.startswith("TUPLE"):
        stack.append(tuple(items))
    elif name == "REDUCE":
        stack.append(_call_function(*items))
    elif name == "BUILD":
        _set_state(stack[-1], *items)
    elif name in ("APPEND", "APPENDS") and type(stack[-1]) is list:
        stack[-1].extend(items)
    elif name in ("SETITEM", "SETITEMS") and type(stack[-1]) is dict and len(items) % 2 == 0:
        stack[-1].update(zip(items[::2], items[1::2], strict=True))
    else:
        raise ValueError(f"{name} on a value that is not a list or dictionary")


def _call_function(function: Any, given: Any) -> Any:
    """Return a placeholder for the result of a call in an array's pickle."""
    name = function.name if isinstance(function, _Name) else ""
    if name in _MAKERS and given[0] == _Name(_ARRAY):
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
