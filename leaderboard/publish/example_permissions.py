"""Which benchmarks' rows a page may show: generated data always; published data if the licence permits redistribution
and the data are on the disk of the machine that makes the pages."""

from __future__ import annotations

import re

from ...benchmarks.benchmark import Benchmark
from ...core.errors import FarshiftError
from ...loaders.acquire.source import Source, find_source

MOST_GENERATED, MOST_READ = 50_000, 500_000
"""Maximum number of rows of sources that are generated, and that are read from the disk, for a page."""

_FREE = re.compile(
    r"(CC0|CC BY(-SA)? \d|MIT\b|Apache-2\.0|BSD|PDDL|CDLA-Permissive|AFL-3|Public domain|Free for any purpose)"
)
_NOT = re.compile(
    r"-N[CD]\b|non-commercial|research|restricted|permission|owners|annotations|labels|stimuli|no stated licence|"
    r"(pictures|images|corpus|texts|data) (state|has|have|as|of)\b|states? none\b|none stated|test set only",
    re.IGNORECASE,
)


def is_redistributable(licence: str) -> bool:
    """Return whether a licence, as stated in a definition, lets a page show rows: it names a known free licence and no
    exception for a part of the data. False if in doubt."""
    return bool(_FREE.match(licence)) and not _NOT.search(licence)


def find_benchmark_source(benchmark: Benchmark) -> Source | None:
    """Return the source of a benchmark's rows; None if this version does not know it."""
    try:
        return find_source(benchmark.manifest.definition.source.name)
    except FarshiftError:
        return None


def format_credit(benchmark: Benchmark) -> str:
    """Return the attribution of published rows on a page; empty for generated rows."""
    source = find_benchmark_source(benchmark)
    definition = None if source is None or not source.needs_network else source.definition
    return "" if definition is None else f"Rows of {definition.title}; {definition.licence}. {definition.citation}"


def explain_refusal(benchmark: Benchmark, source: Source) -> str:
    """Return why pages never show rows of a benchmark; empty if they may."""
    definition, split = source.definition, benchmark.manifest.definition
    if not source.needs_network:
        if source.extra:
            return f"No example rows: generating them needs an optional package (farshift[{source.extra}])."
        if definition.rows > MOST_GENERATED:
            return f"No example rows: they are shown only for generated sources of at most {MOST_GENERATED:,} rows."
        return ""
    licences = [licence for licence in (definition.licence, split.licence) if licence]
    if definition.accept or not licences or not all(map(is_redistributable, licences)):
        return f"No example rows: the licence of the data does not permit redistribution ({licences[0]})."
    if definition.rows > MOST_READ or not benchmark.manifest.frozen:
        return f"No example rows: they are shown only for pinned published data of at most {MOST_READ:,} rows."
    return ""


def is_on_disk(source: Source) -> bool:
    """Return whether a source's rows are on this disk; making a page downloads nothing."""
    return bool(source.definition.digest) and source.cached_at.is_file()
