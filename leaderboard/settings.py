"""How a board is shown and served: `settings.toml` in its folder, edited by the board's operator. It is not part of a
score or of the ledger.

    [baselines]
    "scan/length" = "lstm"        # the model that the entries of a benchmark are compared with

    [server]
    submissions_a_day = 20        # see `ServerSettings`
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..core.documents import read_toml
from ..core.errors import BadDefinition, shorten_list
from ..core.files import BOARD_ADVICE, write_atomically
from .validation.limits import SUBMISSION_BYTES

FILE = "settings.toml"
MIB = 1 << 20


def read_baselines(board: Path) -> dict[str, str]:
    """For each benchmark the model that its entries are compared with."""
    baselines = _read(board).get("baselines", {})
    if not isinstance(baselines, dict) or not all(isinstance(model, str) for model in baselines.values()):
        raise BadDefinition(f'{board / FILE}: [baselines] must have lines like "scan/length" = "lstm"')
    return baselines


def write_baselines(board: Path, baselines: Mapping[str, str]) -> None:
    """Write the baselines of a board to its settings."""
    settings = {**_read(board), "baselines": dict(sorted(baselines.items()))}
    write_atomically(board / FILE, tomli_w.dumps(settings).encode(), BOARD_ADVICE)


def is_open(board: Path) -> bool:
    """Whether submissions without a token are accepted, whatever else the table has."""
    server = _read(board).get("server")
    return isinstance(server, dict) and server.get("open") is True


def _read(board: Path) -> dict[str, Any]:
    return read_toml(board / FILE) if (board / FILE).is_file() else {}


class ServerSettings(BaseModel):
    """The keys of `[server]`. open: whether submissions without a token are accepted. benchmarks: those that the board
    scores; if empty, all whose data are in the cache of the machine that scores. workers: how many submissions each
    server process scores at once; 0 if `farshift board work` scores them.

    Quotas apply to a team (without a token, to an address) over the last 24 hours, and count what is still arriving.
    Scoring limits apply to one submission: seconds of all attempts together, bytes of address space, attempts before
    it fails. Limits on request bodies: the longest pause, and the lowest rate after that time."""

    model_config = ConfigDict(strict=True, frozen=True)

    open: bool = False
    benchmarks: list[str] = []
    workers: int = Field(1, ge=0)
    submissions_a_day: int = Field(20, ge=1)
    bytes_a_day: int = Field(2048 * MIB, ge=1)
    queued_at_once: int = Field(10, ge=1)
    submission_bytes: int = Field(SUBMISSION_BYTES, ge=1)
    scoring_seconds: float = Field(900.0, ge=0.01)
    scoring_bytes: int = Field(16384 * MIB, ge=1)
    attempts: int = Field(3, ge=1)
    lease_seconds: float = Field(60.0, ge=0.01)
    silence_seconds: float = Field(30.0, ge=0.01)
    slowest_bytes_a_second: int = Field(1024, ge=1)


def read_server_settings(board: Path) -> ServerSettings:
    """Read the settings of the board in a folder, with defaults for missing keys. Raises `BadDefinition` for the first
    unknown key or invalid value."""
    path, values = board / FILE, _read(board).get("server", {})
    if not isinstance(values, dict):
        raise BadDefinition(f"{path}: write [server] with lines such as submissions_a_day = 20")
    if unknown := sorted(set(values) - set(ServerSettings.model_fields)):
        names = shorten_list(sorted(ServerSettings.model_fields))
        raise BadDefinition(f"{path}: [server] has no key {unknown[0]!r}; known keys: {names}")
    try:
        return ServerSettings(**values)
    except ValidationError as error:
        first = error.errors()[0]
        raise BadDefinition(f"{path}: [server] {first['loc'][0]}: {first['msg']}") from error
