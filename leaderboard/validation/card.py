"""The two TOML files of a submission. submission.toml: the team, its runs, the model card and the team's signature; a
run's card: the values that a board relies on. Every invalid key is reported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from ...benchmarks.settings import MAX_CANDIDATES, MAX_SEEDS
from ...core.canonical import compute_identity
from ...core.plugins import describe_problem
from ..ledger.keys import SigningKey, is_signed_by
from .problem import Problems

FORMAT = 2
UNKNOWN = "unknown"


def _require_line(text: str) -> str:
    if not text.isprintable() or text.isspace():
        raise ValueError("must be printable characters on one line, not spaces alone")
    return text


def _require_distinct(values: list[Any]) -> list[Any]:
    if len(set(values)) < len(values):
        raise ValueError("lists a value twice")
    return values


def _require_known_or_unknown(names: list[str]) -> list[str]:
    if UNKNOWN in names and len(names) > 1:
        raise ValueError(f'must list names, or be ["{UNKNOWN}"]')
    return names


Printable = AfterValidator(_require_line)
Distinct = AfterValidator(_require_distinct)
Line100 = Annotated[str, Field(max_length=100), Printable]
Line200 = Annotated[str, Field(max_length=200), Printable]
Line500 = Annotated[str, Field(max_length=500), Printable]
Link = Annotated[str, Field(max_length=500, pattern="^https?://[^ ]+$"), Printable]
Name = Annotated[str, Field(min_length=1, max_length=200), Printable]
Names = Annotated[list[Name], Field(max_length=200), Distinct, AfterValidator(_require_known_or_unknown)]
Checkpoint = Annotated[str, Field(min_length=1, max_length=201), Printable]
Checkpoints = Annotated[list[Checkpoint], Field(min_length=1, max_length=MAX_CANDIDATES), Distinct]
Seed = Annotated[int, Field(ge=0, lt=2**31)]


class _Values(BaseModel):
    """Values of a card, which are not converted to other types."""

    model_config = ConfigDict(strict=True, frozen=True)


class ModelCard(_Values, extra="forbid"):
    """A team's declarations about its model. Names of data sets or splits, or the single word "unknown"; an empty list
    declares that there were none. Nothing in it is verified, and no link is opened."""

    training_data: Names = [UNKNOWN]
    pretraining: Names = [UNKNOWN]
    parameters: int | None = Field(None, ge=0, lt=2**63)
    budget: Line500 = ""
    protocol: Line500 = ""
    links: list[Link] = Field([], max_length=10)
    contact: Line200 = ""

    def record(self) -> dict[str, Any]:
        """The card for TOML and JSON, without empty values."""
        declared = ("training_data", "pretraining")
        return {name: value for name, value in self if name in declared or value not in (None, "", [])}


class TeamCard(_Values, extra="forbid"):
    """The card that a team writes. choose: whether the team is to be ranked by these runs instead of its earlier
    ones."""

    name: Line100 = ""
    team: Line100 = ""
    note: Line500 = ""
    choose: bool = False
    model: ModelCard = ModelCard()


class ListedRun(_Values, extra="forbid"):
    """A run of a submission, with the digests of its card and its predictions."""

    benchmark: str
    model: str
    run: str
    predictions: str


class Signature(_Values, extra="forbid"):
    """A team's ed25519 signature of a submission.toml."""

    key: str = Field(pattern="^[0-9a-f]{64}$")
    signature: str = Field(pattern="^[0-9a-f]{128}$")


class SubmissionCard(TeamCard):
    """A submission.toml, as `pack` writes it."""

    format: int = FORMAT
    runs: list[ListedRun] = Field(min_length=1)
    signature: Signature | None = None


Model = TypeVar("Model", bound=BaseModel)


