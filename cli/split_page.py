"""Output of `farshift splits show` (a manifest, and what is around it) and of `splits rules`."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence, Sized
from typing import Any

from ..benchmarks.benchmark import load_benchmarks
from ..core.errors import FarshiftError, UnknownName, shorten_list
from ..core.text import format_count
from ..loaders.acquire.source import Distribution, find_source
from ..loaders.cache.entries import format_size
from ..loaders.listing import has_local_rows
from ..loaders.mirrors import load_mirror
from ..loaders.split import open_split
from ..splits.manifest import Manifest
from ..splits.rule_docs import Rule, find_rule, format_example, format_usage, list_rules
from .output import (
    count_terminal_columns,
    emit_json,
    format_estimate,
    print_catalogue,
    print_line,
    print_table,
    print_wrapped,
)

LONGEST = 72
"""The most characters of a value of an example row."""


def collect_related_facts(manifest: Manifest) -> dict[str, Any]:
    """Plain JSON. Nothing is downloaded: without the rows at hand there are no `example_rows`."""
    facts: dict[str, Any] = {"benchmarks": _list_benchmarks(manifest.full_name)}
    try:
        source = find_source(manifest.definition.source.name)
    except UnknownName:  # rows that come with the split itself, or of a source that is private elsewhere
        return facts
    label = manifest.definition.label
    names = find_class_names(manifest)
    facts["fields"] = [
        pin.model_dump() | ({"names": names} if names and pin.name == label else {}) for pin in source.definition.fields
    ]
    facts["licence"] = manifest.definition.licence or source.definition.licence
    facts["origins"] = [_describe_origin(distribution) for distribution in source.definition.distributions]
    if source.definition.accept:
        facts["accept"] = source.definition.accept
    if has_local_rows(manifest) and source.cached_at.is_file():
        split = open_split(manifest.full_name)
        rows = {part: split.part(part)[0] for part in sorted(split.parts)}
        facts["example_rows"] = {
            part: {name: _format_value(value) for name, value in _name_class(row, label, names).items()}
            for part, row in rows.items()
        }
    return facts


def find_class_names(manifest: Manifest) -> list[str]:
    """What the classes 0, 1 .. of a split's label are called: as the split says it, or its source, or a benchmark over
    it; nothing where none does."""
    definition = manifest.definition
    if definition.label_names:
        return definition.label_names
    try:
        names = find_source(definition.source.name).class_names(definition.label)
    except UnknownName:
        names = []
    tasks = [
        benchmark.definition.task
        for benchmark in load_benchmarks().values()
        if benchmark.definition.split == manifest.full_name and benchmark.definition.task.label == definition.label
    ]
    return names or next((task.names for task in tasks if task.names), [])


def _name_class(row: dict[str, Any], label: str, names: list[str]) -> dict[str, Any]:
    """A row with what its class is called."""
    value = row.get(label)
    if not isinstance(value, int) or not 0 <= value < len(names):
        return row
    return row | {label: f"{value} ({names[value]})"}


def _describe_origin(distribution: Distribution) -> str:
    """The origin and size of a distribution's files, in words."""
    if distribution.generator:
        return f"generated locally ({distribution.generator})"
    if distribution.derivation:
        return f"derived from the source {distribution.of} ({distribution.derivation})"
    entries = [*distribution.files, *distribution.trees]
    sizes = [getattr(entry, "bytes", None) for entry in distribution.files]
    size = "" if distribution.trees or None in sizes else f", {format_size(sum(size or 0 for size in sizes))}"
    places = [load_mirror(mirror, entry.name)[1] for entry in entries[:1] for mirror in entry.mirrors]
    count = f"{len(entries)} file{'s' * (len(entries) > 1)}" if not distribution.trees else "a folder of files"
    where = " or ".join(places) or "your own copy (--data DIR)"
    return f"{distribution.name}: {count}{size}, from {where}{' ..' if len(entries) > 1 else ''}"


def _list_benchmarks(split: str) -> list[dict[str, Any]]:
    """The benchmarks over a split, each with the best recorded result by OOD score, smoke runs excepted."""
    from ..baselines.running.recorded_scores import SMOKE, find_low_id_scores, read_recorded_scores, sort_best_first

    records = []
    for name, benchmark in sorted(load_benchmarks().items()):
        if benchmark.definition.split != split:
            continue
        known = read_recorded_scores(name)
        smoke = {model for model, why in find_low_id_scores(name, known).items() if why.startswith(SMOKE)}
        best = next((score for score in sort_best_first(list(known.values())) if score.model not in smoke), None)
        records.append({"benchmark": name} | ({} if best is None else {"best": best.to_dict()}))
    return records


def _format_value(value: Any) -> str:
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]}.."


