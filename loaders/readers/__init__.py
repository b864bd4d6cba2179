"""Readers: each converts a distribution's files to tables of the source's fields.

A module `<name>.py` is the reader `<name>`. Its function `read(files, **options)` returns a table, or yields tables
(for data that are larger than memory). `files` are paths (or `ArchiveFiles`, for folders) by name; a parameter `schema`
gets the source's schema. In a module of several readers of similar data (`FAMILIES`) the function is called as the
reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any

from ...core.errors import BadDefinition, UnknownName, get_first_line
from ...core.plugins import PACKAGE, find_files_by_name, load_module
from ...splits.schema import Schema
from ..files.reader_errors import convert_reader_errors

if TYPE_CHECKING:
    import pyarrow as pa

FAMILIES = {
    "cifar": ("cifar", "cifar10_pictures"),
    "digits": ("idx", "qmnist", "coloured_digits", "rotated_digits", "dominoes", "digit_domains"),
    "image_folder": ("image_folder", "text_folder", "wav"),
    "image_sets": (*("camera_traps", "clothing1m", "cue_conflict", "food101n", "objectnet", "webvision"),),
    "lines": ("conll", "inflections", "parallel_lines", "svmlight"),
    "mathematics": (
        *("asdiv", "boxed_answers", "gsm8k", "gsm_plus", "gsm_symbolic", "math_problems", "word_problems"),
    ),
    "networks": ("attributed_networks", "edge_lists", "labelled_graphs", "musae"),
    "parses": ("cfq", "geoquery", "gscan", "semantic_parses", "text_to_sql"),
    "questions": (
        "arc_annotated",
        "arc_tasks",
        "rush_hour",
        "two_hop_questions",
        "winogrande_hardness",
    ),
    "science": ("flip", "ogb_molecules", "survival"),
    "texts": ("boolq", "instructions", "mail_archive", "perspectives", "preferences"),
    "wilds": (*("wilds_civilcomments", "wilds_fmow", "wilds_globalwheat", "wilds_poverty", "wilds_py150"),),
}
"""The readers of each module that has several."""

PUBLISHED = {name for module, names in FAMILIES.items() if module != "image_folder" for name in names}
"""The readers of one published form of data."""

_MODULE_OF = {name: module for module, names in FAMILIES.items() for name in names}


def load_reader(name: str) -> Callable[..., Any]:
    """Load a reader, of the package or a user's folder, as a function that returns a table or yields tables.
    Raises `UnknownName` if there is none, and `BadDefinition` if its module has none."""
    files = find_files_by_name("loaders/readers", ".py")
    call: Callable[..., Any] | None
    if module := _MODULE_OF.get(name):
        if name in files and not files[name].is_relative_to(PACKAGE):
            raise BadDefinition(f"{files[name]}: the package has a reader of this name: rename yours")
        call = getattr(import_module(f".{module}", __name__), name)
    elif name in FAMILIES or name not in files:
        raise UnknownName("reader", name, {*files, *_MODULE_OF} - (FAMILIES.keys() - _MODULE_OF.keys()))
    else:
        call = getattr(load_module("loaders/readers", name, "reader"), "read", None)
    if call is None:
        raise BadDefinition(f"{name}: a reader has read(files, ..)")
    return call


def read_tables(reader: str, arguments: Mapping[str, Any], schema: Schema, where: str) -> Iterator[pa.Table]:
    """Yield the tables that a reader makes of `arguments`: its `files` and options. `where` names the source in
    messages. Raises `BadDefinition` for options that it does not have."""
    import pyarrow as pa

    call = load_reader(reader)
    own = {"schema": schema} if "schema" in signature(call).parameters else {}
    try:
        signature(call).bind(**own, **arguments)
    except TypeError as error:
        raise BadDefinition(f"{where}: {get_first_line(error)}") from error
    # A reader of one published data set relies on its form, which the digests of its files or of its rows prove.
    with convert_reader_errors(where, reader) if reader in PUBLISHED else nullcontext():
        tables = call(**own, **arguments)
        yield from [tables] if isinstance(tables, pa.Table) else tables
