"""A claim that takes no time: four steps of one network, whose test score is at chance."""

from __future__ import annotations

from typing import Any

from farshift.benchmarks.claims.claim import Claim

SMALL: dict[str, Any] = {
    "name": "small",
    "title": "Nothing is learnt in four steps",
    "kind": "corrupted-label",
    "citation": "None",
    "cost": {"cpu_minutes": 1},
    "published": {"test": {"value": 0.01, "mark": "seen", "where": "here"}},
    "runs": {"network": {"recipe": "mlp", "on": "modadd97/xi35", "steps": 4, "seeds": 2}},
    "quantities": {
        "test": {"sort": "score", "run": "network", "view": "id"},
        "memorised": {"sort": "score", "run": "network", "view": "memorised"},
    },
    "rules": [{"shape": "at_most", "quantity": "test", "limit": 0.1}],
}


def made(**changes: Any) -> Claim:
    """The claim with other tables."""
    return Claim.model_validate(SMALL | changes)
