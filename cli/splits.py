"""`farshift splits`: one short function a command."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import typer

from ..core.errors import FarshiftError
from ..core.text import format_count
from .options import command
from .output import (
    Columns,
    emit_json,
    exit_if,
    forbid_network,
    print_catalogue,
    print_error,
    print_line,
    print_note,
    print_records,
    print_result,
    print_table,
    print_wrapped,
)
from .progress import show_progress

app = typer.Typer(help="List, download, verify, audit, build and export versioned splits.", no_args_is_help=True)
BEST_KNOWN = (
    *(
        "scan/length",
        "scan/mcd1",
        "cogs/gen",
        "cfq/mcd1",
        "pcfg_systematicity/official",
        "gsm8k/steps_3_to_5",
        "bbh/algorithmic",
    ),
    *("pacs/sketch", "office_home/art", "domain_net/sketch", "wilds_camelyon17/official", "wilds_iwildcam/official"),
    *("colored_mnist/minus_90", "waterbirds/official", "celeba/blond", "imagenet_c/common", "cifar10_c/common"),
    *("cifar10/human_worst", "clothing1m/noisy", "imdb_counterfactual/revised"),
)
"""What an overview names: splits that many papers use."""

_NAMED = "Split name, such as scan/length, or a version, such as scan/length@1."


@command(app, "list")
def splits_list(
    search: list[str] | None = None,
    kind: str | None = None,
    source: str | None = None,
    modality: str | None = None,
    generated: bool | None = None,
    state: str | None = None,
    licence: str = "",
    all_: bool = False,
    json: bool = False,
) -> None:
    """List the splits that match the search words and options; without any, an overview.

    A family (the noise rates and random draws of one label-noise rule, or the versions of one split) takes one line;
    --all and --json list every split. A member of `mnist/pair_flip?rate=20,40&draw=1,2` is named by one value each,
    'mnist/pair_flip?rate=20&draw=1'.

    --all: List every split on its own line.
    """
    filters = {"kind": kind, "source": source, "modality": modality, "generated": generated, "state": state}
    from ..core.listings import Listing
    from ..loaders.listing import splits
    from ..splits.catalogue import format_family_name, format_headline, group_by_family

    def find(words: str) -> Listing[Any]:
        return splits(words, licence=licence, **filters)  # type: ignore[arg-type]

    records = find(" ".join(search or ())).to_dicts()
    if json:
        return emit_json(records)
    if not (search or licence or all_ or any(value is not None for value in filters.values())):
        return _print_overview(records)
    lines = [[record] for record in records] if all_ else group_by_family(records)
    rows = [
        [
            format_family_name(members),
            members[0]["kind"],
            members[0]["state"],
            ", ".join(f"{k} {v:,}" for k, v in members[0]["parts"].items()),
            members[0]["title"],
        ]
        for members in lines
    ]
    caption = format_headline(records) + ("" if all_ else "; --all lists each manifest")
    print_catalogue(["split", "kind", "state", "rows", "title"], rows, caption, search or (), find)


def _print_overview(records: list[dict[str, Any]]) -> None:
    """Print how many families of each kind and modality there are, and the splits that are best known."""
    from ..loaders.listing import MODALITIES
    from ..splits.catalogue import format_headline
    from ..splits.manifest import KINDS

    families = {record["family"]: record for record in records}.values()
    cells = Counter((family["kind"], family["modality"]) for family in families)
    counts = [[kind, *(cells[kind, modality] for modality in MODALITIES)] for kind in KINDS]
    print_table("", ["families", *MODALITIES], counts)
    names = {record["name"] for record in records}
    print_wrapped("best known: " + ", ".join(name for name in BEST_KNOWN if name in names))
    print_wrapped(
        f"{format_headline(records)}; search by words or --kind, --modality, --state; --all lists every split"
    )


@command(app, "show")
def splits_show(name: str, json: bool = False) -> None:
    """Show a split: rule, parts, identity, audit, fields, source and benchmarks.

    Nothing is downloaded; example rows are shown if the rows are in the cache. A definition is a split whose row
    digests are not part of the package.

    name SPLIT: Split name, such as scan/length, or a version, such as scan/length@1.
    """
    from ..splits.catalogue import find_manifest
    from .split_page import collect_related_facts, drop_false, print_record, print_related

    manifest = find_manifest(name)
    record = manifest.definition.model_dump(exclude_none=True) | {"audit": manifest.audit()}
    around = collect_related_facts(manifest)
    if json:
        return emit_json(record | around)
    parts = record.pop("parts")
    record.pop("label_names")  # printed below, with the fields
    copies = any(pin["rows"] != pin["weighted_rows"] for pin in parts.values())
    columns = ["part", "rows", *(["rows with copies"] if copies else []), "digest"]
    rows = [
        [part, pin["rows"], *([pin["weighted_rows"]] if copies else []), pin["digest"][:16]]
        for part, pin in parts.items()
    ]
    record |= {"audit": manifest.audit_summary(), "licence": around.get("licence", record["licence"])}
    print_record(drop_false({key: value for key, value in record.items() if key != "format"}))
    if manifest.frozen:
        print_table("", columns, rows)
    print_related(around)
    if not manifest.frozen:
        print_line("a definition, not yet frozen: its rows are pinned on the first pull (docs/real-data.md)")


@command(app, "rules")
def splits_rules(words: list[str] | None = None, json: bool = False) -> None:
    """List the rules that assign rows to parts, or show one in full.

    The full form has the description, the parameters with types and defaults, an example, and the splits that use the
    rule.

    words NAME | WORD: Rule name, such as domain/hold_out; its first half, such as domain, for the rules of that
        file; or search words.
    """
    from .split_page import print_rules

    print_rules(words or (), json)


@command(app, "pull")
def splits_pull(
    names: list[str] | None = None,
    all_: bool = False,
    mirror: list[Path] | None = None,
    data: list[Path] | None = None,
    accept: list[str] | None = None,
    offline: bool = False,
    json: bool = False,
) -> None:
    """Download the rows of splits into the local cache and verify them.

    The first pull of a definition compares its row counts with the published ones, and freezes the split in
    FARSHIFT_HOME. Data that cannot be downloaded automatically are read from your own copy (--data).

    --all: Pull all frozen splits instead of SPLITs.
    --data DIR: Folder with your copy of the published data. May be repeated.
    --accept LICENCE: Accept this data licence, now and in later commands. May be repeated.
    """
    from ..core.files import accept_licences
    from ..core.progress import log_message
    from ..loaders.split import is_cached, open_split
    from ..splits.catalogue import find_manifest

    forbid_network(offline)
    done: list[dict[str, Any]] = []
    with show_progress(), accept_licences(tuple(accept or ())):
        for name in _resolve_names(names, all_):
            if data and is_cached(find_manifest(name)):
                log_message(f"{name} was pulled before and its rows are in the cache: --data is not read")
            split = open_split(name, (*_check_folders(data, "--data"), *_check_folders(mirror)))
            parts = {part: split.manifest.definition.parts[part].rows for part in split.parts}
            done.append({"split": split.manifest.full_name, "parts": parts, "cached_at": str(split.source.cached_at)})
    lines = []
    for item in done:
        counts = ", ".join(f"{part} {rows:,}" for part, rows in item["parts"].items())
        lines.append(f"{item['split']}: {counts}; verified, in {item['cached_at']}")
    print_result(json, done, *lines)


@command(app, "verify")
def splits_verify(
    names: list[str] | None = None, all_: bool = False, mirror: list[Path] | None = None, json: bool = False
) -> None:
    """Verify the manifests of splits, row by row, against their source data.

    Exit code 1 if a split does not match.

    --all: Verify all frozen splits instead of SPLITs.
    """
    from ..loaders.freezing.verify import verify_each
    from ..splits.catalogue import find_manifest

    with show_progress():
        verdicts = verify_each([find_manifest(name) for name in _resolve_names(names, all_)], _check_folders(mirror))
    columns: Columns = {
        "split": "name",
        "state": "state",
        "identity": lambda verdict: verdict["identity"][:16],
        "reason": "why",
    }
    print_records(json, [vars(verdict) for verdict in verdicts], columns)
    exit_if(any(verdict.state != "verified" for verdict in verdicts))


@command(app, "audit")
def splits_audit(
    names: list[str] | None = None,
    all_: bool = False,
    write: bool = False,
    encoder: str = "",
    mirror: list[Path] | None = None,
    json: bool = False,
) -> None:
    """Measure the shift of splits, and compare it with their published audits.

    Exit code 1 if a split does not have the shift that it claims, or (without --write) if an audit differs from the
    published one.

    --all: Audit all frozen splits instead of SPLITs.
    --write: Replace the published audit of each split that has its claimed shift with the measured one.
    --encoder MODEL: Measure also how well a linear model on the features of a pretrained one tells the domains and the
        classes: for pictures, texts and sounds. MODEL as for farshift run; one split.
    """
    from ..loaders.freezing.verify import audit_each
    from ..splits.catalogue import find_manifest

    split_names = _resolve_names(names, all_)
    if len(split_names) == 1 and not write:
        return _print_audit(split_names[0], encoder, mirror, json)
    if encoder:
        raise FarshiftError("--encoder measures one split, without --write: name it")
    with show_progress():
        audits = audit_each([find_manifest(name) for name in split_names], _check_folders(mirror), write)
    columns: Columns = {
        "split": "name",
        "holds": lambda audit: "yes" if audit["holds"] else "no",
        "agrees with the published one": lambda audit: "yes" if audit["agrees"] else "no",
        "reason": "why",
    }
    print_records(json, audits, columns)
    exit_if(not all(audit["holds"] and (write or audit["agrees"]) for audit in audits))


def _print_audit(name: str, encoder: str, mirror: list[Path] | None, json: bool) -> None:
    from ..loaders.freezing.verify import audit_again
    from .split_page import print_record

    with show_progress():
        audit, agrees = audit_again(name, _check_folders(mirror))
        if encoder:
            from ..baselines.encoding.encoder_probe import probe_split

            audit["encoder"] = {"name": encoder} | probe_split(name, encoder, _check_folders(mirror))
    if json:
        emit_json(audit | {"agrees_with_published": agrees})
    else:
        print_record(audit | {"agrees with the published one": agrees})
    exit_if(not (audit["holds"] and agrees))


@command(app, "diff")
def splits_diff(old: str, new: str, mirror: list[Path] | None = None, json: bool = False) -> None:
    """Show which rows moved between two versions of a split, and what else changed.

    old SPLIT: Earlier version, such as arc_agi/version_2@1.
    new SPLIT: Later version, or another split of the same source.
    """
    from ..loaders.freezing.diff import diff_manifests
    from ..splits.catalogue import find_manifest

    with show_progress():
        difference = diff_manifests(find_manifest(old), find_manifest(new), _check_folders(mirror))
    if json:
        return emit_json(difference)
    print_line(
        f"{difference['old']} -> {difference['new']}: "
        f"{'the same rows' if difference['same_identity'] else 'different identities'}"
    )
    for pair, item in difference["moved"].items():
        print_line(f"  {format_count(item['rows'], 'row')} moved {pair} (first {', '.join(item['first'])})")
    for key in ("added", "removed", "changed", "weight", "group", "severity", "label"):
        if difference[key]["rows"]:
            print_line(
                f"  {format_count(difference[key]['rows'], 'row')}: {key} (first {', '.join(difference[key]['first'])})"
            )
    for key, (before, after) in difference["said"].items():
        print_line(f"  {key}: {before} -> {after}")


@command(app, "build")
def splits_build(files: list[Path], out: Path = Path("splits/manifests"), json: bool = False) -> None:
    """Build frozen splits from drafts: rows, digests, audit and identity.

    A split that does not have the shift that it claims is refused and not written; the others are written, and the exit
    code is 1. A split that is already frozen is only audited again.

    files FILE...: Draft (TOML): a split definition without parts and identity, or a family of splits.
    --out DIR: Output folder; each split is written to <source>/<split>/v<N>/ in it.
    """
    from ..loaders.freezing.freeze import freeze_each, read_drafts
    from ._own_benchmark import DraftedBenchmarks

    with show_progress():
        drafted = [(draft, file) for file in files for draft in read_drafts(file)]
        benchmarks = DraftedBenchmarks(out.resolve().parent.parent)
        frozen, refused = freeze_each(drafted, out, benchmarks)
    if refused and len(drafted) == 1:
        raise refused[0]
    if json:
        emit_json(frozen if len(drafted) > 1 else frozen[0])
    else:
        for item in frozen:
            print_line(f"{item['split']} frozen in {item['folder']}: identity {item['identity']}")
            print_line(f"audit: {item['audit']['why']}")
        for path in benchmarks.paths:
            print_line(f"benchmark: {os.path.relpath(path)}")
        if frozen:
            _print_home_hint(out.absolute())
    for error in refused:
        print_error(str(error))
    exit_if(bool(refused))


@command(app, "export")
def splits_export(
    name: str | None = None,
    *,
    benchmark: str = "",
    part: str,
    to: str,
    out: Path,
    shard_bytes: str | None = None,
    mirror: list[Path] | None = None,
    offline: bool = False,
    json: bool = False,
) -> None:
    """Export one part of a split or benchmark, verified, in another format.

    name SPLIT: Split name, such as scan/length, or a version, such as scan/length@1.
    --benchmark BENCHMARK: Benchmark name, instead of SPLIT: the rows that its protocol uses, less those that it holds
        out of the part.
    --part PART: Part: train, id_test, ood_test ..
    --to FORMAT: Format: parquet (one file) or webdataset (a folder of shards).
    --out PATH: Output file (parquet) or new folder (webdataset).
    --shard-bytes N: Maximum size of a shard, such as 64MB (default: 256MiB).
    """
    from ..benchmarks.benchmark import find_benchmark, load_benchmarks
    from ..loaders.export import export_part
    from ..loaders.split import open_split

    if bool(name) == bool(benchmark):
        raise FarshiftError("splits export: name a split, or a benchmark (--benchmark NAME)")
    if benchmark and mirror:
        raise FarshiftError("splits export: --mirror goes with a split: farshift splits pull SPLIT --mirror DIR first")
    forbid_network(offline)
    with show_progress():
        if benchmark:
            done = export_part(lambda: find_benchmark(benchmark).load(part), to, out, shard_bytes)
        else:
            folders = _check_folders(mirror)
            done = export_part(lambda: open_split(str(name), folders).part(part), to, out, shard_bytes)
            holding = [item.name for item in load_benchmarks().values() if item.holds_out_of(done["split"], part)]
            if holding:
                print_note(
                    f"the benchmark {holding[0]} holds rows out of {part}: --benchmark {holding[0]} exports the rows "
                    "that its protocol uses"
                )
    rows, files = format_count(done["rows"], "row"), format_count(len(done["files"]), "file")
    size = f"{rows} in {done['out']}, {files}, {done['bytes']:,} bytes"
    print_result(json, done, f"{done['split']}, {done['part']}: {size}")


def _print_home_hint(out: Path) -> None:
    """After writing splits into a folder that FARSHIFT_PATH does not name, print how to load them by name."""
    from ..core.plugins import list_plugin_folders

    if out.parts[-2:] == ("splits", "manifests"):
        home = out.parent.parent
        if not any(home.samefile(known) for known in list_plugin_folders()):
            print_line(f"found by name once FARSHIFT_PATH names {home}")


def _check_folders(named: list[Path] | None, option: str = "--mirror") -> tuple[Path, ...]:
    for folder in named or ():
        if not folder.is_dir():
            raise FarshiftError(f"{option}: {folder} is not a folder")
    return tuple(named or ())


def _resolve_names(names: list[str] | None, all_: bool) -> list[str]:
    from ..splits.catalogue import list_manifests

    if bool(names) == all_:
        raise FarshiftError("name one or more splits, or give --all")
    return names or [manifest.full_name for manifest in list_manifests() if manifest.frozen]
