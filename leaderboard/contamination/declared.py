"""Compare the training data that a model card declares with the sources of a benchmark's test rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...benchmarks.benchmark import Benchmark, load_benchmarks
from ...core.errors import Unavailable
from ...loaders.acquire.source import Source, find_source, load_sources
from ...loaders.split import open_split
from ...splits.catalogue import list_manifests
from ..validation.card import UNKNOWN, ModelCard

FIELDS = ("training_data", "pretraining")
_VIEWS = ("id", "ood")


def list_declared_overlaps(card: ModelCard, benchmark: Benchmark) -> list[dict[str, Any]]:
    """One record for each name that a card declares. `overlap` is "test" if the named data contain test rows of the
    benchmark, "source" if it names the source of the test rows, "related" if it names a source made from the same files
    or the same seed, "training" for the benchmark's own training rows, "none" for anything else, known or unknown, and
    "unknown" if the card says so. `why` explains it."""
    return [_make_record(benchmark, field, name) for field in FIELDS for name in getattr(card, field)]


def _make_record(benchmark: Benchmark, field: str, name: str) -> dict[str, Any]:
    overlap, why, rows = _find_overlap(benchmark, name)
    record = {"probe": "declared training data", "benchmark": benchmark.name, "field": field, "declared": name}
    return record | {"overlap": overlap, "rows": rows, "why": why}


def _find_overlap(benchmark: Benchmark, name: str) -> tuple[str, str, int | None]:
    if name == UNKNOWN:
        return "unknown", "the card does not say what it was", None
    own = find_source(benchmark.manifest.definition.source.name)
    plain_name = normalise_name(name)
    if plain_name in (normalise_name(own.name), normalise_name(own.definition.title)):
        return "source", f"declares training on {own.name}: the split's test rows lie there", None
    if plain_name in (
        normalise_name(benchmark.name),
        normalise_name(benchmark.manifest.name),
        normalise_name(benchmark.manifest.full_name),
    ):
        return "training", f"declares {benchmark.name} itself: its training rows are what every entry may train on", 0
    split = _find_split(plain_name)
    if split is not None:
        return _find_split_overlap(benchmark, split)
    for other in load_sources().values():
        if plain_name in (normalise_name(other.name), normalise_name(other.definition.title)) and (
            shared := describe_relation(own, other)
        ):
            return (
                "related",
                f"declares training on {other.name}, which {shared} as {own.name}, where the test lies",
                None,
            )
    return "none", f"{name} is not a source or split that the test rows of {benchmark.name} are known to lie in", 0


def normalise_name(name: str) -> str:
    """Normalise a name for comparison: lower case, letters and digits only."""
    return re.sub("[^a-z0-9]+", "", name.lower())


def _find_split(plain_name: str) -> str | None:
    """The full name of the split that a declared name refers to, as a split or a benchmark."""
    for benchmark in load_benchmarks().values():
        if normalise_name(benchmark.name) == plain_name:
            return benchmark.definition.split
    for manifest in list_manifests():
        if manifest.frozen and plain_name in (normalise_name(manifest.name), normalise_name(manifest.full_name)):
            return manifest.full_name
    return None


def _find_split_overlap(benchmark: Benchmark, name: str) -> tuple[str, str, int | None]:
    """The overlap with the training rows of another split."""
    try:
        split = open_split(name)
        own = benchmark.split.source
        if split.source.name != own.name:
            shared = describe_relation(own, split.source)
            if not shared:
                return "none", f"{name} is over {split.source.name}, and {benchmark.name} over {own.name}", 0
            return "related", f"declares {name}, over {split.source.name}, which {shared} as {own.name}", None
        train = split.part("train").row_ids
        test = np.concatenate([benchmark.view(view)[0].row_ids for view in _VIEWS])
    except Unavailable as error:
        return "none", f"the rows of {name} cannot be had here: {error}", None
    count = int(np.isin(test, train).sum())
    if not count:
        return "none", f"no test row of {benchmark.name} is among the training rows of {name}", 0
    why = f"declares {name}: {count} of {len(test)} test rows of {benchmark.name} are training rows there"
    return "test", why, count


def describe_relation(first: Source, second: Source) -> str:
    """Describe how two sources share rows: the same files, or the same generator and seed; empty if neither is
    known."""
    first_origins, second_origins = (_list_origins(source.definition.distributions) for source in (first, second))
    if first_origins[0] & second_origins[0]:
        return "is made of the same files"
    return "is drawn by the same generator and seed" if first_origins[1] & second_origins[1] else ""


def _list_origins(distributions: Sequence[Any]) -> tuple[set[str], set[tuple[str, str]]]:
    files = {pin.sha256 for distribution in distributions for pin in distribution.files}
    seeds = {
        (distribution.generator, str(distribution.options["seed"]))
        for distribution in distributions
        if distribution.options.get("seed")
    }
    return files, seeds
