"""The terms of a window, the board's commitment, and the state of a window in the ledger.

The records of a window, in order:

    window_opened    window, benchmark, split, manifest, closes, cipher, reveals; commitment; rows and digest of the
                     draw's inputs; canary; files: the draw and its profile
    submitted        window, submission (sha256 of the answers' zip), team, note, model, signed_by (the team's public
                     key), entries (none); files; received: when a server received the answers, which it checks later
    scored           window, submission, team, model; files
    seed_revealed    window, seed: the board's secret, with which the window is closed
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from ...core.canonical import to_canonical_json
from ...core.errors import FarshiftError, SubmissionRejected, UnknownName
from ..ledger.record import Record

SEED_BYTES = 32


@dataclass(frozen=True)
class Terms:
    """The announced terms of a window, fixed before the draw. `closes`, and `reveals`, the deadline of the reveal: UTC,
    ISO 8601. `cipher`: the algorithm that generates its rows from the seed."""

    window: str
    benchmark: str
    split: str
    manifest: str
    closes: str
    cipher: str
    reveals: str

    def commitment(self, secret: bytes) -> str:
        """sha256 over the board's secret (32 bytes) and the canonical JSON of these terms: benchmark, manifest
        identity, window. It binds the board to the secret, and hides it because the secret has 256 bits of entropy."""
        return sha256(secret + to_canonical_json(self.record())).hexdigest()

    def record(self) -> dict[str, str]:
        """Return the terms as in the ledger."""
        return asdict(self)

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Terms:
        """Read the terms from a record's body. Raises `KeyError` for a missing term."""
        return cls(**{term.name: str(body[term.name]) for term in fields(cls)})


@dataclass
class Window:
    """A window, read from the ledger. `opened`: the body of its first record; `answers`, `scores`: the bodies of its
    submitted and scored records, by the digest of the submission; `times`: when the board received each; `when`: the
    time of the first record of each other kind; `secret`: the board's, once it is revealed."""

    terms: Terms
    opened: dict[str, Any]
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    times: dict[str, str] = field(default_factory=dict)
    scores: dict[str, dict[str, Any]] = field(default_factory=dict)
    secret: bytes | None = None
    when: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.terms.window

    @property
    def commitment(self) -> str:
        return str(self.opened["commitment"])

    @property
    def ends(self) -> datetime:
        """The closing time."""
        return parse_time(self.terms.closes)

    def state(self, now: datetime) -> str:
        """open, due (past its closing time, not revealed), or revealed."""
        if self.secret is not None:
            return "revealed"
        return "open" if now < self.ends else "due"


def read_windows(records: Iterable[Record]) -> dict[str, Window]:
    """Every window of a ledger by name, in ledger order. Raises `FarshiftError` for invalid records."""
    windows: dict[str, Window] = {}
    for record in records:
        try:
            _apply_record(windows, record)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FarshiftError(f"record {record.seq} ({record.kind}) has missing or invalid fields") from error
    return windows


def _apply_record(windows: dict[str, Window], record: Record) -> None:
    body = record.body
    if record.kind == "window_opened":
        windows.setdefault(body["window"], Window(Terms.of(body), body | {"commitment": body["commitment"]}))
    if record.kind not in ("window_opened", "submitted", "scored", "seed_revealed") or "window" not in body:
        return  # an ordinary submission or score
    window = windows[body["window"]]
    if record.kind == "submitted":
        window.answers[body["submission"]] = body
        window.times[body["submission"]] = str(body.get("received", record.time))
        return
    window.when.setdefault(record.kind, record.time)
    if record.kind == "scored":
        window.scores[body["submission"]] = body
    elif record.kind == "seed_revealed":
        window.secret = bytes.fromhex(body["seed"])


def find_window(records: Iterable[Record], name: str) -> Window:
    """The window with this name, or the latest window of the benchmark with this name."""
    every = read_windows(records)
    if name in every:
        return every[name]
    of_benchmark = [window for window in every.values() if window.terms.benchmark == name]
    if not of_benchmark:
        raise UnknownName("window", name, every, "(farshift board sealed list lists them)")
    return of_benchmark[-1]


def make_answers_owner(window: str, owner: str) -> str:
    """The owner, in a server's queue, of a team's answers to a window: they wait and count apart from its other
    submissions."""
    return f"window {window}, {owner}"


def find_answered_window(owner: str) -> str:
    """The window of the answers of such an owner; empty for other submissions."""
    return owner.removeprefix("window ").partition(", ")[0] if owner.startswith("window ") else ""


_FILES = {
    "card": "draw/draw.toml",
    "inputs": "draw/inputs.parquet",
    "profile": "profile.json",
    "answers": "answers/{}.zip",
    "score": "scores/{}.json",
}


def get_window_path(window: str, file: str, digest: str = "") -> str:
    """The path of a window's file in the folder of a board, or of an export of a board: its card, inputs or profile, or
    the answers or the score of the submission with a digest."""
    return f"sealed/{window}/{_FILES[file].format(digest)}"


Clock = Callable[[], datetime]


def get_utc_time() -> datetime:
    return datetime.now(UTC)


def require_open(window: Window, at: datetime) -> None:
    """Raise `SubmissionRejected` unless a window accepts answers that arrived at this time."""
    if window.state(at) != "open":
        raise SubmissionRejected(f"window {window.name} is closed: it accepted answers until {window.terms.closes}")


def parse_time(text: str) -> datetime:
    """Parse an ISO 8601 time, UTC if it names no zone; `FarshiftError` for anything else."""
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise FarshiftError(f"{text[:60]!r} is not a time: write it as 2026-12-01 or 2026-12-01T18:00:00Z") from error
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return time.replace(microsecond=0)


def format_time(time: datetime) -> str:
    """Format a time as in the ledger's records."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
