"""The outcome of checking a claim as a record: verdict, values, runs and environment; and claims with their outcomes.

`baselines/claims/results/CLAIM/verdict.json` is the record of a full reproduction. The same folder has one folder per
run with the predictions on which the verdict is based, in the format of recorded baselines: `farshift reproduce CLAIM
--rescore` evaluates them again. A record has the identity of the claim's rules, and is ignored if they have changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from typing import Any, Final

from ...core.documents import read_json
from ...core.errors import BadRun, get_first_line
from ...core.files import write_atomically
from ...core.listings import has_words
from ...core.plugins import PACKAGE
from ..statistics.interval import Record
from .claim import Claim, Verdict, load_claims

Value = int | float | str

EXACT = "exact: of all rows"


@dataclass(frozen=True)
class Measurement:
    """A value, the ends of its interval (equal to the value if it is exact), and a description of the interval. `why`:
    the reason if there is no value."""

    value: Value
    low: float = nan
    high: float = nan
    interval: str = ""
    per_seed: tuple[float, ...] = ()
    why: str = ""

    @property
    def known(self) -> bool:
        return not self.why

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, six decimals."""
        if self.why:
            return {"n/a": self.why}
        if isinstance(self.value, str | int):
            return {"value": self.value, "interval": self.interval}
        rounded = {name: round(getattr(self, name), 6) for name in ("value", "low", "high")}
        seeds = {"per_seed": [round(number, 6) for number in self.per_seed]} if self.per_seed else {}
        return rounded | {"interval": self.interval} | seeds

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Measurement:
        """What `to_dict` wrote."""
        if "n/a" in record:
            return cls(nan, why=record["n/a"])
        ends = [record.get(name, record["value"]) for name in ("low", "high")]
        low, high = (float(end) if isinstance(end, int | float) else nan for end in ends)
        return cls(record["value"], low, high, record["interval"], tuple(record.get("per_seed", ())))


def make_exact(value: Value) -> Measurement:
    """Make a measurement of an exact value."""
    at = float(value) if not isinstance(value, str) else nan
    return Measurement(value, at, at, EXACT)


def format_measurement(measurement: Measurement) -> str:
    """Format a value with its interval."""
    if measurement.why:
        return f"n/a ({measurement.why})"
    if isinstance(measurement.value, str | int):
        return str(measurement.value)
    if measurement.low == measurement.high:
        return f"{measurement.value:.4g}"
    return f"{measurement.value:.3f} [{measurement.low:.3f}, {measurement.high:.3f}]"


FORMAT = 1

HOME = PACKAGE / "baselines" / "claims" / "results"

ANOTHER_SETTING: Final = "another setting"


@dataclass(frozen=True)
class RuleVerdict(Record):
    """The verdict of one rule, as text."""

    rule: str
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class Outcome(Record):
    """The outcome of checking a claim. form: full, quick or rescored; the quick form only checks the direction."""

    claim: str
    identity: str
    form: str
    verdict: Verdict
    reason: str
    premises: tuple[RuleVerdict, ...]
    rules: tuple[RuleVerdict, ...]
    quantities: Mapping[str, Measurement]
    runs: Mapping[str, Mapping[str, Any]]
    environment: Mapping[str, str]
    date: str
    seconds: float
    quick: Mapping[str, Any] = field(default_factory=dict)
    """In a recorded outcome: the result of its quick form."""

    @property
    def holds(self) -> bool:
        """Return whether no rule failed."""
        return all(rule.verdict != "not reproduced" for rule in self.rules)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"format": FORMAT} | super().to_dict()

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Outcome:
        """Read what `to_dict` wrote; raises `KeyError` or `TypeError` for anything else."""
        if record["format"] != FORMAT:
            raise KeyError(f"format {record['format']!r}")
        return super().from_dict(record)


def get_stated_verdict(claim: Claim, outcome: Outcome) -> str:
    """Return the verdict of an outcome's rules; `another setting` if they fail and the claim's setting differs from the
    paper's, which its result then does not contradict."""
    return ANOTHER_SETTING if claim.setting and outcome.verdict == "not reproduced" else outcome.verdict


def get_outcome_path(claim: str, home: Path = HOME) -> Path:
    """Return the file of a claim's recorded outcome."""
    return home / claim / "verdict.json"


def read_recorded_outcome(claim: Claim, home: Path = HOME) -> Outcome | None:
    """Return the recorded outcome of a claim; None if there is none with the claim's current identity.

    Raises `BadRun` if it cannot be read."""
    file = get_outcome_path(claim.name, home)
    if not file.is_file():
        return None
    try:
        outcome = Outcome.from_dict(read_json(file))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadRun(f"{file} is not a recorded outcome of a claim: {get_first_line(error)}") from error
    return outcome if outcome.identity == claim.identity else None


def write_outcome(outcome: Outcome, home: Path = HOME) -> Path:
    """Store an outcome as the recorded one."""
    file = get_outcome_path(outcome.claim, home)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, (json.dumps(outcome.to_dict(), indent=1, ensure_ascii=False) + "\n").encode())
    return file


NOT_RUN = "not yet run"


@dataclass(frozen=True)
class ClaimEntry:
    """A claim and its recorded outcome."""

    claim: Claim
    outcome: Outcome | None

    @property
    def verdict(self) -> str:
        return NOT_RUN if self.outcome is None else get_stated_verdict(self.claim, self.outcome)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        claim, outcome = self.claim, self.outcome
        return {
            **{name: getattr(claim, name) for name in ("name", "kind", "title")},
            "verdict": self.verdict,
            "reason": "" if outcome is None else outcome.reason,
            "mark": claim.mark,
            "citation": claim.citation,
            "cpu_minutes": claim.cost.cpu_minutes,
            "gpu_minutes": claim.cost.gpu_minutes,
            "date": None if outcome is None else outcome.date,
            **claim.model_dump(mode="json", include={"setting", "earlier", "committed_with_outcome"}),
        }


def list_claims(kind: str = "", search: str = "") -> list[ClaimEntry]:
    """Return the claims of a kind (empty: all) in whose name, title, citation or published results all words of
    `search` occur, sorted by kind and name."""
    entries = [
        ClaimEntry(item, read_recorded_outcome(item))
        for item in load_claims().values()
        if kind in ("", item.kind)
        and has_words(search, item.name, item.title, item.citation, *(paper.where for paper in item.published.values()))
    ]
    return sorted(entries, key=lambda entry: (entry.claim.kind, entry.claim.name))


def format_cost(claim: Claim) -> str:
    """Format the cost in minutes of a CPU core, and of a GPU if known."""
    cpu = f"{claim.cost.cpu_minutes:g} min"
    return cpu if claim.cost.gpu_minutes is None else f"{cpu} (GPU: {claim.cost.gpu_minutes:g} min)"
