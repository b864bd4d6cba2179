"""`farshift team`: the key that a team signs its submissions with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .terminal import Json, emit_json, print_line

app = typer.Typer()


@app.command()
def team(
    create: Annotated[
        bool, typer.Option("--create", help="Create the key in FARSHIFT_HOME; an existing key is not replaced.")
    ] = False,
    name: Annotated[
        str, typer.Option("--name", help="With --create: team name, which farshift pack uses by default.")
    ] = "",
    json: Json = False,
) -> None:
    """Print your team's public key and its fingerprint.

    Boards attribute every submission signed with this key to the team."""
    from ..core.errors import FarshiftError
    from ..leaderboard.submission.pack import create_team, find_default_key

    if create:
        return _print_key(*create_team(name), json)
    if name:
        raise FarshiftError("team: --name goes with --create")
    key = find_default_key()
    if key is None:
        raise FarshiftError("no team key found: create one with farshift team --create")
    _print_key(key, False, json)


def _print_key(key: Any, new: bool, json: bool) -> None:
    from ..leaderboard.submission.pack import read_team_name
    from ..leaderboard.teams import compute_fingerprint

    path, public, name = Path(key.path), key.public, read_team_name()
    if json:
        record = {"key": public, "fingerprint": compute_fingerprint(public), "name": name, "file": str(path)}
        return emit_json(record)
    print_line(f"{name or 'your team'}: key {public}, fingerprint {compute_fingerprint(public)}")
    if new:
        print_line(f"The private key is {path}: back it up, keep it secret. Anyone who has it can submit as the team.")
