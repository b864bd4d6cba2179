"""The rule of a claim, applied to what was measured: reproduced, not reproduced, or inconclusive, and why.

A rule holds where the whole interval is on its side, fails where the whole interval is on the other, and says nothing
where the interval has parts on both. A claim is reproduced where all of its rules hold, and not where one fails.
Where a premise does not hold (the model did not even learn the training distribution), nothing is said either way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Final

from ...benchmarks.claims.claim import Equal, Least, Most, Order, Rule, Score, Within
from ...benchmarks.claims.measured import Measured, shown
from ...benchmarks.claims.outcome import Judged, Verdict
from .measured import Evidence

HOLDS: Final = "reproduced"
FAILS: Final = "not reproduced"
OPEN: Final = "inconclusive"


def judge(rule: Rule, measured: Mapping[str, Measured], evidence: Evidence, direction: bool = False) -> list[Judged]:
    """What a rule says of the measured quantities. direction: only on which side the values themselves lie, which is
    all that a short form can tell."""
    if isinstance(rule, Order):
        return [_ordered(rule, left, right, evidence, direction) for left, right in pairwise(rule.quantities)]
    name, value = rule.quantity, measured[rule.quantity]
    published = evidence.claim.published
    if isinstance(rule, Equal):
        wanted = published[rule.published].value
        same = value.known and value.value == wanted
        return [Judged(f"{name} = {wanted}", HOLDS if same else FAILS, f"it is {shown(value)}")]
    if isinstance(rule, Within):
        middle = published[rule.published].value
        assert isinstance(middle, int | float), "the claim's schema says so"
        side = Side(f"{name} within {middle:g} ± {rule.by:g}", middle - rule.by, middle + rule.by)
    elif isinstance(rule, Least):
        side = Side(f"{name} ≥ {rule.limit:g}", rule.limit)
    elif isinstance(rule, Most):
        side = Side(f"{name} ≤ {rule.limit:g}", most=rule.limit)
    else:
        side = Side(f"{name} > 0", 0.0, strict=True)
    return [side.judge(value, direction, "it is ")]


def _ordered(rule: Order, left: str, right: str, evidence: Evidence, direction: bool) -> Judged:
    x, y = (evidence.claim.quantities[name] for name in (left, right))
    assert isinstance(x, Score) and isinstance(y, Score), "the claim's schema says so"
    more = f" by more than {rule.by:g}" if rule.by else ""
    side = Side(f"{left} > {right}{more}", rule.by, strict=True)
    return side.judge(evidence.between(x, y), direction, "the difference is ")


@dataclass(frozen=True)
class Side:
    """From `least` to `most`, and where `strict` without `least` itself."""

    told: str
    least: float = -inf
    most: float = inf
    strict: bool = False

    def judge(self, found: Measured, direction: bool, begins: str) -> Judged:
        """Whether the whole interval of a quantity lies in here, or none of it; or its value alone."""
        if found.why or isinstance(found.value, str):
            return Judged(self.told, OPEN, found.why or f"{found.value} is no number")
        value = float(found.value)
        low, high = (value, value) if direction else (found.low, found.high)
        reason = f"{begins}{shown(found)}"
        if (low > self.least if self.strict else low >= self.least) and high <= self.most:
            return Judged(self.told, HOLDS, reason)
        if (high <= self.least if self.strict else high < self.least) or low > self.most:
            return Judged(self.told, FAILS, reason)
        return Judged(self.told, OPEN, f"{reason}: parts of the interval are on both sides")


def overall(premises: Sequence[Judged], rules: Sequence[Judged], mark: str) -> tuple[Verdict, str]:
    """The verdict of a claim and its reason, in one line. Where a premise is not met, whatever the rules say, the
    setting is not the claim's."""
    unmet = [one for one in premises if one.verdict != HOLDS]
    failed = [one for one in rules if one.verdict == FAILS]
    unclear = [one for one in rules if one.verdict == OPEN]
    verdict: Verdict = OPEN if unmet else FAILS if failed else OPEN if unclear else HOLDS
    reason = "; ".join(f"{one.rule}: {one.reason}" for one in unmet or failed or unclear or rules)
    if unmet:
        reason = f"the premise is not met: {reason}"
    if mark == "seen":
        return verdict, reason
    return "comparison", f"what is published is from memory, so no verdict; by the rule {verdict}: {reason}"
