"""Response models of the API, from which its OpenAPI document is generated."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from ..client.board import BoardEntry

EXAMPLE_ENTRY = "0f1e2d3c4b5a6978"
HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


class Answer(BaseModel):
    """A JSON response. Later versions may add fields, so clients must ignore fields that they do not know."""

    model_config = ConfigDict(extra="allow")


class Failure(Answer):
    """Why a request failed."""

    error: str = Field(description="One line.", examples=["entry 0000000000000000 is not on this board"])


class Health(Answer):
    """The status of the server."""

    status: str = Field(examples=["ready"])
    records: int = Field(0, description="Records of the ledger.")
    behind: int = Field(0, description="How many of them are not yet included in the tables.")
    problem: str = Field("", description="Whether tables cannot be computed; empty if they can. The log says why.")


class Head(Answer):
    """The last record of the ledger that is included in a response."""

    seq: int = Field(examples=[41], description="Its number, from 0.")
    time: str = Field(examples=["2026-11-23T12:00:00Z"])
    hash: str = Field(examples=[HASH])


class Start(Answer):
    """The board and links to its resources."""

    name: str = Field(description="The board's title.", examples=["Our board"])
    opened: str = Field(examples=["2026-11-01T09:00:00Z"])
    key: str = Field(description="The board's public ed25519 key, hexadecimal.", examples=[HASH])
    farshift: str = Field(description="The version of Farshift that serves it.", examples=["0.1.0"])
    read_only: bool = Field(description="Whether it is a copy, which accepts no submissions.")
    head: Head
    entries: int
    links: dict[str, str] = Field(description="Relative addresses of the resources, by name.")


class BenchmarkItem(Answer):
    """A benchmark with entries on this board."""

    benchmark: str = Field(examples=["scan/length"])
    title: str
    kind: str = Field(description="The kind of shift.", examples=["length"])
    metric: str = Field(examples=["accuracy@1"])
    entries: int
    tables: list[str] = Field(description="Identities of its tables.", examples=[[HASH]])


class TableItem(Answer):
    """A table: entries of one identity (benchmark version, protocol, scorer)."""

    identity: str = Field(examples=[HASH])
    benchmark: str = Field(examples=["scan/length"])
    title: str
    kind: str = Field(examples=["length"])
    budget: str = Field(examples=["full"])
    steps: int | None = Field(None, description="Training steps, if they differ from the budget's.")
    selection: str = Field(description="How candidates are chosen.", examples=["last"])
    metric: str = Field(examples=["accuracy@1"])
    better: str = Field(examples=["higher"])
    current: bool = Field(description="Whether this version of Farshift scores this identity.")
    ranked: int = Field(description="How many entries have a rank set.")
    baseline: str = Field(description="The model that the others are compared with; empty if there is none.")


class TableSummary(TableItem):
    entries: int
    can_be_first: list[str] = Field(description="Entries whose rank set contains 1.", examples=[[EXAMPLE_ENTRY]])


class Row(Answer):
    """An entry in its table. With 95 % simultaneous confidence, all rank sets contain the true ranks."""

    entry: str = Field(examples=[EXAMPLE_ENTRY])
    model: str = Field(examples=["lstm"])
    team: str = Field(examples=["The adders"])
    rank: list[int] | None = Field(description="First and last rank of its rank set.", examples=[[1, 3]])
    unranked: str = Field(description="Why it has no rank set; empty if it has one.")
    not_learnt: str = Field(
        "", description="Why its OOD score is not a measure of robustness: its ID score is below the threshold."
    )
    ties: str = Field(description="Entries that share a letter do not differ significantly.", examples=["ab"])
    id: dict[str, Any] = Field(
        description="Score on in-distribution rows: value, low, high, row_se, seed_se, per_seed."
    )
    ood: dict[str, Any] = Field(description="The same on shifted rows.")
    gap: dict[str, Any] = Field(description="ID minus OOD.")
    seeds: int
    attempts: int | None = Field(description="Number of entries of its team that were scored in this table.")


class Table(TableItem):
    """A table with its rows, best first; the order is not a ranking."""

    detectable: dict[str, Any] | None = Field(description="The minimum detectable difference of its median pair.")
    rows: list[Row]
    notes: list[str] = Field(description="What the columns mean, and their limits.")


class Standings(Answer):
    """All tables, as `farshift board standings --json` prints them."""

    board: str
    head: Head
    tables: list[Table]
    apart: list[dict[str, Any]] = Field(description="Entries that were withdrawn or removed, with the reason.")
    suites: list[dict[str, Any]] = Field(description="Aggregates over benchmarks.")
    windows: list[dict[str, Any]] = Field(description="Sealed windows: see /windows.")


class Entries(Answer):
    """A page of entries, in the ledger's order. `next` is null on the last one."""

    head: Head
    entries: list[BoardEntry]
    damaged: list[str] = Field([], description="Entries of this page whose score's file is missing or was changed.")
    next: str | None = Field(description="The cursor of the next page.", examples=[EXAMPLE_ENTRY])


