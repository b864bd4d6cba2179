"""All contamination probes of one command, and descriptions of their records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...benchmarks.benchmark import Benchmark, find_benchmark
from ...benchmarks.harness.factory import make_factory
from ...core.errors import FarshiftError
from ...core.plugins import read_toml
from ..validation.card import parse_team_and_model
from ..validation.problem import Problems
from .canaries import probe_continuation, search_texts
from .corpus import Corpus
from .declared import list_declared_overlaps
from .fingerprints import count_duplicate_rows

Record = dict[str, Any]


def probe(on: str, data: Path | str | None = None, card: Path | str | None = None, model: Any = None) -> list[Record]:
    """Run every probe that the arguments allow: training texts (`data`), a model card (`card`, a TOML file), a model
    or a model factory (`model`). Raises `FarshiftError` if none is given or one cannot be read."""
    if data is None and card is None and model is None:
        raise FarshiftError("probe: give training texts (--data), a model card (--card), or a model (--model)")
    benchmark = find_benchmark(on)
    records: list[Record] = []
    if card is not None:
        records += _probe_card(Path(card), benchmark)
    if data is not None:
        corpus = Corpus.at(data)
        records.append(search_texts(benchmark, (text for piece in corpus.pieces() for text in piece)))
        records.append(count_duplicate_rows(corpus, benchmark))
    if model is not None:
        schema = benchmark.split.source.schema
        records.append(probe_continuation(benchmark, schema, make_factory(model, benchmark.task)(0, {})))
    return records


def _probe_card(card: Path, benchmark: Benchmark) -> list[Record]:
    problems = Problems()
    contents = parse_team_and_model(read_toml(card), str(card), problems)
    problems.refuse_if_any("probe")
    return list_declared_overlaps(contents.model, benchmark)


def has_findings(records: list[Record]) -> bool:
    """Whether a probe found contamination."""
    return any(_is_finding(record) for record in records)


def _is_finding(record: Record) -> bool:
    if record["probe"] == "declared training data":
        return record["overlap"] in ("test", "source", "related")
    if record["probe"] == "duplicates":
        return any(view["exact"] or view["near"] > view["near_own_training"] for view in record["views"].values())
    return bool(record.get("found") or record.get("continued"))


def describe_record(record: Record) -> str:
    """Describe a record in one line: FOUND, ok, or a question mark if unknown."""
    mark = "FOUND" if _is_finding(record) else "?" if record.get("overlap") == "unknown" else "ok"
    if record["probe"] == "declared training data":
        description = f"{record['field']}: {record['why']}"
    elif record["probe"] == "duplicates":
        views = (
            f"{name}: {view['exact']} exact and {view['near']} near duplicates of {view['rows']} rows "
            f"({view['near_own_training']} near duplicates of its own training rows)"
            for name, view in record["views"].items()
        )
        description = f"{record['texts']:,} texts and {record['rows']:,} rows of columns; {'; '.join(views)}"
    elif record["probe"] == "canary in texts":
        description = f"the canary was found in {record['found']} of {record['texts']:,} texts"
    else:
        description = (
            "the model continues the canary" if record["continued"] else "the model does not continue the canary"
        )
    return f"{mark:>5}  {record['probe']} on {record['benchmark']}: {description}"
