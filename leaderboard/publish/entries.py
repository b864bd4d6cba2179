"""A page for each entry, including withdrawn and removed ones; for each model, with its entries on all benchmarks and
its paper and code; and for each team, with its key and names, its entries and attempts, and its answers to sealed
windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

from ...core.documents import parse_toml
from ...core.plugins import PACKAGE
from ..entries import ScoredEntry, get_submission_path
from ..exports._table import make_slug
from ..ledger import Record
from ..sealed.window import read_windows
from ..tables.snapshot import Snapshot
from ..tables.table import Row, Table
from ..teams import compute_fingerprint, make_team_identity
from ..validation.card import UNKNOWN
from .compare import list_pairs, make_pair_path
from .figures import make_severity_figure
from .page import Page, link_papers

_KINDS = {"own": "the team's own model", "baseline": "a baseline of Farshift"}
"""Kinds of models in a run's card."""

SOURCE = "https://github.com/farshift/farshift/blob/main"
"""Farshift's repository, which has the code of the baselines."""

Placed = tuple[Table, Row]
"""An entry with its table."""


def list_pages(board: Snapshot, records: Sequence[Record]) -> Iterator[Page]:
    """Yield the pages of all entries, models and teams."""
    models: dict[str, list[Placed]] = {}
    teams: dict[str, dict[str, Any]] = {}

    def find_team(team: str, key: str) -> dict[str, Any]:
        record = teams.setdefault(make_team_identity(team, key), {"key": key, "names": set()})
        record["names"] |= {team} if team else set()
        return record

    for view in board.views:
        for row in view.rows:
            models.setdefault(make_model_path(row.standing), []).append((view, row))
            find_team(row.standing.team, row.standing.team_key).setdefault("rows", []).append((view, row))
            yield Page(f"entries/{row.standing.entry}.html", "entry.html", partial(_make_entry_context, row, view))
    for entry in board.apart:
        find_team(entry.team, entry.team_key).setdefault("apart", []).append(entry)
        context = partial(_make_entry_context, Row(standing=entry), None)
        yield Page(f"entries/{entry.entry}.html", "entry.html", context)
    for path, rows in sorted(models.items()):
        yield Page(path, "model.html", partial(_make_model_context, rows))
    for window in read_windows(records).values():
        for digest, body in window.answers.items():
            answer = {"window": window.name, "submission": digest, "model": str(body["model"])}
            team = find_team(str(body["team"]), str(body.get("signed_by", "")))
            team.setdefault("answers", []).append(answer | {"time": window.times[digest]})
    for identity, team in sorted(teams.items()):
        if slug := make_team_slug(identity):
            yield Page(f"teams/{slug}.html", "team.html", partial(_make_team_context, **team))


def _make_entry_context(row: Row, table_view: Table | None) -> dict[str, Any]:
    standing, score = row.standing, row.standing.score
    pairs = [] if table_view is None else [pair for pair in list_pairs(table_view) if row in pair]
    return {
        "row": row,
        "s": score,
        "table_view": table_view,
        "left": standing.left,
        "curve": make_severity_figure([score], [score.model]),
        "card": _list_facts(row),
        "model_page": None if table_view is None else make_model_path(standing),
        **_describe_source(row),
        "rescores": [item for item in standing.scores if item.replaces is not None],
        "file": get_submission_path(standing.submission),
        "slug": make_team_slug(standing.team_identity),
        "beside": [
            ((right if left is row else left).standing.score.model, make_pair_path(left, right))
            for left, right in pairs
        ],
    }


def make_model_path(standing: ScoredEntry) -> str:
    """Return the path of the page of a team's model."""
    model = str(standing.score.model)
    digest = sha256(f"{standing.team_identity} {model}".encode()).hexdigest()
    return f"models/{make_slug(model)}-{digest[:8]}.html"


def _make_model_context(rows: Sequence[Placed]) -> dict[str, Any]:
    newest = max((row for _, row in rows), key=lambda row: (row.standing.time, row.standing.entry))
    shown = ("Declared training data", "Declared pretraining", "Pretrained on", "Parameters", "Model")
    return {
        "title": newest.standing.score.model,
        "rows": rows,
        "team": newest.standing.team,
        "slug": make_team_slug(newest.standing.team_identity),
        "naive": all(is_naive(row) for _, row in rows),
        "card": [(name, value) for name, value in _list_facts(newest) if name in shown and value != UNKNOWN],
        **_describe_source(newest),
    }


@cache
def _read_recipes() -> dict[str, dict[str, Any]]:
    """Return the recipes of the baselines that ship with the package, by name."""
    files = sorted((PACKAGE / "baselines" / "recipes").glob("*.toml"))
    return {file.stem: parse_toml(file.read_text("utf-8")) for file in files}


