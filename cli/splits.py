"""`farshift splits`: one short function a command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from ..core.errors import FarshiftError
from ..core.listings.plural import counted
from .finding import Generated, OfKind, OfLicence, OfModality, OfSource, OfState, Words
from .records import tell, tell_surroundings, without_false
from .terminal import (
    Json,
    block,
    catalogue,
    complain,
    emit_json,
    exit_if,
    go_offline,
    grid_on_stderr,
    line,
    table,
    watched,
)

app = typer.Typer(
    help="Versioned splits: list, show, rules, pull, verify, audit, diff, build, export.", no_args_is_help=True
)
Mirror = Annotated[
    Optional[list[Path]],  # noqa: UP045  (typer reads the annotation at run time)
    typer.Option("--mirror", metavar="DIR", help="Search this folder first, by digest. May be repeated."),
]
_NAMED = "A split's name, such as scan/length, or one of its versions, such as scan/length@1."
Split = Annotated[str, typer.Argument(metavar="NAME", help=_NAMED)]
Splits = Annotated[Optional[list[str]], typer.Argument(metavar="[NAME]...", help=_NAMED)]  # noqa: UP045
Data = Annotated[
    Optional[list[Path]],  # noqa: UP045
    typer.Option("--data", metavar="DIR", help="A folder with your copy of the data, as they were published."),
]
Accept = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--accept", metavar="LICENCE", help="Accept the licence of this name, once."),
]


@app.command("list")
def splits_list(
    search: Words = None,
    kind: OfKind = None,
    source: OfSource = None,
    modality: OfModality = None,
    generated: Generated = None,
    state: OfState = None,
    licence: OfLicence = "",
    all_: Annotated[bool, typer.Option("--all", help="Each manifest on its own line, families unfolded.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="All splits as a Markdown page.")] = False,
    json: Json = False,
) -> None:
    """List all splits, or those that fit: a line for each family (the rates and draws of one rule of label noise, the
    versions of a split). --json has every manifest, with its family."""
    asked = {"kind": kind, "source": source, "modality": modality, "generated": generated, "state": state}
    if markdown:
        if json or all_ or search or licence or any(value is not None for value in asked.values()):
            raise FarshiftError(
                "--markdown is the page of all splits: leave out --kind, --all and --json, and what else narrows it"
            )
        from ..splits.pages.catalogue import markdown as page

        return block(page().rstrip("\n"))
    from ..loaders.listing import splits
    from ..splits.folding import by_family, headline, name_of

    found = splits(" ".join(search or ()), licence=licence, **asked).to_dicts()  # type: ignore[arg-type]
    if json:
        return emit_json(found)
    lines = [[record] for record in found] if all_ else by_family(found)
    rows = [
        [
            name_of(members),
            members[0]["kind"],
            members[0]["state"],
            ", ".join(f"{k} {v:,}" for k, v in members[0]["parts"].items()),
            members[0]["title"],
        ]
        for members in lines
    ]
    caption = headline(found) + ("" if all_ else "; --all lists each manifest")
    catalogue(["split", "kind", "state", "rows", "title"], rows, caption)


@app.command("show")
def splits_show(
    name: Split,
    pin: Annotated[
        bool, typer.Option("--pin", help="Print what to contribute for a definition that you pulled instead.")
    ] = False,
    json: Json = False,
) -> None:
    """Show a split: rule, parts, identity, audit, fields, source and benchmarks.

    Nothing is downloaded: an example row is shown of rows that are in the cache. A definition becomes a frozen split
    for everyone once its identity and its source's digests (`--pin`) are part of the package."""
    from ..splits.catalogue import find
    from .split_page import surroundings

    if pin:
        return _print_pin(name, json)
    manifest = find(name)
    record = manifest.definition.model_dump(exclude_none=True) | {"audit": manifest.audit()}
    around = surroundings(manifest)
    if json:
        return emit_json(record | around)
    parts = record.pop("parts")
    record.pop("label_names")  # said below, with the fields
    rows = [[part, pin["rows"], pin["weighted_rows"], pin["digest"][:16]] for part, pin in parts.items()]
    record["audit"] = manifest.audit_summary()
    tell(without_false({key: value for key, value in record.items() if key != "format"}))
    if manifest.frozen:
        table("", ["part", "rows", "with copies", "digest"], rows)
    tell_surroundings(around)
    if not manifest.frozen:
        line("a definition: its rows are pinned when you first pull it (docs/real-data.md)")


@app.command("rules")
def splits_rules(
    words: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Argument(metavar="[NAME | WORD]...", help="A rule, a file of rules, or words to search for."),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="All rules as a Markdown page.")] = False,
    json: Json = False,
) -> None:
    """List the rules by which rows are assigned to parts; or show one: what it does, its parameters with types and
    defaults, an example, and the splits that it makes."""
    from .rules import tell_rules

    tell_rules(words or (), markdown, json)


