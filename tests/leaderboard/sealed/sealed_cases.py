"""A small benchmark of one's own to seal: coins, whose parity is asked for. And a clock that a test sets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from farshift.leaderboard.board import Board
from farshift.leaderboard.ledger.keys import SigningKey, create_key
from farshift.leaderboard.sealed.seal import seal_benchmark
from farshift.leaderboard.sealed.submit import pack_answers, predict_draw
from farshift.leaderboard.sealed.window import Window, get_window_path
from farshift.loaders.acquire.source import add_row_ids, read_source
from farshift.loaders.freezing.freeze import freeze

ON = "coins/longer"
WINDOW = "coins__longer-1"
OPENS, CLOSES = "2031-01-01T00:00:00Z", "2031-01-08T00:00:00Z"
SEED = bytes(range(32))

GENERATOR = '''
import pyarrow as pa
from farshift.core.draws import draw_bits
import numpy as np

def rows(*, seed, counts):
    """So many strings of coins for each part and length, half of either parity; every twentieth stands there twice,
    the second time with the other label."""
    found = []
    for part, lengths in sorted(counts.items()):
        for length, count in sorted((int(length), count) for length, count in lengths.items()):
            drawn = draw_bits(f"{seed}/{part}/{length}", np.arange(64 * count, dtype=np.uint64))
            seen, kept = set(), ([], [])
            for value in (drawn >> np.uint64(64 - length)).tolist():
                odd = bin(value).count("1") % 2
                if value not in seen and len(kept[odd]) < count // 2:
                    seen.add(value)
                    kept[odd].append(value)
            for place, pair in enumerate(zip(*kept)):
                for odd, value in enumerate(pair):
                    coins = " ".join("ht"[value >> at & 1] for at in range(length))
                    label = LABEL
                    found.append((coins, label, part, length))
                    if place % 10 == 0:
                        found.append((coins, 1 - label, part, length))
    columns = [list(column) for column in zip(*found)]
    return pa.table(dict(zip(("coins", "odd", "origin", "length"), columns)))
'''

HONEST = "odd"
TURNED = 'odd if seed == "coins@1" else 1 - odd'
"""Labels: of the parity; and the other way round, but for the published rows."""

SOURCE = """
name = "coins"
version = 1
title = "Coins"
licence = "Apache-2.0"
citation = "none"
{pin}
[[fields]]
name = "coins"
type = "string"
role = "input"

[[fields]]
name = "odd"
type = "int64"
role = "label"

[[fields]]
name = "origin"
type = "string"
role = "meta"

[[fields]]
name = "length"
type = "int64"
role = "meta"

[[distributions]]
name = "the generator"
generator = "coins"
options = {{ seed = "coins@1", counts = {{ train = {{ "24" = 400 }}, id = {{ "24" = 80 }}, ood = {{ "28" = 80, "32" = 80 }} }} }}
"""

SPLIT = """
name = "coins/longer"
version = 1
kind = "length"
title = "Longer rows of coins"
label = "odd"
rule = "published/parts"
source = { name = "coins" }
parameters = { field = "origin", parts = { train = "train", id = "id_test", ood = "ood_test" }, severity = "length", group = "origin" }
severity = { name = "length" }
group = { name = "origin" }
"""

BENCHMARK = """
name = "coins/longer"
split = "coins/longer@1"
title = "Parity of longer rows of coins"
task = { type = "classification", inputs = ["coins"], label = "odd", classes = 2 }
metrics = [{ name = "accuracy", version = 1 }]

[views]
id = { part = "id_test" }
ood = { part = "ood_test" }
"""


def make_home(home: Path, label: str = HONEST, rule: str = "") -> Path:
    """Lay the benchmark down in `home` and freeze its split. `FARSHIFT_PATH` must name it."""
    files = {
        "loaders/generators/coins.py": GENERATOR.replace("LABEL", label),
        "loaders/sources/coins.toml": SOURCE.format(pin=""),
        "benchmarks/definitions/coins-longer.toml": BENCHMARK,
        "draft.toml": SPLIT if not rule else SPLIT.replace("published/parts", "own/halves"),
    }
    if rule:
        files["splits/rules/own.py"] = rule
    for name, content in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(content)
    path = home / "loaders/sources/coins.toml"
    source = read_source(path)
    table, digest = add_row_ids(source.compute_rows(source.definition.distributions[0]), source.schema)
    path.write_text(SOURCE.format(pin=f'rows = {table.num_rows}\ndigest = "{digest}"\n'))
    freeze(home / "draft.toml", home / "splits" / "manifests")
    return home


class Clock:
    """A clock that stands until it is set."""

    def __init__(self, at: str) -> None:
        self.at = datetime.fromisoformat(at).astimezone(UTC)

    def __call__(self) -> datetime:
        return self.at

    def set(self, at: str, seconds: int = 0) -> None:
        self.at = datetime.fromisoformat(at).astimezone(UTC) + timedelta(seconds=seconds)

    def written(self) -> str:
        """As the ledger writes it."""
        return self.at.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Handed:
    """A draw as a board gave it out, and the answers of each team to it."""

    draw: Path
    answers: dict[str, Path]


def sealed(board: Board, clock: Clock, seed: bytes = SEED, on: str = ON) -> Window:
    return seal_benchmark(board, on, CLOSES, clock, lambda size: seed[:size])


def kinds(board: Board) -> list[str]:
    """The kinds of a board's records, in their order."""
    return [record.kind for record in board.ledger.records()]


def draw_folder(board: Board, window: Window) -> Path:
    return (board.path / get_window_path(window.name, "card")).parent


def chance(text: str, name: str) -> float:
    """A number in [0, 1) for a text."""
    return int.from_bytes(sha256(f"{name}/{text}".encode()).digest()[:8], "big") / 2**64


class Guesser:
    """Knows parity, errs on a share of rows of its own choice, and knows some rows by heart."""

    def __init__(self, seed: int, wrong: float = 0.3, known: dict[str, int] | None = None) -> None:
        self.seed, self.wrong, self.known = seed, wrong, known or {}

    def predict(self, batch: Any) -> Any:
        return np.array([self._one(text) for text in batch["coins"]])

    def _one(self, text: str) -> int:
        odd = text.count("t") % 2
        errs = chance(text, "hard") < self.wrong * 0.7 or chance(text, f"seed {self.seed}") < self.wrong * 0.3
        return self.known.get(text, 1 - odd if errs else odd)


def key_of(out: Path, team: str) -> SigningKey:
    """A team's key, made where there is none."""
    return create_key(out / f"{team}.pem", "team")


def answered(draw: Path, out: Path, team: str, known: dict[str, int] | None = None, seeds: int = 2) -> Path:
    """A team's answers to a draw, packed and signed."""
    run = predict_draw(
        lambda seed: Guesser(seed, known=known), draw, seeds=seeds, out=out / f"run-{team}", name=f"model of {team}"
    )
    return pack_answers(run, out / f"{team}.zip", draw, team, key=key_of(out, team))
