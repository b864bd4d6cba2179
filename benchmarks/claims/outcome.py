"""What came of checking a claim, as a record: verdict, values, runs, environment; and the records that ship.

`baselines/claims/results/CLAIM/verdict.json` is the record of a full reproduction. Beside it, one folder a run, lie the
predictions that it was judged by, kept as those of recorded baselines are: `farshift reproduce CLAIM --rescore` judges
them again. A record holds the identity of what decides the claim's verdict: it is not taken for another rule.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ...core.errors import BadRun, first_line
from ...core.files import write_atomically
from ...core.plugins import PACKAGE
from .claim import Claim
from .measured import Measured

FORMAT = 1

HOME = PACKAGE / "baselines" / "claims" / "results"

Verdict = Literal["reproduced", "not reproduced", "inconclusive", "comparison"]


@dataclass(frozen=True)
class Judged:
    """What one rule says, in words."""

    rule: str
    verdict: Verdict
    reason: str

    def to_dict(self) -> dict[str, str]:
        """Plain JSON."""
        return dict(self.__dict__)


@dataclass(frozen=True)
class Outcome:
    """What came of a claim. form: full, quick or rescored; a quick one tells the direction only."""

    claim: str
    identity: str
    form: str
    verdict: Verdict
    reason: str
    premises: tuple[Judged, ...]
    rules: tuple[Judged, ...]
    quantities: Mapping[str, Measured]
    runs: Mapping[str, Mapping[str, Any]]
    environment: Mapping[str, str]
    date: str
    seconds: float
    quick: Mapping[str, Any] = field(default_factory=dict)
    """Of a recorded outcome: what its quick form came to."""

    @property
    def holds(self) -> bool:
        """Whether no rule failed."""
        return all(one.verdict != "not reproduced" for one in self.rules)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "format": FORMAT,
            "claim": self.claim,
            "identity": self.identity,
            "form": self.form,
            "verdict": self.verdict,
            "reason": self.reason,
            "premises": [one.to_dict() for one in self.premises],
            "rules": [one.to_dict() for one in self.rules],
            "quantities": {name: one.to_dict() for name, one in self.quantities.items()},
            "runs": {name: dict(one) for name, one in self.runs.items()},
            "environment": dict(self.environment),
            "date": self.date,
            "seconds": self.seconds,
            "quick": dict(self.quick),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Outcome:
        """What `to_dict` wrote; `KeyError` or `TypeError` where it is something else."""
        if record["format"] != FORMAT:
            raise KeyError(f"format {record['format']!r}")
        made = ("premises", "rules", "quantities")
        plain = {name: record[name] for name in cls.__dataclass_fields__ if name not in made}
        return cls(
            **plain,
            premises=tuple(Judged(**one) for one in record["premises"]),
            rules=tuple(Judged(**one) for one in record["rules"]),
            quantities={name: Measured.from_dict(one) for name, one in record["quantities"].items()},
        )


def place(claim: str, home: Path = HOME) -> Path:
    """The file of a claim's recorded outcome."""
    return home / claim / "verdict.json"


def recorded_outcome(claim: Claim, home: Path = HOME) -> Outcome | None:
    """The recorded outcome of a claim as it is now; None where there is none. `BadRun` where it cannot be read."""
    file = place(claim.name, home)
    if not file.is_file():
        return None
    try:
        found = Outcome.from_dict(json.loads(file.read_bytes()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadRun(f"{file} is no recorded outcome of a claim: {first_line(error)}") from error
    return found if found.identity == claim.identity else None


def write(found: Outcome, home: Path = HOME) -> Path:
    """Store an outcome as the recorded one."""
    file = place(found.claim, home)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, (json.dumps(found.to_dict(), indent=1, ensure_ascii=False) + "\n").encode())
    return file
