"""A made-up board of all five kinds of shift, and one of any size, without data: between a board and its pages."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import numpy as np
from farshift.benchmarks.benchmark import find_benchmark, load_benchmarks
from farshift.benchmarks.scoring.record import Score
from farshift.leaderboard.entries import Removal, ScoredEntry
from farshift.leaderboard.ledger import Record
from farshift.leaderboard.tables.snapshot import Snapshot
from farshift.leaderboard.tables.table import Row, Table
from made_tables import entry, snapshot
from records import curve, estimate, record

KINDS = {
    "scan/length": "length",
    "modadd97/xi35": "corrupted-label",
    "vowel/speakers": "domain",
    "shapes/diagonal": "compositional",
    "addition/carry": "easy-to-hard",
}
"""A benchmark of each kind."""

MODELS = ("lstm", "transformer", "syntactic-attention", "mlp", "knn", "my-model")


def small_board() -> Snapshot:
    """Six models on a benchmark of each kind, one of them withdrawn; models differ, and some are tied."""
    built, apart = [], []
    for number, (benchmark, kind) in enumerate(KINDS.items()):
        for k, model in enumerate(MODELS):
            share = 0.25 + 0.06 * ((3 * k + number) % 6) + (0.2 if k == number else 0.0)
            team = ("us", "The <others>", "North lab")[k % 3]
            points = curve(min(0.98, share + 0.3), share) if kind in ("length", "easy-to-hard") else []
            on, rows = entry(
                model,
                share,
                benchmark,
                team=team,
                kind=kind,
                made=4 * k + number,
                groups={"left": share},
                severity=points,
            )
            data = {"training_data": ["wikitext"] if k == 1 else [], "pretraining": ["unknown"] if k == 2 else []}
            built.append((on, replace(rows, card={"parameters": 40_000 * 20**k, "declared": data})))
    gone, _ = entry("withdrawn-model", 0.9, "scan/length", team="us")
    apart.append(
        replace(gone, left=Removal("withdrawn", "the labels were in the training data", "2026-02-03T00:00:00Z"))
    )
    return snapshot(built, name="A made-up board", apart=apart)


def large_board(models: int, tables: int) -> Snapshot:
    """`models` models on each of `tables` benchmarks, of all kinds: scores, rank sets and ties drawn, none computed."""
    draws = np.random.default_rng(7)
    chosen: list[str] = []
    known = load_benchmarks()
    for kind in ("domain", "length", "compositional", "easy-to-hard", "corrupted-label"):
        names = [name for name, item in sorted(known.items()) if item.kind == kind and item.manifest.frozen]
        chosen += [name for name in names if known[name].metrics[0].bounds == (0.0, 1.0)][: tables // 5]
    curves = [tuple(curve(share, share / (2 + k % 3))) for k, share in enumerate(draws.random(60).tolist())]
    words = ("deep", "wide", "robust", "sparse", "aligned", "causal", "mixture", "ensemble", "tiny", "modular")
    names = [f"{words[draws.integers(10)]}-{words[draws.integers(10)]}-{k}" for k in range(models)]
    views = tuple(_view(benchmark, names, curves, draws) for benchmark in chosen)
    head = Record(models * tables, "2026-02-01T00:00:00Z", "scored", {}, "0" * 64, "1" * 64, "2" * 128)
    return Snapshot("A large board", "2026-01-01T00:00:00Z", head, views, (), (), (), models * tables)


def _view(benchmark: str, names: list[str], curves: list[tuple], draws: np.random.Generator) -> Table:
    known = find_benchmark(benchmark)
    template = record("model", benchmark, kind=known.kind, identity=known.identity("full"), severity=[])
    template = replace(template, metric=known.metrics[0].signature)
    rows = []
    for number, name in enumerate(names):
        share, fall = float(draws.beta(4, 3)), float(draws.beta(2, 6))
        points = curves[draws.integers(len(curves))] if known.kind in ("length", "easy-to-hard") else ()
        score = _score(template, name, share, max(0.0, share - fall), points, draws)
        rows.append(_standing(score, f"team {number % 200}"))
    rows.sort(key=lambda one: (-one.score.ood.value, one.score.model))
    placed = []
    for position, item in enumerate(rows):
        low = max(1, position + 1 - int(draws.integers(1, 40)))
        high = min(len(rows), position + 1 + int(draws.integers(1, 40)))
        first = position // 30
        placed.append(Row(standing=item, rank=(low, high), ties=" ".join(f"t{first + k}" for k in range(3)), best=0.0))
    return Table(
        benchmark=benchmark,
        title=known.definition.title,
        kind=known.kind,
        budget="full",
        steps=None,
        selection=known.rule(None).name,
        metric=template.metric,
        better="higher",
        identity=template.entry_identity,
        current=True,
        rows=tuple(placed),
        ranked=len(rows),
    )


def _score(template: Score, name: str, on_id: float, on_ood: float, points: tuple, draws) -> Score:
    reach = 0.01 + 0.03 * draws.random(3)
    result = (on_id, on_ood, on_id - on_ood)
    views = [estimate(value, float(r), least=-1.0) for value, r in zip(result, reach, strict=True)]
    return replace(template, model=name, id=views[0], ood=views[1], gap=views[2], severity=points)


def _standing(score: Score, team: str) -> ScoredEntry:
    name = sha256(f"{score.model} {score.benchmark}".encode()).hexdigest()[:16]
    run = {key: getattr(score, key) for key in ("benchmark", "model", "budget", "steps", "selection")}
    who = {"submission": name * 4, "name": "", "team": team, "note": "", "time": "2026-01-05T00:00:00Z"}
    return ScoredEntry(entry=name, run=0, run_digest=name * 4, **run, **who, score=score)
