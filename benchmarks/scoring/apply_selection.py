"""All selection rules applied to one run: each rule's candidates, their scores, and their regret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..runs.run import Run
from ..selection import Rule, load_rules
from ..statistics.interval import NotAvailable, Record, estimate_gap, estimate_mean
from ..statistics.sample import Sample
from .answered_rows import Chosen, RunPredictions
from .record import Score, SelectionScore


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


@dataclass(frozen=True)
class ChosenCandidate(Record):
    """A selected candidate. candidate: its name, the setting's before the checkpoint's; settings: the setting's values,
    as on the run card; seeds: those for which it was selected."""

    candidate: str
    settings: Mapping[str, Any]
    seeds: tuple[int, ...]

    def __str__(self) -> str:
        values = ", ".join(f"{name} = {_format_value(value)}" for name, value in self.settings.items())
        seeds = f"seed{'s' if len(self.seeds) > 1 else ''} {', '.join(map(str, self.seeds))}"
        return f"{self.candidate}{f' ({values})' if values else ''} for {seeds}"


def _format_value(value: Any) -> str:
    """Format a value: numbers with four digits; `to_dict` has all digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def list_chosen_candidates(run: Run, score: Score) -> list[ChosenCandidate]:
    """List the candidates selected by the rule that a run is scored by, in their order; empty if it has only one."""
    own = score.selections.get(score.selection)
    if len(run.candidates) < 2 or not isinstance(own, SelectionScore):
        return []
    named = run.card.model.extra.get("settings", {})
    return [
        ChosenCandidate(candidate, named.get(candidate.rpartition("/")[0], {}), seeds)
        for candidate in run.candidates
        if (seeds := tuple(seed for seed in run.seeds if own.chosen[seed] == candidate))
    ]