@app.command("pull")
def splits_pull(
    names: Splits = None,
    all_: Annotated[bool, typer.Option("--all", help="Every frozen split.")] = False,
    mirror: Mirror = None,
    data: Data = None,
    accept: Accept = None,
    offline: Annotated[bool, typer.Option("--offline", help="Do not use the network.")] = False,
    json: Json = False,
) -> None:
    """Download a split's rows into the local cache and verify them. A definition is held to its published counts, and
    frozen in your home, when it is first pulled; data that you have to bring are named with --data."""
    from ..core.accepted import accepting
    from ..loaders.split import open_split

    go_offline(offline)
    done: list[dict[str, Any]] = []
    with watched(), accepting(tuple(accept or ())), counts_as_table():
        for name in _names(names, all_):
            split = open_split(name, (*_folders(data, "--data"), *_folders(mirror)))
            parts = {part: split.manifest.definition.parts[part].rows for part in split.parts}
            done.append({"split": split.manifest.full_name, "parts": parts, "cached_at": str(split.source.cached_at)})
    if json:
        return emit_json(done)
    for item in done:
        counts = ", ".join(f"{part} {rows:,}" for part, rows in item["parts"].items())
        line(f"{item['split']}: {counts}; verified, in {item['cached_at']}")


@app.command("verify")
def splits_verify(
    names: Splits = None,
    all_: Annotated[bool, typer.Option("--all", help="Every frozen split.")] = False,
    mirror: Mirror = None,
    json: Json = False,
) -> None:
    """Verify manifests row by row from their sources. Exit code 1 if one does not match."""
    from ..loaders.freezing.verify import verify_each
    from ..splits.catalogue import find

    with watched():
        found = verify_each([find(name) for name in _names(names, all_)], _folders(mirror))
    if json:
        emit_json([verdict.__dict__ for verdict in found])
    else:
        table("", ["split", "state", "identity", "why"], [[v.name, v.state, v.identity[:16], v.why] for v in found])
    exit_if(any(verdict.state != "verified" for verdict in found))


@app.command("audit")
def splits_audit(
    names: Splits = None,
    all_: Annotated[bool, typer.Option("--all", help="Every frozen split.")] = False,
    plot: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--plot", metavar="PNG", help="Draw the audit of one split into this file."),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Publish the measured audit, if the split holds its shift.")
    ] = False,
    mirror: Mirror = None,
    json: Json = False,
) -> None:
    """Measure what shift a split holds, and compare with its published audit; several as a table. Exit code 1 where one
    does not hold, or (without --write) does not agree."""
    from ..loaders.freezing.verify import audit_each
    from ..splits.catalogue import find

    wanted = _names(names, all_)
    if len(wanted) == 1 and not write:
        return _audit_one(wanted[0], plot, mirror, json)
    if plot:
        raise FarshiftError("--plot draws the audit of one split: name one, without --write")
    with watched():
        found = audit_each([find(name) for name in wanted], _folders(mirror), write)
    if json:
        emit_json([one.__dict__ for one in found])
    else:
        said = {True: "yes", False: "no"}
        rows = [[one.name, said[one.holds], said[one.agrees], one.why] for one in found]
        table("", ["split", "holds", "agrees with the published one", "why"], rows)
    exit_if(not all(one.holds and (write or one.agrees) for one in found))


def _audit_one(name: str, plot: Path | None, mirror: list[Path] | None, json: bool) -> None:
    from ..loaders.freezing.verify import audit_again

    if plot and plot.suffix.lower() != ".png":
        raise FarshiftError(f"--plot: {plot}: the picture of an audit is a .png file")
    with watched():
        found, agrees = audit_again(name, _folders(mirror))
    if plot:
        from ..core.files import write_atomically
        from ..splits.audit.picture import png
        from ..splits.catalogue import find
        from .split_page import class_names

        drawn = png(found, class_names(find(name)))
        write_atomically(plot, drawn, "give another file with --plot")
    if json:
        emit_json(found | {"agrees_with_published": agrees})
    else:
        tell(found | {"agrees with the published one": agrees})
    exit_if(not (found["holds"] and agrees))


def _print_pin(name: str, json: bool) -> None:
    from ..loaders.freezing.contribute import contribution

    pinned = contribution(name)
    if json:
        return emit_json(pinned)
    block(f"# splits/manifests.lock\n{pinned['split']} {pinned['identity']}")
    if pinned["source"]:
        block(f"# loaders/sources/{pinned['file']}: instead of the distribution of this name\n{pinned['source']}")