class EntryScore(Answer):
    scorer: int
    entry_identity: str
    path: str = Field(description="The path of its file, relative to the root of the server or of an export.")
    sha256: str


class EntryFound(Answer):
    head: Head
    entry: BoardEntry
    row: Row | None = Field(description="Its row of the table, as of the record `table_head`; null if it has none.")
    table_head: Head | None
    scores: list[EntryScore] = Field(description="Its score by each scorer version, the newest last.")


class TeamItem(Answer):
    """A team, identified by its key if it signs submissions, else by its name."""

    team: str = Field(description="The display name.")
    team_key: str
    entries: int
    benchmarks: list[str]
    models: list[str]
    newest: str = Field(description="Time of the newest entry.")


class WindowItem(Answer):
    """A sealed window: a round with a generated test set, whose seed is committed to before and revealed after it."""

    window: str = Field(examples=["scan-length-2026-12"])
    benchmark: str
    state: str = Field(description="committed, announced, open, due or revealed.")
    opens: str
    closes: str
    answers: int = Field(description="Number of teams that submitted answers.")


class WindowFound(Answer):
    """A window: its terms and commitment; after the reveal also scores, contrasts and the seed."""

    head: Head
    terms: dict[str, Any]
    commitment: str
    state: str
    answers: int
    seed: str | None
    profile: dict[str, Any] | None
    entries: list[dict[str, Any]]
    files: dict[str, str] = Field(description="Files of its test set that can be downloaded now: path below /api/v1.")


class RecordItem(Answer):
    """A record of the ledger, as in a line of an export."""

    seq: int
    time: str
    kind: str = Field(examples=["scored"])
    body: dict[str, Any]
    previous: str
    hash: str
    signature: str


class Ledger(Answer):
    """A page of records. A full page never changes."""

    page: int
    size: int = Field(description="Number of records in the ledger; on a full page, up to the end of this page.")
    records: list[RecordItem]
    next: int | None = Field(description="The next page, null on the last one.")


def _create_answer(name: str, **field: type) -> type[BaseModel]:
    """Create the model of a response with a head and one field."""
    fields: dict[str, Any] = {name: (type, ...) for name, type in field.items()}
    return create_model(name, __base__=Answer, head=(Head, ...), **fields)


Benchmarks = _create_answer("Benchmarks", benchmarks=list[BenchmarkItem])
Tables = _create_answer("Tables", tables=list[TableSummary])
TableFound = _create_answer("TableFound", table=Table)
Teams = _create_answer("Teams", teams=list[TeamItem])
Windows = _create_answer("Windows", windows=list[WindowItem])


def describe_refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Describe error responses for the OpenAPI document."""
    descriptions = {404: "Not found.", 422: "A parameter is invalid.", 503: "Try again later."}
    return {
        status: {"model": Failure, "description": descriptions.get(status, "Refused.")} for status in (422, *statuses)
    }
