"""Lists of benchmarks and metrics, and the description of one benchmark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from ..core.listings import Listing, has_words
from ..core.plugins import find_files_by_name, load_module
from ..loaders.listing import (
    MODALITIES,
    MODALITY_WORDS,
    STATES,
    UNKNOWN_SOURCE,
    SourceTraits,
    check_known_name,
    has_local_rows,
    list_source_traits,
)
from ..splits.catalogue import get_family
from ..splits.catalogue import get_state as state_of
from ..splits.manifest import KIND_WORDS, check_kind
from .benchmark import Benchmark, find_benchmark, make_guid
from .benchmark import load_benchmarks as every
from .benchmark import load_suite as of_suite
from .definition import DataAccess
from .metrics import Metric
from .statistics.interval import Record


@dataclass(frozen=True)
class BenchmarkEntry(Record):
    """A benchmark in a listing. split: the manifest's full name, and family that of its split. selection: the rules
    that its protocol permits, the default first. parts: those that a run predicts. state: of its split. seeds: the
    number that the protocol requires. rows: those of training before holdouts, None if they are not counted yet.
    modality and generated: of its source, as in `SplitEntry`."""

    name: str
    kind: str
    title: str
    split: str
    family: str
    tags: tuple[str, ...]
    suites: tuple[str, ...]
    task: str
    metrics: tuple[str, ...]
    selection: tuple[str, ...]
    seeds: int
    prompt: bool
    parts: tuple[str, ...]
    rows: int | None
    source: str
    state: str
    licence: str
    modality: str
    generated: bool


def benchmarks(
    search: str = "",
    *,
    kind: str | None = None,
    suite: str | None = None,
    source: str | None = None,
    modality: str | None = None,
    generated: bool | None = None,
    state: str | None = None,
    licence: str = "",
) -> Listing[BenchmarkEntry]:
    """List the benchmarks that match all filters, sorted by name. No data are opened or downloaded.

    search: words that must all occur in a benchmark's name, kind, task, metrics, modality, tags, suites, source, state,
    title, licence or the papers that it, its split or its source cites (title, arXiv number); `llm` and `prompt` find
    those with a prompt for language models. The other filters are those of
    `farshift.splits`; suite: core, full, tabular .. Raises `UnknownName` for an unknown kind, suite, source or
    modality.

    >>> import farshift as fs
    >>> [one.name for one in fs.benchmarks("scan", suite="core", kind="length")]
    ['scan/length']
    """
    of_sources = list_source_traits()
    check_known_name("source", source, of_sources)
    check_known_name("modality", modality, MODALITIES)
    check_known_name("state", state, STATES)
    if kind is not None:
        check_kind(kind)
    entries = []
    for benchmark in every().values() if suite is None else of_suite(suite):
        if kind not in (None, benchmark.kind):
            continue
        entry = _make_entry(benchmark, of_sources)
        texts = [entry.name, entry.task, entry.title, entry.source, entry.licence]
        texts += [KIND_WORDS[entry.kind], MODALITY_WORDS.get(entry.modality, entry.modality)]
        texts += [entry.state, *entry.metrics, *entry.tags, *entry.suites, "llm prompt" if entry.prompt else ""]
        texts += [*benchmark.manifest.definition.references, of_sources.get(entry.source, UNKNOWN_SOURCE).citation]
        texts += [reference.source for reference in benchmark.definition.references]
        if (
            source in (None, entry.source)
            and modality in (None, entry.modality)
            and generated in (None, entry.generated)
            and state in (None, entry.state)
            and has_words(licence, entry.licence)
            and has_words(search, *texts)
        ):
            entries.append(entry)
    return Listing(entries, "benchmark", _format_entry)


def _make_entry(benchmark: Benchmark, of_sources: Mapping[str, SourceTraits]) -> BenchmarkEntry:
    definition, split = benchmark.definition, benchmark.manifest.definition
    traits = of_sources.get(split.source.name, UNKNOWN_SOURCE)
    return BenchmarkEntry(
        name=benchmark.name,
        kind=benchmark.kind,
        title=definition.title,
        split=definition.split,
        family=get_family(split),
        tags=tuple(definition.tags),
        suites=tuple(definition.suites),
        task=definition.task.type,
        metrics=tuple(metric.signature for metric in benchmark.metrics),
        selection=tuple(definition.protocol.selection),
        seeds=definition.protocol.seeds,
        prompt=definition.prompt is not None,
        parts=benchmark.predicted_parts,
        rows=split.parts["train"].rows if "train" in split.parts else None,
        source=split.source.name,
        state=state_of(benchmark.manifest),
        licence=split.licence or traits.licence,
        modality=traits.modality,
        generated=traits.generated,
    )


def _format_entry(entry: BenchmarkEntry) -> dict[str, str]:
    return {
        "benchmark": entry.name,
        "kind": entry.kind,
        "tags": ", ".join(entry.tags),
        "task": entry.task,
        "training rows": "" if entry.rows is None else f"{entry.rows:,}",
        "prompt": "yes" if entry.prompt else "",
        "state": entry.state,
        "title": entry.title,
    }


def count_suites() -> dict[str, int]:
    """Return how many benchmarks each suite has, by its name."""
    return dict(
        sorted(Counter(suite for benchmark in every().values() for suite in benchmark.definition.suites).items())
    )


def list_metrics() -> list[dict[str, Any]]:
    """List all metrics, the package's own and those of `FARSHIFT_PATH`, as plain JSON, sorted by name: task types,
    direction, options for benchmarks, and description."""
    records = []
    for name in sorted(find_files_by_name("benchmarks/metrics", ".py")):
        plugin = load_module("benchmarks/metrics", name, "metric")
        options = getattr(plugin, "OPTIONS", None)
        records.append(
            {
                "name": name,
                "version": plugin.VERSION,
                "tasks": list(plugin.TASKS),
                "needs": plugin.NEEDS,
                "better": plugin.BETTER,
                "bounds": [end if isfinite(end) else None for end in plugin.BOUNDS],
                "options": [] if options is None else sorted(options.model_fields),
                "title": (plugin.__doc__ or "").strip().split("\n\n")[0].replace("\n", " "),
            }
        )
    return records


def _describe_metric(metric: Metric) -> str:
    """A metric's name, version and the benchmark's options for it."""
    options = {} if metric.options is None else metric.options.model_dump(exclude_unset=True)
    shown = [f"{name} {_format_option(value)}" for name, value in options.items() if value]
    return f"{metric.name} ({'; '.join([f'version {metric.version}', *shown])})"


def _format_option(value: Any) -> str:
    if isinstance(value, dict):
        return f"of {len(value)}"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def describe_benchmark(name: str) -> dict[str, Any]:
    """Describe a benchmark: its definition, its identities by selection rule, its rows, and the same as lines of text.

    Nothing is downloaded. If its data are in the cache they are checked, and the rows of parts and views are counted as
    this benchmark uses them; otherwise `rows` are the published split's, and `views` are empty."""
    benchmark = find_benchmark(name)
    definition, protocol = benchmark.definition, benchmark.definition.protocol
    benchmark.metrics  # noqa: B018  (checks their versions)
    here = has_local_rows(benchmark.manifest)
    if here:
        benchmark.check()
        parts = sorted({"train", *benchmark.predicted_parts})
        rows = {part: len(benchmark.part(part)) for part in parts if benchmark.has_part(part)}
        views = {view: len(benchmark.view(view)[0]) for view in definition.views}
    else:
        rows, views = {part: pin.rows for part, pin in benchmark.manifest.definition.parts.items()}, {}
    counted = ", ".join(f"{part} {count:,}" for part, count in rows.items())
    if not here:
        pull = f"farshift splits pull {definition.split}"
        qualifier = " before holdouts" if definition.holdouts else ""
        counted = f"{counted}{qualifier} (not downloaded: {pull})" if counted else f"not counted yet: {pull}"
    identity, prompt = benchmark.manifest.identity, definition.prompt
    frozen = f"identity {identity[:16]}" if identity else "a definition, frozen at its first pull"
    ceiling = [(name.replace("_", " "), value) for name, value in protocol.ceiling.model_dump().items()]
    parsed = prompt and f"{prompt.k} examples, parsed by {prompt.extraction.name}@{prompt.extraction.version}"
    lines = [
        ("name", f"{benchmark.name} ({benchmark.kind})"),
        ("split", f"{definition.split}, {frozen}"),
        ("task", f"{definition.task.type}: {', '.join(definition.task.inputs)} -> {definition.task.label}"),
        ("metrics", ", ".join(_describe_metric(metric) for metric in benchmark.metrics)),
        ("parts", counted),
        ("views", ", ".join(f"{view} {count:,}" for view, count in views.items()) or ", ".join(definition.views)),
        ("selection", ", ".join(protocol.selection)),
        ("seeds", f"{protocol.seeds} (quick: {protocol.quick_seeds})"),
        ("budget", ", ".join(f"at most {value:g} {name}" for name, value in ceiling if value) or "no ceiling"),
        ("permitted data", _describe_data_access(protocol.touch)),
        ("prompt", f"version {prompt.version}, {parsed}" if prompt else "none"),
        ("canary", make_guid(benchmark)),
        *(
            (f"published ({reference.mark})", f"{reference.model}: {reference.score}, {reference.source}")
            for reference in definition.references
        ),
        *([("notes", definition.notes)] if definition.notes else []),
    ]
    return {
        "title": definition.title,
        "definition": definition.model_dump(mode="json"),
        "identities": {
            rule: benchmark.identity("full", None, rule) for rule in protocol.selection if benchmark.manifest.frozen
        },
        "rows": rows,
        "views": views,
        "lines": [list(pair) for pair in lines],
    }


def _describe_data_access(touch: DataAccess) -> str:
    data = ["training and validation rows"]
    if touch.ood_val_labels:
        data.append("labels of ood_val")
    if touch.ood_test_inputs:
        data.append("inputs of ood_test")
    if (adaptation := touch.adaptation) is not None:
        data.append(
            f"test-time adaptation (batches of {adaptation.batch_size}, {adaptation.order} order, "
            f"reset: {adaptation.reset})"
        )
    return ", ".join(data)
