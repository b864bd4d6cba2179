"""The shipped suites: every frozen split is measured, and every benchmark fits its split, before any data are opened."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from farshift.benchmarks.benchmark import Benchmark, find_benchmark, load_benchmarks, load_suite
from farshift.benchmarks.prompting.prompt import Prompt
from farshift.benchmarks.selection import load_rules
from farshift.core.errors import Unavailable
from farshift.loaders.acquire.source import SourceDefinition, find_source, load_sources
from farshift.splits.assignment import PARTS
from farshift.splits.catalogue import list_manifests
from farshift.splits.manifest import KINDS, SplitDefinition
from support import SHARED, for_each

SPLITS = {manifest.full_name: manifest.definition for manifest in list_manifests()}
FROZEN = {manifest.full_name: manifest for manifest in list_manifests() if manifest.frozen}
ALL = load_benchmarks()
BENCHMARKS = {name: item for name, item in ALL.items() if item.definition.split in FROZEN}
"""Those whose split is frozen in the package: what holds of the others before a pull, test_definitions.py says."""
SCHEMAS = {name: source.schema for name, source in load_sources().items()}
RULES = load_rules()
LABELS = {
    "classification": ("int64", "uint64", "bool"),
    "regression": ("int64", "uint64", "float64"),
    "sequence": ("string",),
    "detection": ("string",),
    "multilabel": ("float32",),
}
"""The types that a label may have in each type of task."""


def split_of(benchmark: Benchmark) -> SplitDefinition:
    return FROZEN[benchmark.definition.split].definition


def rows_of(benchmark: Benchmark) -> dict[str, int]:
    """The rows of each part that a benchmark has, as far as the manifest tells: rows of a published repetition, which
    no hold-out takes, are counted as if it could."""
    rows = {name: pin.rows for name, pin in split_of(benchmark).parts.items()}
    for holdout in benchmark.definition.holdouts:
        accepted = round(holdout.share * rows[holdout.part])
        rows[holdout.part] -= accepted
        rows[holdout.to] = accepted
    return rows


def test_every_frozen_split_has_a_benchmark_at_its_newest_version():
    newest = {item.name: item for item in sorted(FROZEN.values(), key=lambda one: one.definition.version)}
    names = {item.full_name for item in newest.values()}
    assert sorted(names - {item.definition.split for item in BENCHMARKS.values()}) == []


def test_every_benchmark_names_a_version_that_is_frozen_or_defined():
    assert sorted(item.name for item in ALL.values() if item.definition.split not in SPLITS) == []


def test_a_benchmark_is_found_by_its_name_as_in_the_list():
    assert list(BENCHMARKS) == sorted(BENCHMARKS)
    assert {name for name, item in BENCHMARKS.items() if item.name != name} == set()
    some = list(BENCHMARKS)[:: len(BENCHMARKS) // 2]
    assert [find_benchmark(name) for name in some] == [BENCHMARKS[name] for name in some]


CORE = load_suite("core")


def generated(source: SourceDefinition) -> bool:
    """Whether a source's rows come from a generator, or from a source whose rows do."""
    made_of = [item.of.partition("@")[0] for item in source.distributions if item.of]
    return any(item.generator for item in source.distributions) or (
        bool(made_of) and all(generated(find_source(name).definition) for name in made_of)
    )


def test_the_core_has_some_of_every_kind_and_most_of_it_is_public_data():
    kinds = Counter(item.kind for item in CORE)
    assert 18 <= len(CORE) <= 24
    assert set(kinds) == set(KINDS)
    assert all(count >= 3 for count in kinds.values()), kinds
    public = Counter(item.kind for item in CORE if not generated(find_source(split_of(item).source.name).definition))
    assert sum(public.values()) >= 13
    assert set(public) == set(KINDS)


def test_a_kind_of_the_core_has_at_most_one_split_of_a_source():
    requested = Counter((item.kind, split_of(item).source.name) for item in CORE)
    assert [of for of, count in requested.items() if count > 1] == []


