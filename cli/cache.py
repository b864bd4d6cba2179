"""`farshift cache`: one short function per command."""

from __future__ import annotations

from typing import Annotated, Any, Optional

import typer

from ..core.listings.plural import format_count
from .terminal import Json, emit_json, exit_if, print_line, print_table, print_wrapped, show_progress

app = typer.Typer(help="List, verify and clear the local cache.", no_args_is_help=True)


@app.command("list")
def cache_list(json: Json = False) -> None:
    """List the contents of the cache, least recently used first."""
    from ..loaders.cache.contents import list_contents
    from ..loaders.cache.limit import format_size

    report = list_contents()
    if json:
        return emit_json(report)
    rows = [[e["kind"], e["name"], format_size(e["bytes"]), _format_time(e["last_used"])] for e in report["entries"]]
    if rows:
        print_table("", ["kind", "entry", "size", "last used (UTC)"], rows)
    responses = report["kinds"]["responses"]
    if responses["entries"]:
        print_line(f"language model responses: {responses['entries']:,}, {format_size(responses['bytes'])}")
    limit = (
        f"limit {format_size(report['limit'])}" if report["limit"] else "no limit (FARSHIFT_CACHE_LIMIT=10GB sets one)"
    )
    print_wrapped(f"{report['cache']}: {format_size(report['bytes'])}, {limit}")


@app.command("verify")
def cache_verify(json: Json = False) -> None:
    """Verify every cached file against its stored digest.

    Exit code 1 if one differs."""
    from ..core.files import get_cache_root
    from ..loaders.cache.contents import verify_cache

    with show_progress():
        verdicts = verify_cache()
    wrong = [verdict for verdict in verdicts if not verdict.holds]
    busy = sum(verdict.state == "busy" for verdict in verdicts)
    if json:
        emit_json(
            {"cache": str(get_cache_root()), "verified": not wrong, "files": [verdict.__dict__ for verdict in verdicts]}
        )
    else:
        for verdict in wrong:
            print_line(f"{verdict.state}: {verdict.path}; {verdict.advice}")
        passed_over = f", {busy} being written" if busy else ""
        print_line(
            f"{get_cache_root()}: {len(verdicts) - len(wrong) - busy} of {format_count(len(verdicts), 'file')} "
            f"intact{passed_over}"
        )
    exit_if(bool(wrong))


@app.command("clear")
def cache_clear(
    older_than: Annotated[
        Optional[float],  # noqa: UP045  (typer reads the annotation at run time)
        typer.Option(
            "--older-than", metavar="DAYS", help="Remove only entries last used more than this many days ago."
        ),
    ] = None,
    kind: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--kind",
            metavar="KIND",
            help="Remove only this kind of entry: files (downloads), trees (downloaded folders), sources (decoded "
            "data), splits, model-inputs (without labels), images (decoded), features, tokens or "
            "responses (of language models). May be repeated.",
        ),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Remove everything, including responses of language models.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be removed without removing it.")] = False,
    json: Json = False,
) -> None:
    """Remove cached data, selected with --older-than, --kind or --all.

    Responses of language models are removed only with --kind responses or --all;
    everything else is downloaded or computed again when needed."""
    from ..core.files import get_cache_root
    from ..loaders.cache.contents import clear_cache, describe_entry
    from ..loaders.cache.limit import format_size

    cleared = clear_cache(kind or (), older_than, all_, dry_run)
    if json:
        left: list[dict[str, Any]] = [describe_entry(entry) | {"why": why} for entry, why in cleared.left]
        removed = [describe_entry(entry) for entry in cleared.removed]
        return emit_json({"dry_run": dry_run, "bytes": cleared.bytes, "removed": removed, "left": left})
    done = "would be removed" if dry_run else "removed"
    for entry in cleared.removed:
        print_line(f"{done}: {entry.label}/{entry.name}, {format_size(entry.bytes)}")
    for entry, why in cleared.left:
        print_line(f"kept: {entry.label}/{entry.name}: {why}")
    entries = format_count(len(cleared.removed), "entry", "entries")
    print_line(f"{get_cache_root()}: {entries}, {format_size(cleared.bytes)} {done}")


def _format_time(text: str) -> str:
    return text.replace("T", " ").removesuffix("Z")
