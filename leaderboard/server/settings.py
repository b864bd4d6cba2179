"""Settings of a board's server: `[server]` in its `settings.toml`, with defaults for missing keys."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from ...core.errors import BadDefinition, shorten_list
from ...core.plugins import read_toml
from ..settings import FILE
from ..validation.limits import SUBMISSION_BYTES

MIB = 1 << 20


@dataclass(frozen=True)
class ServerSettings:
    """The keys of `[server]`. open: whether submissions without a token are accepted. workers: how many submissions
    each server process scores at once; 0 if `farshift board work` scores them.

    Quotas apply to a team (without a token, to an address) over the last 24 hours; `requests_a_minute` applies to each
    token and each address. Scoring limits apply to one submission: seconds, bytes of address space, attempts before it
    fails. Limits on request bodies: the longest pause, and the lowest rate after that time."""

    open: bool = False
    workers: int = 1
    submissions_a_day: int = 20
    bytes_a_day: int = 2048 * MIB
    queued_at_once: int = 10
    submission_bytes: int = SUBMISSION_BYTES
    requests_a_minute: int = 600
    scoring_seconds: float = 900.0
    scoring_bytes: int = 16384 * MIB
    attempts: int = 3
    lease_seconds: float = 60.0
    silence_seconds: float = 30.0
    slowest_bytes_a_second: int = 1024


RETIRED = ("upload_hours",)
"""Keys of earlier versions, which are ignored."""


def read_server_settings(board: Path) -> ServerSettings:
    """Read the settings of the board in a folder. Raises `BadDefinition` for the first unknown key or invalid value."""
    path = board / FILE
    values = read_toml(path).get("server", {}) if path.is_file() else {}
    if not isinstance(values, dict):
        raise BadDefinition(f"{path}: write [server] with lines such as submissions_a_day = 20")
    known = {field.name: field.default for field in fields(ServerSettings)}
    values = {key: value for key, value in values.items() if key not in RETIRED}
    for key, value in values.items():
        if key not in known:
            raise BadDefinition(f"{path}: [server] has no key {key!r}; known keys: {shorten_list(sorted(known))}")
        default = known[key]
        kinds = (int, float) if isinstance(default, float) else (type(default),)
        least = 0 if isinstance(default, bool) or key == "workers" else 1 if isinstance(default, int) else 0.01
        if type(value) not in kinds or value < least:
            like = "true or false" if isinstance(default, bool) else f"a number, such as {default}"
            raise BadDefinition(f"{path}: [server] {key} must be {like}")
    return ServerSettings(**values)