def parse_submission_card(card: dict[str, Any], file: str, problems: Problems) -> SubmissionCard | None:
    """Parse a submission.toml, and check its signature. None if it is invalid; its problems are added to `problems`."""
    if card.get("format") != FORMAT:
        problems.add("format-unknown", file, f"format {str(card.get('format'))[:40]!r} is not {FORMAT}", "format")
        return None
    parsed = _parse(SubmissionCard, card, "card-value", file, problems)
    signature = None if parsed is None else parsed.signature
    if signature and not is_signed_by(signature.key, _hash_card(card, signature.key), signature.signature):
        problems.add("signature-wrong", file, "does not match this card and its key", "signature")
    return parsed


def parse_team_card(card: dict[str, Any], file: str, whose: str) -> TeamCard:
    """Parse a card given to a command. `BadSubmission`, in the name of `whose`, lists its problems."""
    problems = Problems()
    parsed = _parse(TeamCard, card, "card-value", file, problems)
    problems.refuse_if_any(whose)
    assert parsed is not None
    return parsed


def _parse(kind: type[Model], card: dict[str, Any], name: str, file: str, problems: Problems) -> Model | None:
    """A card as a model; None if it has invalid values, each of which is added to `problems` under this name."""
    try:
        return kind.model_validate(card)
    except ValidationError as error:
        for item in error.errors(include_url=False):
            column = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in item["loc"])
            what = describe_problem(item, kind).removeprefix(".".join(map(str, item["loc"]))).lstrip(" =:")
            problems.add(name, file, what, column.removeprefix("."))
        return None


def sign_card(card: Mapping[str, Any], key: SigningKey) -> dict[str, Any]:
    """Return a submission's card with a team's signature."""
    return {**card, "signature": {"key": key.public, "signature": key.sign(_hash_card(card, key.public))}}


def _hash_card(card: Mapping[str, Any], public: str) -> str:
    """The signed digest: sha256 over its purpose, the key, and the card without its signature."""
    rest = {name: value for name, value in card.items() if name != "signature"}
    return compute_identity({"signs": "farshift submission", "key": public, "card": rest})


TEMPLATE = """\
# The card of a submission: farshift pack RUN.. --out submission.zip --card card.toml
# Everything here is shown on the board. Options of the command (--name, --team, --note) override this file.

name = ""   # of the submission
team = ""   # the team that submits it; boards count scored attempts by team
note = ""   # a line beside its entries
# choose = true   # rank the team by these runs instead of its first ones in their tables

[model]
# The data that the model was trained on besides the benchmark's own training part: names of data sets or splits.
# ["unknown"] if you cannot say, [] if there were none.
training_data = ["unknown"]
pretraining = ["unknown"]
# parameters = 1_000_000
# budget = "resources used beyond what the runs report: searches, tuning, hardware"
# protocol = "deviations from the benchmark's protocol"
# links = ["https://example.org/paper", "https://example.org/code"]
# contact = "name@example.org"
"""
"""The output of `farshift pack --template`."""


class _Budget(_Values):
    name: Literal["full", "quick"]
    seeds: Annotated[list[Seed], Field(min_length=1, max_length=MAX_SEEDS), Distinct]
    steps: int | None = Field(None, gt=0, lt=2**31)
    device: Line100


class _Model(_Values):
    name: Annotated[str, Field(min_length=1, max_length=100), Printable]
    deterministic: Literal[True] | None = None
    candidates: Checkpoints
    finals: Checkpoints

    @model_validator(mode="after")
    def _require_candidates(self) -> _Model:
        if not set(self.finals) <= set(self.candidates):
            raise ValueError("finals must list the last checkpoint of each setting, each one of the candidates")
        return self


class _Usage(_Values):
    touched: list[Literal["ood_val", "unlabelled"]]


class _RunCard(_Values):
    """Those of a run's card that a board relies on."""

    budget: _Budget
    model: _Model
    spent: _Usage

    @model_validator(mode="after")
    def _require_one_seed(self) -> _RunCard:
        if self.model.deterministic and self.budget.seeds != [0]:
            raise ValueError("a deterministic model has the seed 0 alone")
        return self


def check_run_values(card: dict[str, Any], file: str, problems: Problems) -> bool:
    """Whether the values of a run's card are within bounds; those that are not are added to `problems`. `RunCard`
    checks the types of all others."""
    return _parse(_RunCard, card, "run-value", file, problems) is not None
