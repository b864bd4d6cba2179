"""What a window says, what the board commits to, and where a window stands by the ledger's records.

The records of a window, in their order:

    seed_committed   window, benchmark, split, manifest, opens, closes, cipher; reveals; commitment
    window_opened    window; rows and digest of the draw's inputs; canary; files: the draw and its profile
    submitted        window, submission (sha256 of the answers' zip), team, note, model, signed_by (the team's public
                     key), entries (none); files
    window_closed    window
    scored           window, submission, team, model, predictions (their digest); files
    seed_revealed    window, seed: the board's secret

Windows of the first version have no `reveals`, their answers are unsigned, one of each name (with `team_key`, the
digest of a secret), and the scores have no `predictions`. Terms of later ones may have `randomness`: public randomness
(drand's, or the entrants') that joined the board's secret. It stands in a record `randomness` of the window, and is
taken from there: where it came from is not checked any more.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, Protocol

from ...core.canonical import to_canonical_json
from ...core.errors import FarshiftError, UnknownName
from .times import parse_time

SEED_BYTES = 32


class LedgerRecord(Protocol):
    """What is read of a ledger's record."""

    @property
    def seq(self) -> int: ...
    @property
    def time(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def body(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Terms:
    """What is announced of a window before anything is drawn. `opens`, `closes`, and `reveals`, the deadline of the
    reveal: UTC, ISO 8601. `cipher`: what draws its rows from the seed. `randomness`: what a window of an earlier
    version announced of public randomness, as its record has it; None where there is none."""

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
        identity, window. It binds the board to the secret and, for want of 256 bits of it, hides it."""
        return sha256(secret + to_canonical_json(self.record())).hexdigest()

    def record(self) -> dict[str, Any]:
        """As the ledger has them; what a window of an earlier version does not have is not there."""
        terms: dict[str, Any] = {name: getattr(self, name) for name in _ALWAYS}
        if self.reveals:
            terms["reveals"] = self.reveals
        if self.randomness is not None:
            terms["randomness"] = self.randomness
        return terms

    @classmethod
    def of(cls, body: dict[str, Any]) -> Terms:
        """`KeyError` where a term is missing, `TypeError` or `ValueError` where one is of another type."""
        randomness = dict(body["randomness"]) if "randomness" in body else None
        window, benchmark, split, manifest, opens, closes, cipher = (str(body[name]) for name in _ALWAYS)
        reveals = str(body.get("reveals", ""))
        return cls(window, benchmark, split, manifest, opens, closes, cipher, reveals, randomness)


_ALWAYS = ("window", "benchmark", "split", "manifest", "opens", "closes", "cipher")


@dataclass
class Window:
    """A window as the ledger has it. `answers`, `scores`: the bodies of its submitted and scored records, by the
    digest of the answers; `times`: when the ledger took each; `when`: the time of the first record of each other kind;
    `secret`: the board's, once it is revealed; `public`: the public randomness of a window of an earlier version."""

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
        """The seed of its draw, by the board's secret. `FarshiftError` where its public randomness is not there."""
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
        """Whose randomness draws it, in words."""
        if self.terms.randomness is None:
            return "the board's randomness alone"
        return f"the board's secret and public randomness ({self.terms.randomness.get('source')}, not checked)"

    @property
    def name(self) -> str:
        return self.terms.window

    @property
    def ends(self) -> datetime:
        """When it closes."""
        return parse_time(self.terms.closes)

    def state(self, now: datetime) -> str:
        """committed (its sealing was cut off), announced, open, due (its time is over, nothing is revealed yet), or
        revealed."""
        if self.secret is not None:
            return "revealed"
        if self.closed is not None:
            return "due"
        if self.opened is None:
            return "committed"
        if now < parse_time(self.terms.opens):
            return "announced"
        return "open" if now < self.ends else "due"


def read_windows(records: Iterable[LedgerRecord]) -> dict[str, Window]:
    """Every window of a ledger, in its order, by name. `FarshiftError` for records that no board writes."""
    windows_by_name: dict[str, Window] = {}
    for record in records:
        try:
            _apply_record(windows_by_name, record)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FarshiftError(f"record {record.seq} ({record.kind}) lacks what a window's record has") from error
    return windows_by_name


_KINDS = ("randomness", "window_opened", "submitted", "window_closed", "scored", "seed_revealed")


def _apply_record(windows_by_name: dict[str, Window], record: LedgerRecord) -> None:
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
        window.times[body["submission"]] = record.time
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


def find_window(records: Iterable[LedgerRecord], name: str) -> Window:
    """The window of this name, or the latest of a benchmark of this name."""
    every = read_windows(records)
    if name in every:
        return every[name]
    of_benchmark = [window for window in every.values() if window.terms.benchmark == name]
    if not of_benchmark:
        raise UnknownName("window", name, every, "(farshift board sealed list lists them)")
    return of_benchmark[-1]


def get_team_id(body: dict[str, Any]) -> str:
    """Who gave answers, by their record: the public key that signed them; in windows of earlier versions the name,
    without regard to case, width and spaces."""
    key = str(body.get("signed_by") or "")
    return (
        f"key {key}" if key else repr(" ".join(unicodedata.normalize("NFKC", str(body.get("team"))).casefold().split()))
    )


@dataclass(frozen=True)
class WindowPaths:
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
