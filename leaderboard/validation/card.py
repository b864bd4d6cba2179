"""submission.toml: the team, its runs, and the model card. Every invalid key is reported."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...benchmarks.settings import MAX_CANDIDATES, MAX_SEEDS, find_name_problem
from ...core.canonical import compute_identity
from ..ledger.keys import SigningKey, is_signed_by
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


_SIGNATURE_DIGITS = {"key": 64, "signature": 128}


def sign_card(card: Mapping[str, Any], key: SigningKey) -> dict[str, Any]:
    """Return a submission's card with a team's signature."""
    return {**card, "signature": {"key": key.public, "signature": key.sign(_hash_card(card, key.public))}}


def check_signature(card: Mapping[str, Any], file: str, problems: Problems) -> str:
    """The public key (64 hexadecimal digits) of the team that signed a card; empty if it is unsigned, or if the
    signature does not match the card, which is added to `problems`."""
    if "signature" not in card:
        return ""
    signature = card["signature"]
    if (
        not isinstance(signature, dict)
        or set(signature) != set(_SIGNATURE_DIGITS)
        or not all(_is_hex(signature[name], name) for name in signature)
    ):
        what = ", ".join(f"{name} ({most} hexadecimal digits)" for name, most in _SIGNATURE_DIGITS.items())
        problems.add("signature-wrong", file, f"must have {what} and nothing else", "signature")
        return ""
    try:
        hash = _hash_card(card, signature["key"])
    except (TypeError, ValueError):  # a date or NaN, which the card's parser reports
        hash = ""
    if is_signed_by(signature["key"], hash, signature["signature"]):
        return str(signature["key"])
    problems.add("signature-wrong", file, "does not match this card and its key", "signature")
    return ""


def _hash_card(card: Mapping[str, Any], public: str) -> str:
    """The signed digest: sha256 over its purpose, the key, and the card without its signature."""
    rest = {name: value for name, value in card.items() if name != "signature"}
    return compute_identity({"signs": "farshift submission", "key": public, "card": rest})


def _is_hex(value: Any, name: str) -> bool:
    return isinstance(value, str) and re.fullmatch(f"[0-9a-f]{{{_SIGNATURE_DIGITS[name]}}}", value) is not None


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


_TOUCHABLE = {"ood_val", "unlabelled"}
"""The data that `fit` may request beyond training and validation rows."""


def iterate_value_problems(card: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the problems of the values of a run's card, (key, description) each. Its tables and digest are already
    checked."""
    budget, model, benchmark, spent = card["budget"], card["model"], card["benchmark"], card["spent"]
    yield from _iterate_budget_problems(budget)
    if model.get("deterministic", True) is not True or ("deterministic" in model and budget.get("seeds") != [0]):
        yield "model.deterministic", "a deterministic model states deterministic = true and has the seed 0 alone"
    if problem := find_name_problem(model.get("name")):
        yield "model.name", problem
    for key in ("name", "entry_identity", "selection"):
        if not isinstance(benchmark.get(key), str) or len(benchmark[key]) > 200:
            yield f"benchmark.{key}", f"the benchmark's {key} must be a string"
    touched, by_seed = spent.get("touched"), spent.get("by_seed")
    if not isinstance(touched, list) or not set(map(str, touched)) <= _TOUCHABLE:
        yield "spent.touched", f"touched must be a list of {', '.join(sorted(_TOUCHABLE))}"
    if not isinstance(by_seed, dict) or not all(isinstance(seed, dict) for seed in by_seed.values()):
        yield "spent.by_seed", "spent must have a table for each seed"
    yield from _iterate_candidate_problems(model.get("candidates"), model.get("finals"))


def _iterate_budget_problems(budget: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if budget.get("name") not in ("full", "quick"):
        yield "budget.name", f"budget {budget.get('name')!r} is neither full nor quick"
    seeds, steps = budget.get("seeds"), budget.get("steps")
    all_integers = isinstance(seeds, list) and all(type(seed) is int and 0 <= seed < 2**31 for seed in seeds)
    if not isinstance(seeds, list) or not all_integers or not 0 < len(seeds) <= MAX_SEEDS:
        yield "budget.seeds", f"seeds must be 1 to {MAX_SEEDS} integers from 0 to 2147483647"
    elif len(set(seeds)) != len(seeds):
        yield "budget.seeds", "a seed is listed twice"
    if steps is not None and (type(steps) is not int or not 0 < steps < 2**31):
        yield "budget.steps", "steps must be a positive integer"
    if not isinstance(budget.get("device"), str) or len(budget["device"]) > 100:
        yield "budget.device", "device must be a string"


def _iterate_candidate_problems(candidates: Any, finals: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(candidates, list) or not 0 < len(candidates) <= MAX_CANDIDATES:
        yield "model.candidates", f"candidates must list 1 to {MAX_CANDIDATES} names"
    elif any(not isinstance(name, str) or not 0 < len(name) <= 201 or not name.isprintable() for name in candidates):
        yield "model.candidates", "a candidate's name must be 1 to 201 printable characters"
    elif len(set(candidates)) < len(candidates):
        yield "model.candidates", "a candidate is listed twice"
    elif not isinstance(finals, list) or not finals or any(name not in candidates for name in finals):
        yield "model.finals", "finals must list the last checkpoint of each setting, each one of the candidates"
    elif len(set(finals)) < len(finals):
        yield "model.finals", "a final checkpoint is listed twice"
