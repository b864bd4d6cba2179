"""Submissions made of parts that may be wrong, with digests that fit unless they are meant not to."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import tomli_w
from farshift.benchmarks.runs.run import Run, compute_card_digest
from fuzz.raw_zip import Entry, written


@dataclass
class Parts:
    """A submission of one run before it is packed: its card, the run's card (or the text of either) and the bytes of
    the predictions. `entries` are further entries, `method` how all are packed."""

    card: dict[str, Any] | bytes
    run: dict[str, Any] | bytes
    predictions: bytes
    method: int = 0
    entries: list[Entry] = field(default_factory=list)

    def signed(self) -> Parts:
        """The same with digests that fit, where the cards still have places for them."""
        if isinstance(self.run, dict) and isinstance(self.run.get("digests"), dict):
            digests = {"predictions": sha256(self.predictions).hexdigest()}
            self.run = self.run | {"digests": digests}
            try:
                self.run["digests"]["run"] = compute_card_digest(self.run)
            except (TypeError, ValueError, RecursionError):  # a date, NaN, a deep nest: nothing that can be signed
                self.run["digests"]["run"] = "0" * 64
            runs = self.card.get("runs") if isinstance(self.card, dict) else None
            if isinstance(runs, list) and runs and isinstance(runs[0], dict):
                listed = runs[0] | {"run": self.run["digests"]["run"], "predictions": digests["predictions"]}
                self.card = self.card | {"runs": [listed, *runs[1:]]}
        return self

    def listed(self) -> list[Entry]:
        """The entries of the zip."""
        return [
            Entry("submission.toml", _text(self.card), self.method),
            Entry("runs/0.toml", _text(self.run), self.method),
            Entry("predictions/0.parquet", self.predictions, self.method),
            *self.entries,
        ]

    def packed(self) -> bytes:
        return written(self.listed())


def _text(card: dict[str, Any] | bytes) -> bytes:
    return card if isinstance(card, bytes) else tomli_w.dumps(card).encode("utf-8", "surrogatepass")


def parts(run: Run) -> Parts:
    """The parts of a good submission of one run."""
    name = {"benchmark": run.benchmark, "model": run.model}
    card = {
        "format": 2,
        "name": "",
        "team": "",
        "note": "",
        "model": {"training_data": ["unknown"], "pretraining": ["unknown"]},
        "runs": [name | {"run": run.digest, "predictions": run.card.digests.predictions}],
    }
    return Parts(card, run.card.to_dict(), (run.path / "predictions.parquet").read_bytes())


def repack(archive: Path, out: Path, name: str, change: Callable[[bytes], bytes]) -> Path:
    """The same zip with one of its files changed, packed as a stranger might."""
    with zipfile.ZipFile(archive) as before, zipfile.ZipFile(out, "w") as after:
        for entry in before.namelist():
            content = before.read(entry)
            after.writestr(zipfile.ZipInfo(entry, (1980, 1, 1, 0, 0, 0)), change(content) if entry == name else content)
    return out
