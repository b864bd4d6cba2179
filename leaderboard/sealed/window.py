"""The terms of a window, the board's commitment, and the state of a window in the ledger.

The records of a window, in order:

    seed_committed   window, benchmark, split, manifest, opens, closes, cipher; reveals; commitment
    window_opened    window; rows and digest of the draw's inputs; canary; files: the draw and its profile
    submitted        window, submission (sha256 of the answers' zip), team, note, model, signed_by (the team's public
                     key), entries (none); files; received: when a server received the answers, which it checks later
    window_closed    window
    scored           window, submission, team, model, predictions (their digest); files
    seed_revealed    window, seed: the board's secret

Windows of the first version have no `reveals`; their submissions are unsigned, one for each name (with `team_key`, the
digest of a secret), and their scores have no `predictions`. Terms of later windows may have `randomness`: public
randomness (drand's, or the entrants') that was combined with the board's secret. It is read from the window's record
`randomness`; its origin is not checked any more.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from ...core.canonical import to_canonical_json
from ...core.errors import FarshiftError, SubmissionRejected, UnknownName
from ..ledger.record import Record

SEED_BYTES = 32


@dataclass(frozen=True)
class Terms:
    """The announced terms of a window, fixed before the draw. `opens`, `closes`, and `reveals`, the deadline of the
    reveal: UTC, ISO 8601. `cipher`: the algorithm that generates its rows from the seed. `randomness`: the public
    randomness that a window of an earlier version announced, from its record; else None."""

    window: str
    benchmark: str
    split: str
    manifest: str
    opens: str
    closes: str
    cipher: str
    reveals: str = ""
    randomness: dict[str, Any] | None = None

    def commitment(self, secret: bytes) -> str:
        """sha256 over the board's secret (32 bytes) and the canonical JSON of these terms: benchmark, manifest
        identity, window. It binds the board to the secret, and hides it because the secret has 256 bits of entropy."""
        return sha256(secret + to_canonical_json(self.record())).hexdigest()

    def record(self) -> dict[str, Any]:
        """Return the terms as in the ledger, without the keys that a window of an earlier version does not have."""
        terms: dict[str, Any] = {name: getattr(self, name) for name in _ALWAYS}
        if self.reveals:
            terms["reveals"] = self.reveals
        if self.randomness is not None:
            terms["randomness"] = self.randomness
        return terms

    @classmethod
    def of(cls, body: dict[str, Any]) -> Terms:
        """Raises `KeyError` for a missing term, and `TypeError` or `ValueError` for one of the wrong type."""
        randomness = dict(body["randomness"]) if "randomness" in body else None
        window, benchmark, split, manifest, opens, closes, cipher = (str(body[name]) for name in _ALWAYS)
        reveals = str(body.get("reveals", ""))
        return cls(window, benchmark, split, manifest, opens, closes, cipher, reveals, randomness)


_ALWAYS = ("window", "benchmark", "split", "manifest", "opens", "closes", "cipher")


@dataclass
class Window:
    """A window, read from the ledger. `answers`, `scores`: the bodies of its submitted and scored records, by the
    digest of the submission; `times`: when the board received each; `when`: the time of the first record of each other
    kind; `secret`: the board's, once it is revealed; `public`: the public randomness of a window of an earlier
    version."""

    terms: Terms
    commitment: str
    public: str = ""
    opened: dict[str, Any] | None = None
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    times: dict[str, str] = field(default_factory=dict)
    closed: dict[str, Any] | None = None
    scores: dict[str, dict[str, Any]] = field(default_factory=dict)
    secret: bytes | None = None
    when: dict[str, str] = field(default_factory=dict)

    def derive_draw_seed(self, secret: bytes) -> bytes:
        """Derive the seed of the draw from the board's secret. Raises `FarshiftError` if public randomness is
        missing."""
        if self.terms.randomness is None:
            return secret
        if not self.public:
            raise FarshiftError(f"window {self.name} was never drawn: its public randomness is not in the ledger")
        purpose = "farshift: the draw of a sealed window, 1"
        public = {"purpose": purpose, "window": self.name, "randomness": self.public}
        pad = sha256(to_canonical_json(public)).digest()
        return bytes(left ^ right for left, right in zip(secret, pad, strict=True))

    @property
    def sources(self) -> str:
        """Describe the sources of randomness of the draw."""
        if self.terms.randomness is None:
            return "the board's randomness alone"
        return f"the board's secret and public randomness ({self.terms.randomness.get('source')}, not checked)"

    @property
    def name(self) -> str:
        return self.terms.window

    @property
    def ends(self) -> datetime:
        """The closing time."""
        return parse_time(self.terms.closes)

    def state(self, now: datetime) -> str:
        """committed (its sealing was interrupted), announced, open, due (closed or past its closing time, not
        revealed), or revealed."""
        if self.secret is not None:
            return "revealed"
        if self.closed is not None:
            return "due"
        if self.opened is None:
            return "committed"
        if now < parse_time(self.terms.opens):
            return "announced"
        return "open" if now < self.ends else "due"


def read_windows(records: Iterable[Record]) -> dict[str, Window]:
    """Every window of a ledger by name, in ledger order. Raises `FarshiftError` for invalid records."""
    windows_by_name: dict[str, Window] = {}
    for record in records:
        try:
            _apply_record(windows_by_name, record)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FarshiftError(f"record {record.seq} ({record.kind}) has missing or invalid fields") from error
    return windows_by_name


_KINDS = ("randomness", "window_opened", "submitted", "window_closed", "scored", "seed_revealed")


def _apply_record(windows_by_name: dict[str, Window], record: Record) -> None:
    body = record.body
    if record.kind == "seed_committed":
        terms = Terms.of(body)
        if terms.window not in windows_by_name:
            windows_by_name[terms.window] = Window(terms, body["commitment"], when={record.kind: record.time})
        return
    if record.kind not in _KINDS or "window" not in body:  # an ordinary submission or score
        return
    window = windows_by_name[body["window"]]
    if record.kind == "submitted":
        window.answers[body["submission"]] = body
        window.times[body["submission"]] = str(body.get("received", record.time))
        return
    window.when.setdefault(record.kind, record.time)
    if record.kind == "randomness":
        window.public = window.public or bytes.fromhex(body["randomness"]).hex()
    elif record.kind == "window_opened":
        window.opened = body
    elif record.kind == "window_closed":
        window.closed = body
    elif record.kind == "scored":
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


def get_team_id(body: dict[str, Any]) -> str:
    """The identity of the team of a record: the public key that signed the submission; in windows of earlier versions
    the name, without regard to case, width and spaces."""
    key = str(body.get("signed_by") or "")
    return (
        f"key {key}" if key else repr(" ".join(unicodedata.normalize("NFKC", str(body.get("team"))).casefold().split()))
    )


@dataclass(frozen=True)
class WindowPaths:
    """The paths of a window's files in the folder of a board, or of an export of a board."""

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


Clock = Callable[[], datetime]


def get_utc_time() -> datetime:
    return datetime.now(UTC)


def require_open(window: Window, at: datetime) -> None:
    """Raise `SubmissionRejected` unless a window accepts answers that arrived at this time."""
    state = window.state(at)
    if state != "open" or window.closed is not None:
        raise SubmissionRejected(
            f"window {window.name} accepts files from {window.terms.opens} to {window.terms.closes}: it is {state} now"
        )


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