@app.command("diff")
def splits_diff(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The earlier version, such as arc_agi/version_2@1.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The later one, or another split of the same source.")],
    mirror: Mirror = None,
    json: Json = False,
) -> None:
    """Show which rows moved between two versions, and what else changed."""
    from ..loaders.freezing.diff import diff
    from ..splits.catalogue import find

    with watched():
        found = diff(find(old), find(new), _folders(mirror))
    if json:
        return emit_json(found)
    line(f"{found['old']} -> {found['new']}: {'the same rows' if found['same_identity'] else 'different identities'}")
    for pair, item in found["moved"].items():
        line(f"  {counted(item['rows'], 'row')} moved {pair} (first {', '.join(item['first'])})")
    for key in ("added", "removed", "changed", "weight", "group", "severity", "label"):
        if found[key]["rows"]:
            line(f"  {counted(found[key]['rows'], 'row')}: {key} (first {', '.join(found[key]['first'])})")
    for key, (before, after) in found["said"].items():
        line(f"  {key}: {before} -> {after}")


@app.command("build")
def splits_build(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="A split.toml without parts and identity, or a family.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where <source>/<split>/v<N>/ is written.")] = Path(
        "splits/manifests"
    ),
    engine: Annotated[
        str, typer.Option("--engine", metavar="E", help="Where rows are hashed: local, processes or ray.")
    ] = "local",
    json: Json = False,
) -> None:
    """Freeze splits: rows, digests, audit and identity. Refuses one that does not hold the shift it names, and writes
    nothing of it; others of its family, and of other files, are frozen all the same, and the exit code is 1. A frozen
    split is audited anew."""
    from ..core.engines import check_engine
    from ..loaders.freezing.freeze import drafts, freeze_each
    from ._own_benchmark import DraftedBenchmarks

    check_engine(engine)  # cached rows need no engine, and a misspelt one would pass unseen
    with watched():
        drafted = [(draft, file) for file in files for draft in drafts(file)]
        benchmarks = DraftedBenchmarks(out.resolve().parent.parent)
        frozen, refused = freeze_each(drafted, out, engine, benchmarks)
    if refused and len(drafted) == 1:
        raise refused[0]
    if json:
        emit_json(frozen if len(drafted) > 1 else frozen[0])
    else:
        for item in frozen:
            line(f"{item['split']} frozen in {item['folder']}: identity {item['identity']}")
            line(f"audit: {item['audit']['why']}")
        for path in benchmarks.paths:
            line(f"benchmark: {path}")
        if frozen:
            _say_home(out.absolute())
    for error in refused:
        complain(str(error))
    exit_if(bool(refused))


@app.command("export")
def splits_export(
    name: Split,
    part: Annotated[str, typer.Option("--part", metavar="P", help="train, id_test, ood_test ..")],
    to: Annotated[
        str, typer.Option("--to", metavar="F", help="parquet (one file) or webdataset (a folder of shards).")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="PATH", help="The file, or the new folder.")],
    shard_bytes: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--shard-bytes", metavar="N", help="Maximum size of a shard, such as 64MB. Default: 256MiB."),
    ] = None,
    mirror: Mirror = None,
    offline: Annotated[bool, typer.Option("--offline", help="Do not use the network.")] = False,
    json: Json = False,
) -> None:
    """Write one part of a split, verified, in another format."""
    from ..loaders.export import write

    go_offline(offline)
    with watched():
        done = write(name, part, to, out, shard_bytes, _folders(mirror))
    if json:
        return emit_json(done)
    rows, files = counted(done["rows"], "row"), counted(len(done["files"]), "file")
    line(f"{done['split']}, {done['part']}: {rows} in {done['out']}, {files}, {done['bytes']:,} bytes")


def _say_home(out: Path) -> None:
    """Where splits were written into a home that nothing names yet, how they are found by name."""
    from ..core.plugins import homes

    if out.parts[-2:] == ("splits", "manifests"):
        home = out.parent.parent
        if not any(home.samefile(known) for known in homes()):
            line(f"found by name once FARSHIFT_PATH names {home}")


def _folders(named: list[Path] | None, option: str = "--mirror") -> tuple[Path, ...]:
    for folder in named or ():
        if not folder.is_dir():
            raise FarshiftError(f"{option}: {folder} is not a folder")
    return tuple(named or ())


@contextmanager
def counts_as_table() -> Iterator[None]:
    """What differs from published counts, as a table on stderr before the error's one line."""
    from ..loaders.acquire.expected import CountsDiffer

    try:
        yield
    except CountsDiffer as error:
        if error.table:
            grid_on_stderr(["counted", "expected", "found"], error.table)
        raise


def _names(names: list[str] | None, all_: bool) -> list[str]:
    from ..splits.catalogue import manifests

    if bool(names) == all_:
        raise FarshiftError("name one or more splits, or give --all")
    return names or [manifest.full_name for manifest in manifests() if manifest.frozen]
