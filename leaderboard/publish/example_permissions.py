"""Of which benchmarks a page may show rows: of generated data always; of published data where their licence lets all
pass them on, and they are on the disk of who makes the pages."""

from __future__ import annotations

import re

from ...benchmarks.benchmark import Benchmark
from ...core.errors import FarshiftError
from ...loaders.acquire.source import Source, find_source

MOST_GENERATED, MOST_READ = 50_000, 500_000
"""Rows of the largest sources that are generated, and that are read from the disk, for a page."""

_FREE = re.compile(
    r"(CC0|CC BY(-SA)? \d|MIT\b|Apache-2\.0|BSD|PDDL|CDLA-Permissive|AFL-3|Public domain|Free for any purpose)"
)
_NOT = re.compile(
    r"-N[CD]\b|non-commercial|research|restricted|permission|owners|annotations|labels|stimuli|no stated licence|"
    r"(pictures|images|corpus|texts|data) (state|has|have|as|of)\b|states? none\b|none stated|test set only",
    re.IGNORECASE,
)


def is_redistributable(licence: str) -> bool:
    """Whether a licence, as a definition states it, lets a page show rows: a known free one, and nothing beside it that
    takes a part of the data out. When in doubt, not."""
    return bool(_FREE.match(licence)) and not _NOT.search(licence)


def find_benchmark_source(benchmark: Benchmark) -> Source | None:
    """The source of a benchmark's rows; None where it is not known here."""
    try:
        return find_source(benchmark.manifest.definition.source.name)
    except FarshiftError:
        return None


def format_credit(benchmark: Benchmark) -> str:
    """Whose rows a page shows; empty where they are generated."""
    source = find_benchmark_source(benchmark)
    definition = None if source is None or not source.needs_network else source.definition
    return "" if definition is None else f"Rows of {definition.title}; {definition.licence}. {definition.citation}"


def explain_refusal(benchmark: Benchmark, source: Source) -> str:
    """Why no page shows rows of a benchmark, wherever it is made; empty where one may."""
    definition, split = source.definition, benchmark.manifest.definition
    if not source.needs_network:
        if source.extra:
            return f"No example rows: they are made by a package that not everybody has (farshift[{source.extra}])."
        if definition.rows > MOST_GENERATED:
            return f"Example rows are shown of generated sources of at most {MOST_GENERATED:,} rows."
        return ""
    licences = [licence for licence in (definition.licence, split.licence) if licence]
    if definition.accept or not licences or not all(map(is_redistributable, licences)):
        return f"No example rows: the licence of the data does not let everybody pass them on ({licences[0]})."
    if definition.rows > MOST_READ or not benchmark.manifest.frozen:
        return f"Example rows are shown of published data of at most {MOST_READ:,} rows that are pinned."
    return ""


def is_on_disk(source: Source) -> bool:
    """Whether a source's rows are on this disk: a page downloads nothing."""
    return bool(source.definition.digest) and source.cached_at.is_file()
