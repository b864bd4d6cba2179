"""docs/splits/: an index, a page a kind of shift with its sources, and a page a source with its splits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from farshift.loaders.acquire.source import SourceDefinition, load_sources
from farshift.splits.catalogue import MEMBER, fold_names, format_headline, get_family, list_manifests
from farshift.splits.manifest import KINDS, Manifest
from markdown_text import fill_prose, format_table, join_page

INTRODUCTION = """
All splits, by kind of shift. Each kind has a page that lists its data sources; each source has a page with its splits,
their sizes and the results of their audits. `farshift splits list` searches the same catalogue, and `farshift splits
show NAME` prints one split with its identity, rule and full audit. To define a split: [own splits](../own-splits.md).

- A *frozen* split is reproducible row by row: the assignment of its rows to parts is verified by digests. A
  *definition* is a split of public data that Farshift does not ship; its rows are frozen on your machine when you first
  pull it ([real data](../real-data.md)).
- A *manifest* describes one version of one split. A *family* is a split with all its versions; with label noise, it is
  one noise rule on one source, with all its rates (in per cent) and random draws. A member of such a family has a name
  of its own and one by parameters: `mnist/pair_flip_20_draw1` is `mnist/pair_flip?rate=20&draw=1`.
- An *audit* measures whether a split has the shift that it claims to have ([audits](../audit.md)).
"""


def build_split_pages() -> dict[str, str]:
    """The index, the page of each kind of shift and that of each source, by file name."""
    manifests = list_manifests()
    by_source: dict[str, list[Manifest]] = {}
    for manifest in manifests:
        by_source.setdefault(manifest.definition.source.name, []).append(manifest)
    sources = {name: source.definition for name, source in load_sources().items() if name in by_source}
    if clashing := {"index", *KINDS} & set(sources):
        raise ValueError(f"a source is named like another page: {', '.join(sorted(clashing))}")
    pages = {f"{kind}.md": _render_kind(kind, _select_kind(manifests, kind), sources) for kind in KINDS}
    pages |= {f"{name}.md": _render_source(sources[name], members) for name, members in by_source.items()}
    return {"index.md": _render_index(manifests)} | pages


def _render_index(manifests: Sequence[Manifest]) -> str:
    rows = []
    for kind in KINDS:
        frozen, defined = _divide_by_state(_select_kind(manifests, kind))
        rows.append((f"[{kind}]({kind}.md)", _format_counts(frozen), _format_counts(defined)))
    frozen, defined = _divide_by_state(manifests)
    rows.append(("all", _format_counts(frozen), _format_counts(defined)))
    table = format_table(("kind of shift", "frozen", "definitions"), rows)
    return join_page("# Splits", INTRODUCTION, table)


def _render_kind(kind: str, manifests: Sequence[Manifest], sources: dict[str, SourceDefinition]) -> str:
    rows = []
    for name, source in sources.items():
        members = [manifest for manifest in manifests if manifest.definition.source.name == name]
        counts = (str(len(_list_families(group))) for group in _divide_by_state(members))
        if members:
            rows.append((f"[{name}]({name}.md)", *counts, source.title))
    return join_page(
        f"# {kind.capitalize()} shifts",
        "The number of split families of each data source ([terms](index.md)).",
        format_table(("source", "frozen", "definitions", "data"), rows),
        "[All kinds of shift](index.md)",
    )


def _select_kind(manifests: Sequence[Manifest], kind: str) -> list[Manifest]:
    return [manifest for manifest in manifests if manifest.definition.kind == kind]


def _divide_by_state(manifests: Sequence[Manifest]) -> tuple[list[Manifest], list[Manifest]]:
    """The frozen ones, and the definitions."""
    return [item for item in manifests if item.frozen], [item for item in manifests if not item.frozen]


def _list_families(manifests: Sequence[Manifest]) -> set[str]:
    return {get_family(manifest.definition) for manifest in manifests}


def _format_counts(manifests: Sequence[Manifest]) -> str:
    """`12 families (80 manifests) over 9 sources`."""
    return format_headline(
        [
            {"family": get_family(manifest.definition), "source": manifest.definition.source.name}
            for manifest in manifests
        ]
    )


def _render_source(source: SourceDefinition, members: Sequence[Manifest]) -> str:
    facts = [f"- Source: `{source.name}`" + (f", {source.rows:,} rows" if source.rows else "")]
    facts += [f"- Licence: {source.licence}" + (f"; you must accept: {source.accept}" if source.accept else "")]
    facts += [f"- Reference: {source.citation}"]
    facts += [f"- Homepage: <{source.homepage}>"] if source.homepage else []
    facts += [_format_fields(source, role, name) for role, name in (("input", "Inputs"), ("label", "Labels"))]
    frozen, defined = _divide_by_state(members)
    return join_page(
        f"# {source.title}",
        "\n".join(facts),
        fill_prose(source.notes),
        "## Frozen splits" if frozen else "",
        "The last column summarises the [audit](../audit.md) of each split." if frozen else "",
        format_table(
            ("split", "kind of shift", "rows", "description", "audit"), map(_format_frozen, group_grids(frozen).items())
        ),
        "## Definitions" if defined else "",
        "The rows of these splits are frozen on your machine by the first `farshift splits pull`." if defined else "",
        format_table(("split", "kind of shift", "description"), map(_format_defined, defined)),
        "[All splits](index.md)",
    )


def _format_fields(source: SourceDefinition, role: str, name: str) -> str:
    fields = ", ".join(f"`{field.name}` ({field.type})" for field in source.fields if field.role == role)
    return f"- {name}: {fields}"


def group_grids(members: Iterable[Manifest]) -> dict[str, list[Manifest]]:
    """The members in lines, by the name in the line: all rates and draws of one label noise share a line."""
    lines: dict[str, list[Manifest]] = {}
    for manifest in members:
        family = get_family(manifest.definition)
        is_member = family != manifest.name and MEMBER.fullmatch(manifest.name)
        lines.setdefault(family if is_member else manifest.full_name, []).append(manifest)
    names = {line: [manifest.name for manifest in group] for line, group in lines.items()}
    return {fold_names(names[line]) if len(group) > 1 else line: group for line, group in lines.items()}


def _format_frozen(line: tuple[str, Sequence[Manifest]]) -> tuple[str, ...]:
    name, members = line
    definition = members[0].definition
    parts = ", ".join(f"{part} {pin.rows:,}" for part, pin in definition.parts.items())
    more = f" ({len(members)} splits)" if len(members) > 1 else ""
    return f"`{name}`{more}", definition.kind, parts, definition.title, members[0].audit_summary()


def _format_defined(manifest: Manifest) -> tuple[str, ...]:
    definition = manifest.definition
    return f"`{manifest.full_name}`", definition.kind, definition.title
