"""What a model card declares to have been trained on, compared with where a benchmark's test rows lie."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...benchmarks.benchmark import Benchmark, benchmarks
from ...core.errors import Unavailable
from ...loaders.acquire.source import Source, find_source, sources
from ...loaders.split import open_split
from ...splits.catalogue import manifests
from ..validation.card import UNKNOWN, ModelCard

FIELDS = ("training_data", "pretraining")
_VIEWS = ("id", "ood")


def declared(card: ModelCard, benchmark: Benchmark) -> list[dict[str, Any]]:
    """One record for each name that a card declares: `overlap` is "test" where test rows of the benchmark are among
    what it names, "source" where it names the source that they lie in, "related" where it names a source made from the
    same files or the same seed, "training" for the benchmark's own training rows, "none" for anything else that is
    known or not known here, and "unknown" where the card says so. `why` says it in words."""
    return [_record(benchmark, field, name) for field in FIELDS for name in getattr(card, field)]


def _record(benchmark: Benchmark, field: str, name: str) -> dict[str, Any]:
    overlap, why, rows = _overlap(benchmark, name)
    said = {"probe": "declared training data", "benchmark": benchmark.name, "field": field, "declared": name}
    return said | {"overlap": overlap, "rows": rows, "why": why}


def _overlap(benchmark: Benchmark, name: str) -> tuple[str, str, int | None]:
    if name == UNKNOWN:
        return "unknown", "the card does not say what it was", None
    own = find_source(benchmark.manifest.definition.source.name)
    wanted = plain(name)
    if wanted in (plain(own.name), plain(own.definition.title)):
        return "source", f"declares training on {own.name}: the split's test rows lie there", None
    if wanted in (plain(benchmark.name), plain(benchmark.manifest.name), plain(benchmark.manifest.full_name)):
        return "training", f"declares {benchmark.name} itself: its training rows are what every entry may train on", 0
    split = _split(wanted)
    if split is not None:
        return _of_split(benchmark, split)
    for other in sources().values():
        if wanted in (plain(other.name), plain(other.definition.title)) and (shared := related(own, other)):
            return (
                "related",
                f"declares training on {other.name}, which {shared} as {own.name}, where the test lies",
                None,
            )
    return "none", f"{name} is not a source or split that the test rows of {benchmark.name} are known to lie in", 0


def plain(name: str) -> str:
    """A name as it is compared: lower case, letters and digits alone."""
    return re.sub("[^a-z0-9]+", "", name.lower())


def _split(wanted: str) -> str | None:
    """The full name of the split that a declared name stands for: its own, or a benchmark's."""
    for one in benchmarks().values():
        if plain(one.name) == wanted:
            return one.definition.split
    for manifest in manifests():
        if manifest.frozen and wanted in (plain(manifest.name), plain(manifest.full_name)):
            return manifest.full_name
    return None


def _of_split(benchmark: Benchmark, name: str) -> tuple[str, str, int | None]:
    """The overlap with the training rows of another split."""
    try:
        split = open_split(name)
        own = benchmark.split.source
        if split.source.name != own.name:
            shared = related(own, split.source)
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


def related(one: Source, other: Source) -> str:
    """How two sources have rows of one origin, in words: the same files, or one generator and seed; empty where
    nothing says so."""
    mine, theirs = (_origins(source.definition.distributions) for source in (one, other))
    if mine[0] & theirs[0]:
        return "is made of the same files"
    return "is drawn by the same generator and seed" if mine[1] & theirs[1] else ""


def _origins(distributions: Sequence[Any]) -> tuple[set[str], set[tuple[str, str]]]:
    files = {pin.sha256 for one in distributions for pin in one.files}
    seeds = {(one.generator, str(one.options["seed"])) for one in distributions if one.options.get("seed")}
    return files, seeds
