"""Challenges as the ledger has them: a second run of an entry's model, and the replies to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .entries import Body, Hex16, Hex64
from .ledger import Record


class ChallengeBody(Body):
    """What the record of a challenge has at least."""

    challenge: str = Hex16
    entry: str = Hex16
    team: str
    reason: str
    submission: str = Hex64
    score: dict[str, Any]
    difference: dict[str, Any]


@dataclass(frozen=True)
class Challenge:
    """A challenge: against which entry, by whom, why, the score of the second run, and the replies."""

    challenge: str
    entry: str
    team: str
    reason: str
    time: str
    submission: str
    score: dict[str, Any]
    difference: dict[str, Any]
    answers: tuple[dict[str, str], ...]

    def record(self) -> dict[str, Any]:
        """Plain JSON."""
        return {**self.__dict__, "answers": list(self.answers)}


def read_challenges(records: Iterable[Record]) -> list[Challenge]:
    """Every challenge, in the ledger's order, with its replies."""
    found = [record for record in records if record.kind == "challenged"]
    replies: dict[str, list[dict[str, str]]] = {}
    for record in found:
        if "answers" in record.body:
            reply = {"by": record.body["by"], "note": record.body["note"], "time": record.time}
            replies.setdefault(record.body["answers"], []).append(reply)
    return [
        Challenge(
            **{name: record.body[name] for name in ChallengeBody.model_fields},
            time=record.time,
            answers=tuple(replies.get(record.body["challenge"], ())),
        )
        for record in found
        if "challenge" in record.body
    ]


def challenge_path(digest: str) -> str:
    """Where a board keeps a challenge's file."""
    return f"challenges/{digest}.zip"