def test_anyone_may_use_the_data_of_the_core():
    licences = {item.name: find_source(split_of(item).source.name).definition.licence for item in CORE}
    closed = re.compile(r"\bNC\b|non-commercial|research|restricted|permission|without a stated", re.IGNORECASE)
    assert {name for name, output in licences.items() if not output or closed.search(output)} == {"geoquery/template"}


def test_the_core_has_enough_rows_to_measure_a_shift_and_metrics_of_answers_alone():
    for item in CORE:
        assert item.metrics[0].needs != "scores", item.name
        if item.kind != "corrupted-label":
            assert rows_of(item)["ood_test"] >= 250, item.name


def test_the_full_suite_is_every_benchmark_and_holds_the_others():
    assert {item.name for item in load_suite("full")} == set(BENCHMARKS)
    suites = {name for item in BENCHMARKS.values() for name in item.definition.suites}
    assert {"core", "full", "quickstart", "tabular"} <= suites
    assert (
        sorted(
            item.name for item in BENCHMARKS.values() if len(set(item.definition.suites)) < len(item.definition.suites)
        )
        == []
    )


def test_no_two_benchmarks_ask_the_same():
    requested = Counter(
        item.definition.model_copy(update={"name": "", "title": ""}).model_dump_json() for item in BENCHMARKS.values()
    )
    assert [text for text, count in requested.items() if count > 1] == []


@for_each(ALL)
def test_a_benchmark_fits_the_schema_of_its_split(name):
    definition = ALL[name].definition
    split = SPLITS[definition.split]
    task, schema = definition.task, SCHEMAS[split.source.name]
    assert [schema[field].role for field in task.inputs] == ["input"] * len(set(task.inputs))
    assert task.label == split.label
    assert schema[task.label].item in LABELS[task.type]
    composed = definition.composed
    for field in (*composed.parts, composed.key) if composed else ():
        assert schema[field].role == "meta"


@for_each(BENCHMARKS)
def test_a_benchmark_holds_out_and_views_parts_that_have_rows(name):
    definition, split = BENCHMARKS[name].definition, split_of(BENCHMARKS[name])
    assert {holdout.part for holdout in definition.holdouts} <= split.parts.keys()
    assert not {holdout.to for holdout in definition.holdouts} & split.parts.keys()
    rows = rows_of(BENCHMARKS[name])
    assert min(rows.values()) >= 1
    assert {view.part for view in definition.views.values()} <= rows.keys()
    id_, ood = definition.views["id"], definition.views["ood"]
    assert id_ != ood
    assert not id_.part.startswith("ood")
    if split.kind != "corrupted-label":
        assert ood.part == "ood_test"
        assert {(view.rows, view.against) for view in definition.views.values()} == {("all", "true")}


@for_each(BENCHMARKS)
def test_the_metrics_selection_rules_and_prompt_of_a_benchmark_are_there_for_its_task(name):
    benchmark = BENCHMARKS[name]
    pins = [(item.name, item.version) for item in benchmark.definition.metrics]
    assert [(item.name, item.version) for item in benchmark.metrics] == pins
    judged_by = {RULES[rule].part for rule in benchmark.definition.protocol.selection}
    assert judged_by & set(PARTS) <= rows_of(benchmark).keys()
    if (prompt := benchmark.definition.prompt) is not None:
        assert Prompt(prompt, benchmark.task, ()).pin == prompt


@pytest.mark.slow
@pytest.mark.parametrize("source", sorted({split_of(item).source.name for item in BENCHMARKS.values()}))
def test_every_benchmark_of_a_source_holds_on_its_data(source, monkeypatch):
    if SHARED.exists():
        monkeypatch.setenv("FARSHIFT_MIRRORS", str(SHARED))
    try:
        find_source(source).table()
    except Unavailable as error:
        pytest.skip(str(error))
    for benchmark in BENCHMARKS.values():
        if split_of(benchmark).source.name != source:
            continue
        opened = Benchmark(benchmark.definition, benchmark.path)  # one whose data are let go with it
        opened.check()
        assert set(opened.predicted_parts) <= rows_of(benchmark).keys()