def _find_recipe(row: Row) -> dict[str, Any]:
    """Return the recipe of an entry of a baseline; empty for another model."""
    return _read_recipes().get(str(row.standing.score.model), {}) if row.card.get("kind") == "baseline" else {}


def is_naive(row: Row) -> bool:
    """Return whether an entry has not learnt its task, or is a baseline that repeats a training answer."""
    return bool(row.not_learnt) or bool(_find_recipe(row).get("whole_answers"))


def _describe_source(row: Row) -> dict[str, Any]:
    """Return what a baseline is, its paper, and its code; for another model the links of its card. papers: pieces of
    text with their addresses; links: titles with addresses."""
    recipe, declared = _find_recipe(row), row.card.get("declared", {})
    links = [(item, item) for item in declared.get("links", ()) if item.startswith(("https://", "http://"))]
    papers: list[tuple[str, str]] = []
    if recipe:
        citation = recipe["citation"]
        papers = list(link_papers(citation))
        if not any(address for _, address in papers):  # older than arXiv
            papers = [(citation, f"https://scholar.google.com/scholar?{urlencode({'q': citation})}")]
        files = [f"baselines/recipes/{row.standing.score.model}.toml"]
        parts = [(kind, recipe[kind].replace("-", "_")) for kind in ("algorithm", "network") if kind in recipe]
        files += [f"baselines/{kind}s/{name}.py" for kind, name in parts]
        links += [(file, f"{SOURCE}/{file}") for file in files]
        if name := recipe.get("estimator"):
            links.append((name, f"https://scikit-learn.org/stable/modules/generated/{name}.html"))
    return {"what": recipe.get("title", ""), "papers": papers, "links": links}


def _list_facts(row: Row) -> list[tuple[str, str]]:
    """Return the facts stated in an entry's cards, as (name, value); empty ones are omitted."""
    card, score = row.card, row.standing.score
    declared = card.get("declared", {})
    seeds = f"{', '.join(map(str, score.seeds))} (the protocol requires {score.protocol_seeds})"
    names = {name: ", ".join(declared.get(name, ())) or "none" for name in ("training_data", "pretraining")}
    lines = [
        ("Protocol", f"{score.budget} budget" + (f", {score.steps} steps set by hand" if score.steps else "")),
        ("Seeds", "one: the model is declared deterministic" if score.deterministic else seeds),
        ("Selection", f"{score.candidates} candidates, chosen by {score.selection}" if score.candidates > 1 else ""),
        ("Data used besides training", ", ".join(score.touched) or "none"),
        ("Declared training data", names["training_data"] if "training_data" in declared else ""),
        ("Declared pretraining", names["pretraining"] if "pretraining" in declared else ""),
        ("Pretrained on", card.get("pretrained", "")),
        ("Parameters", f"{card['parameters']:,}" if card.get("parameters") is not None else ""),
        ("Steps trained", f"{card['steps']:,}" if "steps" in card else ""),
        ("Model", _KINDS.get(card.get("kind", ""), card.get("kind", ""))),
        ("Digest of its code", card.get("code", "")),
        ("Device", card.get("device", "")),
        ("Environment", ", ".join(f"{name} {value}" for name, value in card.get("environment", {}).items())),
        ("Spent", f"{card['seconds']:,.0f} s, finished {card.get('finished', '')}" if "seconds" in card else ""),
        *((f"Declared {name}", declared.get(name, "")) for name in ("budget", "protocol")),
        ("Contact", declared.get("contact", "")),
    ]
    return [(name, value) for name, value in lines if value]


def make_team_slug(identity: str) -> str:
    """Return the name of a team's page from its identity: the fingerprint of its key, or `name-` and 16 digits of its
    name's sha256; empty for a team without a key or name, which has no page."""
    kind, _, value = identity.partition(":")
    if kind == "key":
        return compute_fingerprint(value)
    return f"name-{sha256(value.encode()).hexdigest()[:16]}" if value else ""


def _make_team_context(
    key: str,
    names: set[str],
    rows: Sequence[Placed] = (),
    apart: Sequence[ScoredEntry] = (),
    answers: Sequence[dict[str, str]] = (),
) -> dict[str, Any]:
    """key: the team's public key, empty if it does not sign; names: those that it used; apart: its withdrawn and
    removed entries; answers: its answers to sealed windows."""
    attempts = {view.identity: (view.heading, row.attempts) for view, row in rows if row.attempts is not None}
    return {
        "key": key,
        "mark": compute_fingerprint(key) if key else "",
        "names": sorted(names),
        "title": min(names, default="A team without a name"),
        "rows": rows,
        "apart": apart,
        "answers": answers,
        "attempts": attempts.values(),
    }
