"""The outcome of checking a claim as a record: verdict, values, runs and environment.

`baselines/claims/results/CLAIM/verdict.json` is the record of a full reproduction. The same folder has one folder per
run with the predictions on which the verdict is based, in the format of recorded baselines: `farshift reproduce CLAIM
--rescore` evaluates them again. A record has the identity of the claim's rules, and is ignored if they have changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ...core.errors import BadRun, get_first_line
from ...core.files import write_atomically
from ...core.plugins import PACKAGE
from .claim import Claim
from .measurement import Measurement

FORMAT = 1

HOME = PACKAGE / "baselines" / "claims" / "results"

Verdict = Literal["reproduced", "not reproduced", "inconclusive", "comparison"]


@dataclass(frozen=True)
class RuleVerdict:
    """The verdict of one rule, as text."""

    rule: str
    verdict: Verdict
    reason: str

    def to_dict(self) -> dict[str, str]:
        """Plain JSON."""
        return dict(self.__dict__)


@dataclass(frozen=True)
class Outcome:
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
        return {
            "format": FORMAT,
            "claim": self.claim,
            "identity": self.identity,
            "form": self.form,
            "verdict": self.verdict,
            "reason": self.reason,
            "premises": [item.to_dict() for item in self.premises],
            "rules": [item.to_dict() for item in self.rules],
            "quantities": {name: item.to_dict() for name, item in self.quantities.items()},
            "runs": {name: dict(item) for name, item in self.runs.items()},
            "environment": dict(self.environment),
            "date": self.date,
            "seconds": self.seconds,
            "quick": dict(self.quick),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Outcome:
        """Read what `to_dict` wrote; raises `KeyError` or `TypeError` for anything else."""
        if record["format"] != FORMAT:
            raise KeyError(f"format {record['format']!r}")
        nested = ("premises", "rules", "quantities")
        plain = {name: record[name] for name in cls.__dataclass_fields__ if name not in nested}
        return cls(
            **plain,
            premises=tuple(RuleVerdict(**item) for item in record["premises"]),
            rules=tuple(RuleVerdict(**item) for item in record["rules"]),
            quantities={name: Measurement.from_dict(item) for name, item in record["quantities"].items()},
        )


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
        outcome = Outcome.from_dict(json.loads(file.read_bytes()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadRun(f"{file} is not a recorded outcome of a claim: {get_first_line(error)}") from error
    return outcome if outcome.identity == claim.identity else None


def write_outcome(outcome: Outcome, home: Path = HOME) -> Path:
    """Store an outcome as the recorded one."""
    file = get_outcome_path(outcome.claim, home)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, (json.dumps(outcome.to_dict(), indent=1, ensure_ascii=False) + "\n").encode())
    return file
