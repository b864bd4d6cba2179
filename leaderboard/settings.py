"""How a board is shown: `settings.toml` in its folder, edited by the board's operator. It is not part of a score or of
the ledger.

    [baselines]
    "scan/length" = "lstm"        # the model that the entries of a benchmark are compared with

    [server]
    submissions_a_day = 20        # server options: server/settings.py
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import tomli_w

from ..core.durable import ADVICE
from ..core.errors import BadDefinition
from ..core.files import write_atomically
from ..core.plugins import read_toml

FILE = "settings.toml"


def read_baselines(board: Path) -> dict[str, str]:
    """For each benchmark the model that its entries are compared with."""
    path = board / FILE
    baselines = read_toml(path).get("baselines", {}) if path.is_file() else {}
    if not isinstance(baselines, dict) or not all(isinstance(model, str) for model in baselines.values()):
        raise BadDefinition(f'{path}: [baselines] must have lines like "scan/length" = "lstm"')
    return baselines


def write_baselines(board: Path, baselines: Mapping[str, str]) -> None:
    """Write the baselines of a board to its settings."""
    path = board / FILE
    others = read_toml(path) if path.is_file() else {}
    settings = {**others, "baselines": dict(sorted(baselines.items()))}
    write_atomically(path, tomli_w.dumps(settings).encode(), ADVICE)
