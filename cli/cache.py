"""`farshift cache`: one short function per command."""

from __future__ import annotations

from typing import Annotated, Any, Optional

import typer

from ..core.listings.plural import counted
from .terminal import Json, emit_json, exit_if, line, prose, table, watched

app = typer.Typer(help="The local cache: list, verify, clear.", no_args_is_help=True)


@app.command("list")
def cache_list(json: Json = False) -> None:
    """List the contents of the cache, least recently used first."""
    from ..loaders.cache.contents import contents
    from ..loaders.cache.limit import size_in_words

    found = contents()
    if json:
        return emit_json(found)
    rows = [[e["kind"], e["name"], size_in_words(e["bytes"]), _moment(e["last_used"])] for e in found["entries"]]
    if rows:
        table("", ["kind", "entry", "size", "last used (UTC)"], rows)
    responses = found["kinds"]["responses"]
    if responses["entries"]:
        line(f"responses of language models: {responses['entries']:,}, {size_in_words(responses['bytes'])}")
    limit = (
        f"limit {size_in_words(found['limit'])}" if found["limit"] else "no limit (FARSHIFT_CACHE_LIMIT=10GB sets one)"
    )
    prose(f"{found['cache']}: {size_in_words(found['bytes'])}, {limit}")


@app.command("verify")
def cache_verify(json: Json = False) -> None:
    """Hash every file and compare it with the stored digest. Exit code 1 if one differs."""
    from ..core.files import cache_root
    from ..loaders.cache.contents import verify

    with watched():
        found = verify()
    wrong = [verdict for verdict in found if not verdict.holds]
    busy = sum(verdict.state == "busy" for verdict in found)
    if json:
        emit_json({"cache": str(cache_root()), "verified": not wrong, "files": [verdict.__dict__ for verdict in found]})
    else:
        for verdict in wrong:
            line(f"{verdict.state}: {verdict.path}; {verdict.advice}")
        passed_over = f", {busy} being written" if busy else ""
        line(f"{cache_root()}: {len(found) - len(wrong) - busy} of {counted(len(found), 'file')} intact{passed_over}")
    exit_if(bool(wrong))


@app.command("clear")
def cache_clear(
    older_than: Annotated[
        Optional[float],  # noqa: UP045  (typer reads the annotation at run time)
        typer.Option(
            "--older-than", metavar="DAYS", help="Only entries that were last used more than this many days ago."
        ),
    ] = None,
    kind: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--kind",
            metavar="K",
            help="files, trees, sources, splits, handouts, pictures, features, responses or quarantine. May be "
            "repeated.",
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Everything, including responses.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what would be removed, without removing it.")
    ] = False,
    json: Json = False,
) -> None:
    """Remove cached data. Entries in use are kept; everything except responses is rebuilt when needed."""
    from ..core.files import cache_root
    from ..loaders.cache.contents import clear, record
    from ..loaders.cache.limit import size_in_words

    cleared = clear(kind or (), older_than, all_, dry_run)
    if json:
        left: list[dict[str, Any]] = [record(entry) | {"why": why} for entry, why in cleared.left]
        removed = [record(entry) for entry in cleared.removed]
        return emit_json({"dry_run": dry_run, "bytes": cleared.bytes, "removed": removed, "left": left})
    done = "would be removed" if dry_run else "removed"
    for entry in cleared.removed:
        line(f"{done}: {entry.kind}/{entry.name}, {size_in_words(entry.bytes)}")
    for entry, why in cleared.left:
        line(f"left: {entry.kind}/{entry.name}: {why}")
    entries = counted(len(cleared.removed), "entry", "entries")
    line(f"{cache_root()}: {entries}, {size_in_words(cleared.bytes)} {done}")


def _moment(text: str) -> str:
    return text.replace("T", " ").removesuffix("Z")
