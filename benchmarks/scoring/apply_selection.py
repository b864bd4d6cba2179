"""All selection rules applied to one run: each rule's candidates, their scores, and their regret."""

from __future__ import annotations

from ..selection import Rule, load_rules
from ..statistics.interval import NotAvailable, estimate_gap, estimate_mean
from ..statistics.sample import Sample
from .answered_rows import Chosen, RunPredictions
from .record import SelectionScore


def score_selections(scored: RunPredictions) -> dict[str, SelectionScore | NotAvailable]:
    """Return by rule: the candidate selected for each seed, their ID, OOD and gap, and the regret: how much better the
    oracle's choice scores on the shifted rows; or the reason why the rule cannot be applied."""
    metric = scored.benchmark.metrics[0]
    listed = scored.benchmark.definition.protocol.selection
    known = {name: rule for name, rule in load_rules().items() if not rule.declared or name in listed}
    chosen: dict[str, Chosen] = {}
    scores: dict[str, SelectionScore | NotAvailable] = {}
    for name, rule in known.items():
        reason = explain_unavailable(scored, rule)
        if reason:
            scores[name] = NotAvailable(reason)
        else:
            chosen[name] = scored.choose(rule)
    measured: dict[tuple[str, ...], tuple[Sample, Sample]] = {}

    def samples(of: Chosen) -> tuple[Sample, Sample]:
        key = tuple(of.values())
        if key not in measured:  # rules often select the same candidates
            measured[key] = (scored.view("id", of).by(metric), scored.view("ood", of).by(metric))
        return measured[key]

    best = samples(chosen["oracle"])[1]
    for name, choice in chosen.items():
        id_rows, ood_rows = samples(choice)
        # Regret is positive for a loss too, where lower is better.
        regret = best.minus(ood_rows) if metric.better == "higher" else ood_rows.minus(best)
        scores[name] = SelectionScore(
            choice,
            estimate_mean(id_rows),
            estimate_mean(ood_rows),
            estimate_gap(id_rows, ood_rows),
            estimate_mean(regret),
        )
    return dict(sorted(scores.items()))


def explain_unavailable(scored: RunPredictions, rule: Rule) -> str:
    """Return why a rule cannot be applied to a run; "" if it can."""
    if reason := rule.unavailable(scored.benchmark):
        return reason
    if rule.folds is not None and rule.name not in scored.benchmark.definition.protocol.selection:
        return f"the protocol of {scored.benchmark.name} does not list it"
    if rule.part and not scored.has(scored.part_of(rule), scored.finals[0]):
        return f"the run has no predictions for {rule.part}: evaluate with this rule (--selection {rule.name})"
    return ""
