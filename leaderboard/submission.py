"""Submissions: runs packed for a board. Prediction files and a card; no code, no pickles.

A submission is a zip: `submission.toml`, and for each run `runs/<n>/run.toml` and `runs/<n>/predictions.parquet`.
The same runs always pack to the same bytes.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomli_w

from ..benchmarks.run import Run, read_run
from ..loaders.cache import write_atomically
from ..splits.errors import FarshiftError

FORMAT = 1
CARD = "submission.toml"


def pack(runs: Sequence[Run | Path | str], out: Path | str, team: str = "", note: str = "") -> Path:
    """Pack finished runs into a submission file. Refuses two runs of one model on one benchmark, budget and rule."""
    read = [run if isinstance(run, Run) else read_run(run) for run in runs]
    if not read:
        raise FarshiftError("pack: name at least one run folder")
    read.sort(key=lambda run: (run.benchmark, run.model, run.budget, run.digest))
    seen: dict[tuple[str, ...], Run] = {}
    for run in read:
        twin = seen.setdefault((run.benchmark, run.model, run.budget, run.selection), run)
        if twin is not run:
            raise FarshiftError(
                f"{twin.path} and {run.path} are both {run.model} on {run.benchmark} (budget {run.budget}): "
                "pack one of them, or evaluate one again with another --name"
            )
    card: dict[str, Any] = {
        "format": FORMAT,
        "team": team,
        "note": note,
        "runs": [{"benchmark": run.benchmark, "model": run.model, "digest": run.digest} for run in read],
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as bundle:
        _add(bundle, CARD, tomli_w.dumps(card).encode())
        for number, run in enumerate(read):
            for name in ("run.toml", "predictions.parquet"):
                _add(bundle, f"runs/{number}/{name}", (run.path / name).read_bytes())
    out = Path(out)
    write_atomically(out, buffer.getbuffer())
    return out


def _add(bundle: zipfile.ZipFile, name: str, content: bytes) -> None:
    # A fixed date and mode: the same runs give the same bytes, whoever packs them, whenever.
    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    entry.external_attr = 0o644 << 16
    bundle.writestr(entry, content)