def print_related(related: dict[str, Any]) -> None:
    if fields := related.get("fields"):
        rows = [[field["name"], field["type"], field["role"]] for field in fields]
        print_table("", ["field", "type", "role"], rows[:_MOST], _format_more(fields))
        for field in fields:
            if names := field.get("names"):
                named = [f"{index} {name}" for index, name in enumerate(names)]
                print_wrapped(f"classes of {field['name']}: {shorten_list(named)}", 4)
    for origin in related.get("origins", ()):
        print_wrapped(f"from: {origin}", 4)
    if accept := related.get("accept"):
        print_line(f"licence to accept: {accept}")
    for benchmark in related["benchmarks"]:
        best = benchmark.get("best")
        best_text = f"; best recorded OOD: {best['model']} {_format_best(best)}" if best else ""
        print_wrapped(f"benchmark: {benchmark['benchmark']}{best_text}", 4)
    for part, row in related.get("example_rows", {}).items():
        print_line(f"example row of {part}:")
        print_record(dict(list(row.items())[:_MOST]), "    ")
        if rest := _format_more(row):
            print_line(f"    {rest}")


_MOST = 12
"""Fields of a table, or of an example row, that are shown."""


def _format_more(fields: Sized) -> str:
    return f"and {len(fields) - _MOST} more (--json lists all)" if len(fields) > _MOST else ""


def print_record(record: dict[str, Any], indent: str = "") -> None:
    """A record on stdout, a line a value, without what is empty; records that hold more than values are indented."""
    for key, value in _drop_empty(record).items():
        if isinstance(value, dict) and any(isinstance(inner, dict | list) for inner in value.values()):
            print_line(f"{indent}{key}:")
            print_record(value, indent + "    ")
        elif isinstance(value, dict):
            pairs = ", ".join(f"{name} = {inner}" for name, inner in value.items())
            print_wrapped(f"{indent}{key}: {pairs}", len(indent) + 4)
        else:
            print_wrapped(
                f"{indent}{key}: {_format_list(value) if isinstance(value, list) else value}", len(indent) + 4
            )


def _format_list(values: list[Any]) -> str:
    """A list as TOML has it, to be copied; prose one after another."""
    if any(isinstance(value, str) and " " in value for value in values):
        return "; ".join(map(str, values))
    return json.dumps(values, ensure_ascii=False)


def _drop_empty(record: dict[str, Any]) -> dict[str, Any]:
    result = {key: _drop_empty(value) if isinstance(value, dict) else value for key, value in record.items()}
    return {key: value for key, value in result.items() if value not in ("", [], {})}


def drop_false(record: dict[str, Any]) -> dict[str, Any]:
    result = {key: drop_false(value) if isinstance(value, dict) else value for key, value in record.items()}
    return {key: value for key, value in result.items() if value is not False}


def _format_best(best: dict[str, Any]) -> str:
    from ..baselines.running.recorded_scores import RecordedScore

    return format_estimate(best["ood"], RecordedScore.from_dict(best).in_percent)


_LONGEST = 100
"""The longest description of a rule in a list, in characters."""


def print_rules(words: Sequence[str], json: bool) -> None:
    """Rules as a list (all, those of a file, or those that have all the words), or one in full where its name is given;
    `FarshiftError` where nothing fits."""
    if len(words) == 1 and "/" in words[0]:
        rule = find_rule(words[0])
        return emit_json(rule.to_dict()) if json else _print_rule(rule)
    every = list_rules()
    of_file = {name for name in every if len(words) == 1 and name.partition("/")[0] == words[0]}
    matches = []
    for rule in every.values():
        names = (parameter.name for parameter in rule.parameters)
        text = " ".join([rule.name, *rule.kinds, rule.what, *names]).lower()
        if rule.name in of_file or (not of_file and all(word.lower() in text for word in words)):
            matches.append(rule)
    if not matches:
        raise FarshiftError(f"no rule has {' and '.join(map(repr, words))} in its name, kinds or description")
    if json:
        return emit_json([rule.to_dict() for rule in matches])
    rows = []
    for rule in matches:
        title = textwrap.shorten(rule.title, _LONGEST, placeholder=" ..")
        rows.append([rule.name, ", ".join(rule.kinds) or "any", str(len(rule.splits)), title])
    caption = f"{format_count(len(matches), 'rule')}; NAME shows one in full"
    return print_catalogue(["rule", "kinds", "splits", "description"], rows, caption)


def _print_rule(rule: Rule) -> None:
    print_line(f"{rule.name} ({', '.join(rule.kinds)})" if rule.kinds else rule.name)
    for paragraph in rule.what.split("\n\n"):
        print_line("")
        for item in textwrap.wrap(
            " ".join(paragraph.split()), min(count_terminal_columns(), 120), break_on_hyphens=False
        ):
            print_line(item)
    rows = [[item.name, item.type, item.default or "required", item.what] for item in rule.parameters]
    print_table("", ["parameter", "type", "default", "description"], rows)
    if example := format_example(rule):
        print_line("example:")
        for item in example:
            print_line(f"    {item}")
    print_line(f"used by: {format_usage(rule)}")
