"""Every environment variable of Farshift, and the installed version."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """The environment variables: `FARSHIFT_` and the name of a field in capitals. docs/settings.md explains each.

    A flag is set by anything but 0; lists of folders are separated as `PATH` is, licences by commas. Empty where a
    variable is not set, or has nothing but blanks."""

    cache: Path
    cache_limit: str
    home: Path
    path: list[Path]
    mirrors: list[Path]
    github: str
    offline: bool
    verify: str
    accept: list[str]
    token: str
    board_key: str
    board_store: str
    debug: bool


def read_settings() -> Settings:
    """The settings as the environment has them now."""
    text = {field.name: _read_variable(field.name) for field in fields(Settings)}
    cache_home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    data_home = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Settings(
        cache=Path(text["cache"] or f"{cache_home}/farshift").expanduser(),
        cache_limit=text["cache_limit"],
        home=Path(text["home"] or f"{data_home}/farshift").expanduser(),
        path=read_plugin_path(),
        mirrors=_split_folders(text["mirrors"]),
        github=text["github"].rstrip("/") or "https://github.com",
        offline=text["offline"] not in ("", "0"),
        verify=text["verify"] or "open",
        accept=[name.strip() for name in text["accept"].split(",")],
        token=text["token"],
        board_key=text["board_key"],
        board_store=text["board_store"],
        debug=text["debug"] not in ("", "0"),
    )


def read_plugin_path() -> list[Path]:
    """The folders that `FARSHIFT_PATH` names; asked for at every name that is looked up."""
    return _split_folders(_read_variable("path"))


def _read_variable(name: str) -> str:
    return os.environ.get(f"FARSHIFT_{name.upper()}", "").strip()


def _split_folders(text: str) -> list[Path]:
    return [Path(folder).expanduser() for folder in text.split(os.pathsep) if folder]


def get_version() -> str:
    """The installed version of Farshift."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        # None while pip is at it: a run that ends just then is not lost for it.
        return installed("farshift") or "unknown"
    except PackageNotFoundError:
        return "unknown"
