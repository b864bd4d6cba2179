"""The key of a user's team: `team/key.pem` in the user's home, with the team's name in `team.toml`."""

from __future__ import annotations

from pathlib import Path

import tomli_w

from ...core.errors import FarshiftError
from ...core.files import get_user_home, write_atomically
from ...core.plugins import read_toml
from ..ledger.keys import SigningKey, create_key
from ..validation.card import parse_team_and_model
from ..validation.problem import Problems


def create_team(name: str = "") -> tuple[SigningKey, bool]:
    """The team's key in the user's home, and whether it was just created; `name` becomes the team's name there."""
    file = _get_key_folder() / "key.pem"
    if name:
        problems = Problems()
        parse_team_and_model({"team": name}, "team --create", problems)
        problems.refuse_if_any("team --create")
    new = not file.exists()
    key = create_key(file, "team")
    if name:
        write_atomically(_get_key_folder() / "team.toml", tomli_w.dumps({"name": name}).encode())
    return key, new


def find_default_key(file: Path | None = None) -> SigningKey | None:
    """The key in `file`; by default the key in the user's home, None if there is none."""
    if file is not None:
        if not file.is_file():
            raise FarshiftError(f"{file}, the team's key, is missing: farshift team --create creates one in your home")
        return SigningKey(file, "team")
    home = _get_key_folder() / "key.pem"
    return SigningKey(home, "team") if home.exists() else None


def read_team_name() -> str:
    """The team's name in the user's home, or ""."""
    path = _get_key_folder() / "team.toml"
    return str(read_toml(path).get("name", "")) if path.is_file() else ""


def _get_key_folder() -> Path:
    return get_user_home() / "team"
