"""submission.toml: the team, its runs, and the model card. Every invalid key is reported."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .problem import Problems

FORMAT = 2
UNKNOWN = "unknown"
_TEXTS = {"name": 100, "team": 100, "note": 500}
_MODEL_TEXTS = {"budget": 500, "protocol": 500, "contact": 200}
_DECLARED = ("training_data", "pretraining")
_PACKED = ("format", "runs", "signature")
"""The keys that `pack` writes into a submission.toml. The signature is checked by submission/signature.py."""
_LISTED = ("benchmark", "model", "run", "predictions")
_MOST_NAMES, _NAME, _MOST_LINKS, _LINK = 200, 200, 10, 500


@dataclass(frozen=True)
class ModelCard:
    """A team's declarations about its model. Names of data sets or splits, or the single word "unknown"; an empty list
    declares that there were none. Nothing in it is verified, and no link is opened."""

    training_data: tuple[str, ...] = (UNKNOWN,)
    pretraining: tuple[str, ...] = (UNKNOWN,)
    parameters: int | None = None
    budget: str = ""
    protocol: str = ""
    links: tuple[str, ...] = ()
    contact: str = ""

    def record(self) -> dict[str, Any]:
        """The card for TOML and JSON, without empty values."""
        fields = {name: list(value) if isinstance(value, tuple) else value for name, value in self.__dict__.items()}
        return {name: value for name, value in fields.items() if name in _DECLARED or value not in (None, "", [])}


@dataclass(frozen=True)
class SubmissionCard:
    """A valid submission.toml. `runs` has benchmark, model, run and predictions (digests) of each, in order. `choose`:
    whether the team is to be ranked by these runs instead of its earlier ones."""

    name: str
    team: str
    note: str
    model: ModelCard
    runs: tuple[dict[str, str], ...]
    choose: bool = False


def parse_submission_card(card: dict[str, Any], file: str, problems: Problems) -> SubmissionCard:
    """Parse a submission.toml; its problems are added to `problems`."""
    if card.get("format") != FORMAT:
        problems.add("format-unknown", file, f"format {str(card.get('format'))[:40]!r} is not {FORMAT}", "format")
        return SubmissionCard("", "", "", ModelCard(), ())
    who = parse_team_and_model({key: value for key, value in card.items() if key not in _PACKED}, file, problems)
    runs = card.get("runs")
    if not isinstance(runs, list) or not runs:
        problems.add("card-value", file, "must be a list of tables", "runs")
        runs = []
    listed = []
    for number, run in enumerate(runs):
        has_all_keys = isinstance(run, dict) and sorted(run) == sorted(_LISTED)
        if not has_all_keys or not all(isinstance(value, str) for value in run.values()):
            problems.add("card-value", file, f"must have {', '.join(_LISTED)}, each a string", f"runs[{number}]")
            run = dict.fromkeys(_LISTED, "")
        listed.append(run)
    return replace(who, runs=tuple(listed))


def parse_team_and_model(card: dict[str, Any], file: str, problems: Problems) -> SubmissionCard:
    """Parse name, team, note and the model card of a submission.toml or of a card given to `pack`."""
    known = (*_TEXTS, "choose", "model")
    for key in sorted(set(card) - set(known)):
        problems.add("card-key", file, f"unknown key; a card has {', '.join(known)}", key)
    choose = card.get("choose", False)
    if not isinstance(choose, bool):
        problems.add("card-value", file, "must be true or false", "choose")
    texts = {name: _check_text(card.get(name, ""), most, file, name, problems) for name, most in _TEXTS.items()}
    return SubmissionCard(
        **texts, model=_parse_model(card.get("model", {}), file, problems), runs=(), choose=choose is True
    )


def _parse_model(table: Any, file: str, problems: Problems) -> ModelCard:
    if not isinstance(table, dict):
        problems.add("card-value", file, "must be a table", "model")
        return ModelCard()
    known = [*ModelCard.__dataclass_fields__]
    for key in sorted(set(table) - set(known)):
        problems.add("card-key", file, f"unknown key; a model card has {', '.join(known)}", f"model.{key}")
    parameters = table.get("parameters")
    if parameters is not None and (type(parameters) is not int or not 0 <= parameters < 2**63):
        problems.add("card-value", file, "must be an integer of at least 0", "model.parameters")
        parameters = None
    training, before = (_check_names(table.get(name, [UNKNOWN]), file, f"model.{name}", problems) for name in _DECLARED)
    budget, protocol, contact = (
        _check_text(table.get(name, ""), most, file, f"model.{name}", problems) for name, most in _MODEL_TEXTS.items()
    )
    links = _check_links(table.get("links", []), file, problems)
    return ModelCard(training, before, parameters, budget, protocol, links, contact)


def _check_text(value: Any, most: int, file: str, key: str, problems: Problems) -> str:
    if isinstance(value, str) and len(value) <= most and (value.isprintable() or not value):
        return value
    problems.add("card-value", file, f"must be a string of at most {most} printable characters, on one line", key)
    return ""


def _check_names(value: Any, file: str, key: str, problems: Problems) -> tuple[str, ...]:
    fine = isinstance(value, list) and len(value) <= _MOST_NAMES and all(_is_name(name, _NAME) for name in value)
    if fine and len(set(value)) == len(value) and (UNKNOWN not in value or len(value) == 1):
        return tuple(value)
    what = f'must list at most {_MOST_NAMES} names of data sets or splits, each once, or be ["{UNKNOWN}"]'
    problems.add("card-value", file, what, key)
    return (UNKNOWN,)


def _is_name(value: Any, most: int) -> bool:
    return isinstance(value, str) and 0 < len(value) <= most and value.isprintable() and value.strip() == value


def _check_links(value: Any, file: str, problems: Problems) -> tuple[str, ...]:
    fine = isinstance(value, list) and len(value) <= _MOST_LINKS and all(_is_name(link, _LINK) for link in value)
    if fine and all(link.startswith(("https://", "http://")) and " " not in link for link in value):
        return tuple(value)
    problems.add("card-value", file, f"must list at most {_MOST_LINKS} URLs (https://..)", "model.links")
    return ()


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
