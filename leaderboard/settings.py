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
from pydantic import BaseModel, ConfigDict, Field

from ..benchmarks.benchmark import find_benchmark
from ..core.documents import read_toml
from ..core.errors import BadDefinition, UnknownName
from ..core.files import BOARD_ADVICE, write_atomically
from ..core.plugins import validate_record
from .validation.limits import SUBMISSION_BYTES

FILE = "settings.toml"
MIB = 1 << 20


class ServerSettings(BaseModel):
    """The keys of `[server]`. open: whether submissions without a token are accepted. benchmarks: those that the board
    scores; if empty, all whose data are in the cache of the machine that scores. workers: how many submissions each
    server process scores at once; 0 if `farshift board work` scores them.

    Quotas apply to a team (without a token, to an address) over the last 24 hours, and count what is still arriving.
    Scoring limits apply to one submission: seconds of all attempts together, bytes of address space, attempts before
    it fails. Limits on request bodies: the longest pause, and the lowest rate after that time."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

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


class BoardSettings(BaseModel):
    """The file. baselines: for each benchmark the model that its entries are compared with."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    baselines: dict[str, str] = {}
    server: ServerSettings = ServerSettings()


def read_board_settings(board: Path) -> BoardSettings:
    """Read the settings of the board in a folder, with defaults for missing keys. Raises `BadDefinition` for unknown
    keys, invalid values and unknown benchmarks of the server."""
    settings = validate_record(_read(board), board / FILE, BoardSettings)
    for name in settings.server.benchmarks:
        try:
            find_benchmark(name)
        except UnknownName as error:
            raise BadDefinition(f"{board / FILE}: server.benchmarks: {error}") from error
    return settings


def write_baselines(board: Path, baselines: Mapping[str, str]) -> None:
    """Write the baselines of a board to its settings."""
    settings = {**_read(board), "baselines": dict(sorted(baselines.items()))}
    write_atomically(board / FILE, tomli_w.dumps(settings).encode(), BOARD_ADVICE)


def _read(board: Path) -> dict[str, Any]:
    return read_toml(board / FILE) if (board / FILE).is_file() else {}
