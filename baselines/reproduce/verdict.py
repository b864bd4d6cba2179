"""Apply the rule of a claim to what was measured: reproduced, not reproduced, or inconclusive, and why.

A rule holds if the whole interval is on its side, fails if the whole interval is on the other, and is inconclusive if
the interval has parts on both. A claim is reproduced if all of its rules hold, and not reproduced if one fails.
If a premise does not hold (the model did not even learn the training distribution), there is no verdict. If a claim's
setting differs from its paper's, a failed rule is shown as *another setting* (`get_stated_verdict`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import Final

from ...benchmarks.claims.claim import Equal, LowerBound, Order, Rule, Score, UpperBound, Verdict, Within
from ...benchmarks.claims.outcome import Measurement, RuleVerdict, format_measurement
from .measured import Evidence

HOLDS: Final = "reproduced"
FAILS: Final = "not reproduced"
OPEN: Final = "inconclusive"


def judge_rule(
    rule: Rule, measured: Mapping[str, Measurement], evidence: Evidence, direction: bool = False
) -> list[RuleVerdict]:
    """Judge one rule on the measured quantities. direction: only compare the values themselves, without intervals,
    which is all that a short form can do."""
    if isinstance(rule, Order):
        return [_judge_order(rule, left, right, evidence, direction) for left, right in pairwise(rule.quantities)]
    name, value = rule.quantity, measured[rule.quantity]
    published = evidence.claim.published
    if isinstance(rule, Equal):
        expected = published[rule.published].value
        same = value.known and value.value == expected
        return [RuleVerdict(f"{name} = {expected}", HOLDS if same else FAILS, f"it is {format_measurement(value)}")]
    if isinstance(rule, Within):
        middle = published[rule.published].value
        assert isinstance(middle, int | float), "the claim's schema says so"
        bounds = Bounds(f"{name} within {middle:g} ± {rule.by:g}", middle - rule.by, middle + rule.by)
    elif isinstance(rule, LowerBound):
        bounds = Bounds(f"{name} ≥ {rule.limit:g}", rule.limit)
    elif isinstance(rule, UpperBound):
        bounds = Bounds(f"{name} ≤ {rule.limit:g}", most=rule.limit)
    else:
        bounds = Bounds(f"{name} > 0", 0.0, strict=True)
    return [bounds.judge(value, direction, "it is ")]


def _judge_order(rule: Order, left: str, right: str, evidence: Evidence, direction: bool) -> RuleVerdict:
    x, y = (evidence.claim.quantities[name] for name in (left, right))
    assert isinstance(x, Score) and isinstance(y, Score), "the claim's schema says so"
    more = f" by more than {rule.by:g}" if rule.by else ""
    bounds = Bounds(f"{left} > {right}{more}", rule.by, strict=True)
    return bounds.judge(evidence.between(x, y), direction, "the difference is ")


@dataclass(frozen=True)
class Bounds:
    """From `least` to `most`; if `strict`, without `least` itself."""

    label: str
    least: float = -inf
    most: float = inf
    strict: bool = False

    def judge(self, measured: Measurement, direction: bool, begins: str) -> RuleVerdict:
        """Whether the whole interval of a quantity is inside, or none of it; with `direction`, its value only."""
        if measured.why or isinstance(measured.value, str):
            return RuleVerdict(self.label, OPEN, measured.why or f"{measured.value} is no number")
        value = float(measured.value)
        low, high = (value, value) if direction else (measured.low, measured.high)
        reason = f"{begins}{format_measurement(measured)}"
        if (low > self.least if self.strict else low >= self.least) and high <= self.most:
            return RuleVerdict(self.label, HOLDS, reason)
        if (high <= self.least if self.strict else high < self.least) or low > self.most:
            return RuleVerdict(self.label, FAILS, reason)
        return RuleVerdict(self.label, OPEN, f"{reason}: parts of the interval are on both sides")


def combine_verdicts(premises: Sequence[RuleVerdict], rules: Sequence[RuleVerdict], mark: str) -> tuple[Verdict, str]:
    """The verdict of a claim and its reason, in one line. If a premise is not met, the setting is not the claim's,
    whatever the rules say."""
    unmet = [judgement for judgement in premises if judgement.verdict != HOLDS]
    failed = [judgement for judgement in rules if judgement.verdict == FAILS]
    unclear = [judgement for judgement in rules if judgement.verdict == OPEN]
    verdict: Verdict = OPEN if unmet else FAILS if failed else OPEN if unclear else HOLDS
    reason = "; ".join(f"{judgement.rule}: {judgement.reason}" for judgement in unmet or failed or unclear or rules)
    if unmet:
        reason = f"the premise is not met: {reason}"
    if mark == "seen":
        return verdict, reason
    return "comparison", f"what is published is from memory, so no verdict; by the rule {verdict}: {reason}"
