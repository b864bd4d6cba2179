"""At which complexity does generalisation fail most? The generalisation valley and its critical complexity.

With in-distribution and out-of-distribution rows at the same levels of complexity, the gap ID - OOD first grows with
complexity and then shrinks, as the in-distribution score falls too; the level of its peak is the critical complexity
(Qi et al., "Quantifying Generalization Complexity for Large Language Models", ICLR 2025). Unlike there, a gap below
zero is kept: to cut it off would bias every level whose true gap is small.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan
from typing import Any

from ..statistics.interval import Estimate, estimate_gap
from ..statistics.not_available import KEY, NotAvailable
from ..statistics.sample import Sample

FEWEST = 3
"""A valley has a bottom and two sides."""


@dataclass(frozen=True)
class Valley:
    """The gap at each level, ascending, and the level of the largest one.

    `peak`: the level of the largest gap, the lowest of equals; None where there are fewer than three levels.
    `resolved`: whether the interval of its gap lies above those of all other levels. That two 95 % intervals do not
    meet is stricter than a 95 % test of the difference, which makes up for taking the largest of several.
    `bracketed`: whether there are levels on both sides of the peak; without, the true peak may lie further out.
    `critical`: the peak where it is resolved.
    """

    gaps: dict[float, Estimate]
    peak: float | None
    resolved: bool
    bracketed: bool
    critical: float | NotAvailable

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; six decimals, levels as they were given."""
        return {
            "levels": [{"level": level, "gap": estimate.to_dict()} for level, estimate in self.gaps.items()],
            "peak": self.peak,
            "resolved": self.resolved,
            "bracketed": self.bracketed,
            "critical": self.critical.to_dict() if isinstance(self.critical, NotAvailable) else self.critical,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Valley:
        """What `to_dict` wrote."""
        gaps = {level["level"]: Estimate.from_dict(level["gap"]) for level in record["levels"]}
        critical = record["critical"]
        critical = NotAvailable(critical[KEY]) if isinstance(critical, Mapping) else critical
        return cls(gaps, record["peak"], record["resolved"], record["bracketed"], critical)


def find_valley(levels: Mapping[float, tuple[Sample, Sample]]) -> Valley:
    """The valley of one model, from its ID and its OOD sample at each level of complexity; higher scores are better.

    Levels where the score or its interval is not defined are left out."""
    measured = {level: estimate_gap(*levels[level]) for level in sorted(levels)}
    gaps = {level: estimate for level, estimate in measured.items() if not isnan(estimate.low)}
    if len(gaps) < FEWEST:
        few = NotAvailable(f"{len(gaps)} levels of complexity have a gap: a valley needs {FEWEST}")
        return Valley(gaps, None, False, False, few)
    peak = max(gaps, key=lambda level: gaps[level].value)
    rival = max((level for level in gaps if level != peak), key=lambda level: gaps[level].high)
    resolved = gaps[peak].low > gaps[rival].high
    critical = (
        peak if resolved else NotAvailable(f"the peak at {peak:g} does not differ significantly from level {rival:g}")
    )
    return Valley(gaps, peak, resolved, min(gaps) < peak < max(gaps), critical)
