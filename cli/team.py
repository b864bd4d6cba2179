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
        bool, typer.Option("--create", help="Make the key in your home (FARSHIFT_HOME). An existing key stays.")
    ] = False,
    name: Annotated[
        str, typer.Option("--name", help="With --create: the team's name, which `farshift pack` writes by default.")
    ] = "",
    json: Json = False,
) -> None:
    """Print your team's public key and its fingerprint.

    Whoever signs submissions with this key is the same team on every board."""
    from ..core.errors import FarshiftError
    from ..leaderboard.submission.team_key import create_team, find_default_key

    if create:
        return _print_key(*create_team(name), json)
    if name:
        raise FarshiftError("team: --name is given to a new key (--create)")
    key = find_default_key()
    if key is None:
        raise FarshiftError("there is no team's key here: farshift team --create makes one")
    _print_key(key, False, json)


def _print_key(key: Any, new: bool, json: bool) -> None:
    from ..leaderboard.submission.team_key import read_team_name
    from ..leaderboard.teams import compute_fingerprint

    path, public, name = Path(key.path), key.public, read_team_name()
    if json:
        record = {"key": public, "fingerprint": compute_fingerprint(public), "name": name, "file": str(path)}
        return emit_json(record)
    print_line(f"{name or 'the team'}: key {public}, fingerprint {compute_fingerprint(public)}")
    if new:
        print_line(f"The private key is {path}: back it up, keep it secret. Who has it is the team.")
