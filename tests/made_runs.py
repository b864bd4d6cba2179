"""Three small runs: two models on one benchmark, one on another."""

from __future__ import annotations

from pathlib import Path

import farshift as fs
import models

ON = "modadd97/xi35"


def three_runs(base: Path) -> list[Path]:
    """The folders of the runs, below `base`."""
    fs.evaluate(lambda seed: models.Adder(seed, 0.1), on=ON, seeds=2, out=base / "good", name="good")
    fs.evaluate(lambda seed: models.Adder(seed, 0.4), on=ON, seeds=2, out=base / "worse", name="worse <b>")
    fs.evaluate(models.Echo(), on="scan/length", seeds=1, out=base / "echo", name="echo")
    return [base / name for name in ("good", "worse", "echo")]
