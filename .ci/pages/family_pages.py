"""A page for each family of splits. The documentation's site has them; docs/ does not, for there are hundreds."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from pathlib import Path

import farshift as fs
import tomli_w
from farshift.baselines.running.recorded_scores import RecordedScore
from farshift.benchmarks.listing import BenchmarkEntry
from farshift.cli.output import format_estimate
from farshift.splits.catalogue import get_family, list_manifests
from farshift.splits.manifest import Manifest
from markdown_text import fill_prose, format_table, join_page
from split_pages import group_grids

PROBES = Path(__file__).parent / "encoder_probes.json"
"""The `encoder` of `farshift splits audit SPLIT --encoder NAME --json` by split, as last measured."""


def build_family_pages() -> dict[str, str]:
    """`scan/length.md` and so on, by file name."""
    benchmarks: dict[str, list[BenchmarkEntry]] = {}
    for entry in fs.benchmarks():
        benchmarks.setdefault(entry.family, []).append(entry)
    best = {name: next(scores) for name, scores in groupby(fs.results(), lambda score: score.benchmark)}
    families: dict[str, list[Manifest]] = {}
    for manifest in list_manifests():
        families.setdefault(get_family(manifest.definition), []).append(manifest)
    return {
        f"{name}.md": _render_family(name, members, benchmarks.get(name, []), best)
        for name, members in families.items()
    }


def link_families(page: str) -> str:
    """Names of splits in the first column of the page of a source, as links to the pages of their families."""
    pages = _find_pages()
    return re.sub(
        r"^\| `([^`]+)`(?= )",
        lambda cell: f"| [`{cell[1]}`]({pages[cell[1]]}.md)" if cell[1] in pages else cell[0],
        page,
        flags=re.MULTILINE,
    )


@cache
def _find_pages() -> dict[str, str]:
    lines = group_grids(list_manifests())
    return {name: get_family(members[0].definition) for name, members in lines.items()}


def _render_family(
    name: str, members: Sequence[Manifest], benchmarks: Sequence[BenchmarkEntry], best: dict[str, RecordedScore]
) -> str:
    newest = max(members, key=lambda manifest: manifest.definition.version)
    definition = newest.definition
    source, (folder, rule) = definition.source.name, definition.rule.split("/")
    facts = [
        f"- Kind of shift: [{definition.kind}](../{definition.kind}.md)",
        f"- Data: [`{source}`](../{source}.md), label `{definition.label}`",
        f"- Rule: [`{definition.rule}`](../../rules/{folder}.md#{rule})",
        *(f"- {title}: {axis.name}{f', in {axis.unit}' if axis.unit else ''}" for title, axis in
          (("Severity", definition.severity), ("Groups", definition.group)) if axis),
        *(f"- Reference: {reference}" for reference in definition.references),
    ]  # fmt: skip
    measured = json.loads(PROBES.read_text("utf-8"))
    probes = [
        (f"`{split}`", *(str(value) for value in measured[split].values()))
        for split in (manifest.full_name for manifest in members)
        if split in measured
    ]
    parameters = tomli_w.dumps(definition.parameters).strip()
    return join_page(
        f"# {name}",
        definition.title,
        "\n".join(facts),
        fill_prose(definition.notes),
        f"Parameters of the rule{f' in {newest.full_name}' if len(members) > 1 else ''}:" if parameters else "",
        f"```toml\n{parameters}\n```" if parameters else "",
        "## Splits",
        format_table(("split", "rows", "identity", "audit"), map(_format_split, members)),
        f"```sh\nfarshift splits pull {definition.name}\nfarshift splits show {definition.name}\n```",
        "`show` prints the whole [audit](../../audit.md) and example rows.",
        "Linear models on the features of a pretrained network, from train to ood_test "
        "(`farshift splits audit SPLIT --encoder NAME`; 1 is a perfect AUROC of the domain):"
        if probes
        else "",
        format_table(("split", "network", "ID accuracy", "OOD accuracy", "AUROC of the domain"), probes),
        "## Benchmarks" if benchmarks else "",
        format_table(
            ("benchmark", "task", "metric", "best recorded baseline (quick): OOD"),
            (_format_benchmark(entry, best.get(entry.name)) for entry in benchmarks),
        ),
    )


def _format_split(manifest: Manifest) -> tuple[str, ...]:
    definition = manifest.definition
    rows = ", ".join(f"{part} {pin.rows:,}" for part, pin in definition.parts.items())
    identity = f"`{manifest.identity[:16]}`" if manifest.frozen else "frozen by the first pull"
    return f"`{manifest.full_name}`", rows, identity, manifest.audit_summary()


def _format_benchmark(entry: BenchmarkEntry, best: RecordedScore | None) -> tuple[str, ...]:
    score = f"`{best.model}` {format_estimate(best.to_dict()['ood'], best.in_percent)}" if best else ""
    return f"`{entry.name}`: {entry.title}", entry.task, entry.metrics[0].partition("@")[0], score
