"""Readers: each converts a distribution's files to tables of the source's fields.

A module `<name>.py` is the reader `<name>`. It has `read(files, **options)`, which returns a table, or `pieces(..)`,
which yields tables. `files` are paths (or `ArchiveFiles`, for folders) by name; a parameter `schema` gets the source's
schema. In a module of several readers of similar data (`FAMILIES`) the function `<name>` is the reader: it returns a
table, or yields tables.
"""

from __future__ import annotations

from importlib import import_module
from inspect import isgeneratorfunction
from types import SimpleNamespace
from typing import Any

from ...core.errors import BadDefinition, UnknownName
from ...core.plugins import PACKAGE, find_files_by_name, load_module

FAMILIES = {
    "cifar": ("cifar", "cifar10_pictures"),
    "digits": ("idx", "qmnist", "coloured_digits", "rotated_digits", "dominoes", "digit_domains"),
    "image_sets": (
        *("camera_traps", "celeba", "clothing1m", "cue_conflict"),
        *("food101n", "objectnet", "waterbirds", "webvision"),
    ),
    "lines": ("conll", "inflections", "labelled_lines", "labelled_texts", "logic_pairs", "parallel_lines", "svmlight"),
    "mathematics": (
        *("asdiv", "boxed_answers", "gsm8k", "gsm_plus", "gsm_symbolic", "math_problems", "word_problems"),
    ),
    "networks": ("attributed_networks", "edge_lists", "musae"),
    "parses": ("cfq", "geoquery", "gscan", "semantic_parses", "text_to_sql"),
    "questions": (
        "arc_annotated",
        "arc_tasks",
        "rush_hour",
        "two_hop_questions",
        "winogrande_hardness",
    ),
    "science": ("flip", "ogb_molecules", "survival"),
    "wilds": (
        *("wilds_amazon", "wilds_camelyon17", "wilds_civilcomments", "wilds_fmow", "wilds_globalwheat"),
        *("wilds_iwildcam", "wilds_poverty", "wilds_py150", "wilds_rxrx1"),
    ),
}
"""The readers of each module that has several."""

_MODULE_OF = {name: module for module, names in FAMILIES.items() for name in names}


def load_reader(name: str) -> Any:
    """Load a reader, of the package or a user's folder, as an object with `read` or with `pieces`.
    Raises `UnknownName` if there is none, and `BadDefinition` if its module has none of these."""
    files = find_files_by_name("loaders/readers", ".py")
    if module := _MODULE_OF.get(name):
        if name in files and not files[name].is_relative_to(PACKAGE):
            raise BadDefinition(f"{files[name]}: the package has a reader of this name: rename yours")
        call = getattr(import_module(f".{module}", __name__), name)
        return SimpleNamespace(**{"pieces" if isgeneratorfunction(call) else "read": call})
    if name in FAMILIES or name not in files:
        raise UnknownName("reader", name, {*files, *_MODULE_OF} - (FAMILIES.keys() - _MODULE_OF.keys()))
    reader = load_module("loaders/readers", name, "reader")
    if not hasattr(reader, "read") and not hasattr(reader, "pieces"):
        raise BadDefinition(f"{name}: a reader has read(files, ..) or pieces(files, ..)")
    return reader
