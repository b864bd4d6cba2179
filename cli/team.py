"""`farshift team`: the key that a team signs its submissions with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from .terminal import Json, emit_json, line

app = typer.Typer(help="Your team's key: who signs with it is one team on every board.", no_args_is_help=True)


@app.command("create")
def team_create(
    name: Annotated[str, typer.Option("--name", help="The team's name: pack says it where no other is given.")] = "",
    json: Json = False,
) -> None:
    """Make the team's key in your home (FARSHIFT_HOME). A key that is there stays."""
    from ..leaderboard.submission.team_key import create_team

    _tell(*create_team(name), json)


@app.command("show")
def team_show(json: Json = False) -> None:
    """Print the public key and its fingerprint."""
    from ..core.errors import FarshiftError
    from ..leaderboard.submission.team_key import default_key

    found = default_key()
    if found is None:
        raise FarshiftError("there is no team's key here: farshift team create makes one")
    _tell(found, False, json)


def _tell(key: Any, new: bool, json: bool) -> None:
    from ..leaderboard.submission.team_key import team_name
    from ..leaderboard.teams import fingerprint

    path, public, name = Path(key.path), key.public, team_name()
    if json:
        said = {"key": public, "fingerprint": fingerprint(public), "name": name, "file": str(path)}
        return emit_json(said)
    line(f"{name or 'the team'}: key {public}, fingerprint {fingerprint(public)}")
    if new:
        line(f"The private key is {path}: back it up, keep it secret. Who has it is the team.")
