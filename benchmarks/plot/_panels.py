"""Panels of comparable scores, and their labels.

Two scores are comparable if they have the same entry identity: benchmark version, protocol with its selection rule, and
scorer. Only comparable records share a panel; the titles of two panels of one benchmark state how they differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from math import floor, log10

from ...core.errors import FarshiftError
from ...core.text import drop_version, format_count
from ..scoring.record import Score
from ..statistics.interval import Estimate, Interval


@dataclass(frozen=True)
class Panel:
    """Comparable records with one metric; `names` has a distinct name for each."""

    title: str
    records: tuple[Score, ...]
    names: tuple[str, ...]

    @property
    def percent(self) -> bool:
        return is_percent(self.records[0])

    def by(self, view: str) -> Panel:
        """Return the panel sorted by the score on `view`, best first."""
        sign = -1.0 if self.records[0].better == "higher" else 1.0
        pairs = zip(self.records, self.names, strict=True)
        ordered = sorted(pairs, key=lambda pair: (sign * get_estimate(pair[0], view).value, pair[1]))
        records, names = zip(*ordered, strict=True)
        return Panel(self.title, records, names)

    @property
    def metric(self) -> str:
        return format_metric(self.records[0])


def check_records(records: Sequence[Score]) -> Sequence[Score]:
    """Return the records unchanged; raises `FarshiftError` if there are none."""
    if not records:
        raise FarshiftError("no score records given: name at least one finished run")
    return records


def make_panels(records: Sequence[Score]) -> list[Panel]:
    """Group the records into comparable sets, in the given order.

    Raises `FarshiftError` if two records of one set are scored by different metrics."""
    sets: dict[tuple[str, str], list[Score]] = {}
    rules: dict[str, set[str]] = {}
    for record, entry in zip(records, name_entries(records), strict=True):
        sets.setdefault((entry, record.selection), []).append(record)
        rules.setdefault(record.benchmark, set()).add(record.selection)
    panel_list = []
    for (entry, rule), members in sets.items():
        for other in members:
            if other.metric != members[0].metric:
                raise FarshiftError(
                    f"{entry}: {members[0].model} is scored by {members[0].metric} and {other.model} by "
                    f"{other.metric}, but a panel has one metric: draw them separately"
                )
        title = entry if rules[members[0].benchmark] == {"last"} else f"{entry}, selected by {rule}"
        panel_list.append(
            Panel(title, tuple(members), tuple(_number_duplicates([collapse_whitespace(r.model) for r in members])))
        )
    return panel_list


def name_entries(records: Sequence[Score]) -> list[str]:
    """Return for each record its benchmark and budget, and the start of its entry identity if one benchmark, budget and
    selection rule have several identities."""
    identities: dict[tuple[str, str], set[str]] = {}
    for record in records:
        identities.setdefault((format_protocol(record), record.selection), set()).add(record.entry_identity)
    names = []
    for record in records:
        name = format_protocol(record)
        is_ambiguous = len(identities[name, record.selection]) > 1
        names.append(f"{name}, identity {record.entry_identity[:8]}" if is_ambiguous else name)
    return names


def format_protocol(record: Score) -> str:
    """Return the benchmark, and its budget if it is not the full one: `scan/length (quick, 500 steps)`."""
    budget = [] if record.budget == "full" else [record.budget]
    steps = [] if record.steps is None else [format_count(record.steps, "step")]
    return f"{record.benchmark} ({', '.join(budget + steps)})" if budget or steps else str(record.benchmark)


def _number_duplicates(names: list[str]) -> list[str]:
    """Return the names, numbered if they occur more than once: `lstm (1)`, `lstm (2)`."""
    often, used = Counter(names), set(names)
    distinct = []
    for name in names:
        if often[name] > 1:
            name = next(numbered for k in count(1) if (numbered := f"{name} ({k})") not in used)
            used.add(name)
        distinct.append(name)
    return distinct


def collapse_whitespace(text: object) -> str:
    """Return the text with every run of white space replaced by one space."""
    return " ".join(str(text).split())


def is_percent(record: Score) -> bool:
    """Return whether the primary metric lies in [0, 1] and is therefore shown in percent."""
    return list(record.bounds or ()) == [0, 1]


def format_metric(record: Score) -> str:
    """Return the primary metric with its unit and direction: `accuracy (%)`, or `rmse, lower is better`."""
    unit = " (%)" if is_percent(record) else ""
    direction = ", lower is better" if record.better == "lower" else ""
    return f"{drop_version(record.metric)}{unit}{direction}"


def get_estimate(score: Score, name: str) -> Estimate:
    """Return the estimate `name`: "id", "ood", "gap" or a view. Raises `FarshiftError` with the reason if there is
    none."""
    score_estimate = {**score.views, "id": score.id, "ood": score.ood, "gap": score.gap}.get(name)
    if isinstance(score_estimate, Estimate):
        return score_estimate
    why = "" if score_estimate is None else f": {score_estimate.reason}"
    raise FarshiftError(f"{score.model} on {score.benchmark} has no score {name!r}{why}: omit this run")


def format_estimate(score_estimate: Interval, percent: bool) -> str:
    """Format a value and its interval: `95.3 [94.1, 96.5]` in percent, else with two digits of the interval's width."""
    scale = 100 if percent else 1
    wide = score_estimate.high - score_estimate.low
    digits = 1 if percent else min(6, max(0, 1 - floor(log10(wide)))) if wide > 0 else 3
    ends = (score_estimate.value, score_estimate.low, score_estimate.high)
    value, low, high = (f"{scale * end:z.{digits}f}" for end in ends)
    return f"{value} [{low}, {high}]"


def describe_intervals(records: Sequence[Score]) -> str:
    """Describe the intervals as the records do; if the descriptions differ, name the models of each but the usual."""
    models: dict[str, list[str]] = {}
    for record in records:
        name = collapse_whitespace(record.model)
        models.setdefault(record.interval.removeprefix("[low, high]: "), []).append(f"{name} on {record.benchmark}")
    (usual, _), *others = sorted(models.items(), key=lambda item: -len(item[1]))
    if len({record.benchmark for record in records}) == 1:
        others = [(meaning, [name.rpartition(" on ")[0] for name in names]) for meaning, names in others]
    return "; ".join([usual, *(f"for {', '.join(dict.fromkeys(names))}: {meaning}" for meaning, names in others)])


def describe_incomparable(records: Sequence[Score]) -> str:
    """Return a sentence on the benchmarks whose records have several entry identities; empty if there are none."""
    identities: dict[str, set[str]] = {}
    for record in records:
        identities.setdefault(record.benchmark, set()).add(record.entry_identity)
    ambiguous = [name for name, members in identities.items() if len(members) > 1]
    return f"{', '.join(ambiguous)}: entries with different identities are not comparable." if ambiguous else ""
