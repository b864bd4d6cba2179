"""What a window says, what the board commits to, and where a window stands by the ledger's records.

The records of a window, in their order:

    seed_committed   window, benchmark, split, manifest, opens, closes, cipher; commitment
    window_opened    window; rows and digest of the draw's inputs; canary; files: the draw and its profile
    submitted        window, submission (sha256 of the answers' zip), team, note, model, team_key, entries (none); files
    window_closed    window
    scored           window, submission, team, model; files
    seed_revealed    window, seed
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Protocol

from ...core.canonical import canonical_json
from ...core.errors import FarshiftError, UnknownName

SEED_BYTES = 32

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


class Recorded(Protocol):
    """What is read of a ledger's record."""

    @property
    def seq(self) -> int: ...
    @property
    def time(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def body(self) -> dict[str, Any]: ...


def moment(text: str) -> datetime:
    """A time as people write it, ISO 8601, UTC where it names no zone; `FarshiftError` for anything else."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise FarshiftError(f"{text[:60]!r} is not a time: write it as 2026-12-01 or 2026-12-01T18:00:00Z") from error
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    return found.replace(microsecond=0)


def stamp(time: datetime) -> str:
    """A time as the records write it."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Terms:
    """What is announced of a window before anything is drawn. `opens` and `closes`: UTC, ISO 8601. `cipher`: what draws
    its rows from the seed."""

    window: str
    benchmark: str
    split: str
    manifest: str
    opens: str
    closes: str
    cipher: str

    def commitment(self, seed: bytes) -> str:
        """sha256 over the secret seed (32 bytes) and the canonical JSON of these terms: benchmark, manifest identity,
        window. It binds the board to the seed and, for want of 256 bits of it, hides it."""
        return sha256(seed + canonical_json(self.record())).hexdigest()

    def record(self) -> dict[str, str]:
        return asdict(self)

    @classmethod
    def of(cls, body: dict[str, Any]) -> Terms:
        return cls(*(str(body[name]) for name in cls.__dataclass_fields__))


@dataclass
class Window:
    """A window as the ledger has it. `answers`, `scores`: the bodies of its submitted and scored records, by the
    digest of the answers; `times`: when the ledger took each."""

    terms: Terms
    commitment: str
    opened: dict[str, Any] | None = None
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    times: dict[str, str] = field(default_factory=dict)
    closed: dict[str, Any] | None = None
    scores: dict[str, dict[str, Any]] = field(default_factory=dict)
    seed: bytes | None = None

    @property
    def name(self) -> str:
        return self.terms.window

    def state(self, now: datetime) -> str:
        """committed, announced, open, due (its time is over, nothing is revealed yet), or revealed."""
        if self.seed is not None:
            return "revealed"
        if self.closed is not None:
            return "due"
        if self.opened is None:
            return "committed"
        if now < moment(self.terms.opens):
            return "announced"
        return "open" if now < moment(self.terms.closes) else "due"


def windows(records: Iterable[Recorded]) -> dict[str, Window]:
    """Every window of a ledger, in its order, by name. `FarshiftError` for records that no board writes."""
    found: dict[str, Window] = {}
    for record in records:
        try:
            _take(found, record)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FarshiftError(f"record {record.seq} ({record.kind}) lacks what a window's record has") from error
    return found


def _take(found: dict[str, Window], record: Recorded) -> None:
    body = record.body
    if record.kind == "seed_committed":
        terms = Terms.of(body)
        found.setdefault(terms.window, Window(terms, body["commitment"]))
        return
    if record.kind not in ("window_opened", "submitted", "window_closed", "scored", "seed_revealed"):
        return
    if "window" not in body:  # an ordinary submission or score
        return
    window = found[body["window"]]
    if record.kind == "window_opened":
        window.opened = body
    elif record.kind == "submitted":
        window.answers[body["submission"]] = body
        window.times[body["submission"]] = record.time
    elif record.kind == "window_closed":
        window.closed = body
    elif record.kind == "scored":
        window.scores[body["submission"]] = body
    else:
        window.seed = bytes.fromhex(body["seed"])


def find_window(records: Iterable[Recorded], name: str) -> Window:
    """The window of this name, or the latest of a benchmark of this name."""
    every = windows(records)
    if name in every:
        return every[name]
    of_benchmark = [window for window in every.values() if window.terms.benchmark == name]
    if not of_benchmark:
        raise UnknownName("window", name, every, "(farshift board windows lists them)")
    return of_benchmark[-1]


def team_id(team: str) -> str:
    """A team's name as it counts: without regard to case, width and spaces."""
    return " ".join(unicodedata.normalize("NFKC", team).casefold().split())


@dataclass(frozen=True)
class Places:
    """Where the files of a window lie in the folder of a board, or of an export of one, by their names there."""

    window: str

    @property
    def card(self) -> str:
        return f"sealed/{self.window}/draw/draw.toml"

    @property
    def inputs(self) -> str:
        return f"sealed/{self.window}/draw/inputs.parquet"

    @property
    def profile(self) -> str:
        return f"sealed/{self.window}/profile.json"

    def answers(self, digest: str) -> str:
        return f"sealed/{self.window}/answers/{digest}.zip"

    def score(self, digest: str) -> str:
        return f"sealed/{self.window}/scores/{digest}.json"
