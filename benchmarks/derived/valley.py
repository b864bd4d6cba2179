"""The generalisation valley and its critical complexity, at which the gap is largest.

With in-distribution and out-of-distribution rows at the same levels of complexity, the gap ID - OOD first grows with
complexity and then shrinks, as the in-distribution score falls too; the level of its peak is the critical complexity
(Qi et al., "Quantifying Generalization Complexity for Large Language Models", ICLR 2025). Unlike in the paper, negative
gaps are not clipped at zero, which would bias every level with a small true gap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any

from ..statistics.interval import Estimate, NotAvailable, Record, estimate_gap
from ..statistics.sample import Sample

FEWEST = 3
"""The minimum number of levels: the peak, and one on each side of it."""


@dataclass(frozen=True)
class Valley(Record):
    """The gap at each level, ascending, and the level of the largest gap.

    `peak`: the level of the largest gap, ties to the lowest; None with fewer than three levels.
    `resolved`: whether the interval of its gap is above those of all other levels. Disjoint 95 % intervals are a
    stricter criterion than a 95 % test of the difference, which compensates for selecting the largest of several.
    `bracketed`: whether there are levels on both sides of the peak; if not, the true peak may be outside the range.
    `critical`: the peak if it is resolved.
    """

    gaps: Mapping[float, Estimate]
    peak: float | None
    resolved: bool
    bracketed: bool
    critical: float | NotAvailable

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON with six decimals, levels unrounded."""
        levels = [{"level": level, "gap": estimate.to_dict()} for level, estimate in self.gaps.items()]
        return {"levels": levels} | {name: item for name, item in super().to_dict().items() if name != "gaps"}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Valley:
        """What `to_dict` wrote."""
        return super().from_dict({**record, "gaps": {level["level"]: level["gap"] for level in record["levels"]}})


def find_valley(levels: Mapping[float, tuple[Sample, Sample]]) -> Valley:
    """Find the valley of a model from its ID and OOD samples at each level of complexity; higher scores are better.

    Levels at which the score or its interval is not defined are omitted."""
    measured = {level: estimate_gap(*levels[level]) for level in sorted(levels)}
    gaps = {level: estimate for level, estimate in measured.items() if not isnan(estimate.low)}
    if len(gaps) < FEWEST:
        few = NotAvailable(f"{len(gaps)} levels of complexity have a gap, but a valley requires {FEWEST}")
        return Valley(gaps, None, False, False, few)
    peak = max(gaps, key=lambda level: gaps[level].value)
    rival = max((level for level in gaps if level != peak), key=lambda level: gaps[level].high)
    resolved = gaps[peak].low > gaps[rival].high
    critical = (
        peak if resolved else NotAvailable(f"the peak at {peak:g} does not differ significantly from level {rival:g}")
    )
    return Valley(gaps, peak, resolved, min(gaps) < peak < max(gaps), critical)
