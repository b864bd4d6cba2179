"""Contamination probes: whether a model may have seen a benchmark's test rows, by its card's declarations, by its
training texts, and by the benchmark's canary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..benchmarks.benchmark import CANARY, Benchmark, find_benchmark, load_benchmarks, make_guid
from ..benchmarks.harness.factory import make_factory
from ..benchmarks.model import Model
from ..core.documents import parse_json, read_toml
from ..core.errors import BadData, FarshiftError, ModelError, Unavailable, get_first_line
from ..loaders.acquire.source import Source, find_source, load_sources
from ..loaders.part import Part
from ..loaders.split import open_split
from ..splits.catalogue import list_manifests
from ..splits.measures.near_duplicates import make_shingles
from .validation.card import UNKNOWN, ModelCard, parse_team_card

Record = dict[str, Any]
_VIEWS = ("id", "ood")


def probe(on: str, data: Path | str | None = None, card: Path | str | None = None, model: Any = None) -> list[Record]:
    """Run every probe that the arguments allow: training texts (`data`), a model card (`card`, a TOML file), a model
    or a model factory (`model`). Raises `FarshiftError` if none is given or one cannot be read."""
    if data is None and card is None and model is None:
        raise FarshiftError("probe: give training texts (--data), a model card (--card), or a model (--model)")
    benchmark = find_benchmark(on)
    records: list[Record] = []
    if card is not None:
        records += list_declared_overlaps(parse_team_card(read_toml(Path(card)), str(card), "probe").model, benchmark)
    if data is not None:
        files = list_text_files(data)
        records.append(search_texts(benchmark, iterate_texts(files)))
        records.append(count_duplicate_rows(files, benchmark))
    if model is not None:
        records.append(probe_continuation(benchmark, make_factory(model, benchmark.task)(0, {})))
    return records


def is_finding(record: Record) -> bool:
    """Whether a probe found contamination."""
    if record["probe"] == "declared training data":
        return record["overlap"] in ("test", "source", "related")
    if record["probe"] == "duplicates":
        return any(view["exact"] or view["near"] > view["near_own_training"] for view in record["views"].values())
    return bool(record.get("found") or record.get("continued"))


def describe_record(record: Record) -> str:
    """Describe a record in one line: FOUND, ok, or a question mark if unknown."""
    mark = "FOUND" if is_finding(record) else "?" if record.get("overlap") == "unknown" else "ok"
    if record["probe"] == "declared training data":
        description = f"{record['field']}: {record['why']}"
    elif record["probe"] == "duplicates":
        views = (
            f"{name}: {view['exact']} exact and {view['near']} near duplicates of {view['rows']} rows "
            f"({view['near_own_training']} near duplicates of its own training rows)"
            for name, view in record["views"].items()
        )
        description = f"{record['texts']:,} texts; {'; '.join(views)}"
    elif record["probe"] == "canary in texts":
        description = f"the canary was found in {record['found']} of {record['texts']:,} texts"
    else:
        description = f"the model {'continues' if record['continued'] else 'does not continue'} the canary"
    return f"{mark:>5}  {record['probe']} on {record['benchmark']}: {description}"


_KNOWN = 16
"""Hexadecimal digits of the GUID that are shown to a model; it should continue with the other sixteen."""

_MIN_DIGITS = 8
"""Number of consecutive digits of the hidden half that counts as found: guessed with probability 1 in 2^32."""


def search_texts(benchmark: Benchmark, texts: Iterable[str]) -> Record:
    """Count the texts that contain the canary (with or without dashes, any case)."""
    canary = make_guid(benchmark).replace("-", "")
    count = matches = 0
    for text in texts:
        count += 1
        matches += canary in text.lower().replace("-", "")
    return {"probe": "canary in texts", "benchmark": benchmark.name, "texts": count, "found": matches}


def probe_continuation(benchmark: Benchmark, model: Model) -> Record:
    """Check whether a text-to-text model continues the canary when half of the GUID is an input of the benchmark's
    task. Raises `FarshiftError` if the task's inputs or outputs are not text."""
    task = benchmark.task
    if task.type != "sequence" or len(task.inputs) != 1 or not _has_text_inputs(benchmark):
        raise FarshiftError(f"{benchmark.name} is not a text-to-text task, which the canary probe needs")
    digits = make_guid(benchmark).replace("-", "")
    known, hidden = digits[:_KNOWN], digits[_KNOWN:]
    prompt = f"{CANARY} {benchmark.name} {known[:8]}-{known[8:12]}-{known[12:]}-"
    answer = model.predict({task.inputs[0]: np.array([prompt], object)})
    values = list(getattr(answer, "prediction", answer))
    if len(values) != 1:
        raise ModelError(f"the model returned {len(values)} predictions for one text")
    reply = values[0] if isinstance(values[0], str) else ""
    bare = re.sub("[^0-9a-f]", "", reply.lower())
    knows = any(hidden[start : start + _MIN_DIGITS] in bare for start in range(len(hidden) - _MIN_DIGITS + 1))
    return {"probe": "canary continued", "benchmark": benchmark.name, "continued": knows, "said": reply[:200]}


def list_declared_overlaps(card: ModelCard, benchmark: Benchmark) -> list[Record]:
    """One record for each name that a card declares. `overlap` is "test" if the named data contain test rows of the
    benchmark, "source" if it names the source of the test rows, "related" if it names a source made from the same files
    or the same seed, "training" for the benchmark's own training rows, "none" for anything else, known or unknown, and
    "unknown" if the card says so. `why` explains it."""
    records = []
    for field in ("training_data", "pretraining"):
        for name in getattr(card, field):
            overlap, why, rows = _find_overlap(benchmark, name)
            record = {"probe": "declared training data", "benchmark": benchmark.name, "field": field, "declared": name}
            records.append(record | {"overlap": overlap, "rows": rows, "why": why})
    return records


def _find_overlap(benchmark: Benchmark, name: str) -> tuple[str, str, int | None]:
    if name == UNKNOWN:
        return "unknown", "the card does not name it", None
    own, declared = find_source(benchmark.manifest.definition.source.name), _normalise(name)
    if declared in _list_names(own):
        return "source", f"declares training on {own.name}, which contains the split's test rows", None
    if declared in map(_normalise, (benchmark.name, benchmark.manifest.name, benchmark.manifest.full_name)):
        return "training", f"declares {benchmark.name} itself: its training rows are what every entry may train on", 0
    if split := _find_split(declared):
        return _find_split_overlap(benchmark, split)
    for other in load_sources().values():
        if declared in _list_names(other) and (shared := _describe_relation(own, other)):
            why = f"declares training on {other.name}, which {shared} as {own.name}, the source of the test rows"
            return "related", why, None
    return "none", f"{name} is not a source or split that is known to contain test rows of {benchmark.name}", 0


def _normalise(name: str) -> str:
    """A name for comparison: lower case, letters and digits only."""
    return re.sub("[^a-z0-9]+", "", name.lower())


def _list_names(source: Source) -> list[str]:
    return [_normalise(source.name), _normalise(source.definition.title)]


def _find_split(declared: str) -> str:
    """The full name of the split that a declared name refers to, as a split or a benchmark; empty if to none."""
    for benchmark in load_benchmarks().values():
        if _normalise(benchmark.name) == declared:
            return benchmark.definition.split
    manifests = (manifest for manifest in list_manifests() if manifest.frozen)
    named = (item for item in manifests if declared in (_normalise(item.name), _normalise(item.full_name)))
    return next((manifest.full_name for manifest in named), "")


def _find_split_overlap(benchmark: Benchmark, name: str) -> tuple[str, str, int | None]:
    """The overlap with the training rows of another split."""
    try:
        split, own = open_split(name), benchmark.split.source
        if split.source.name != own.name:
            shared = _describe_relation(own, split.source)
            if not shared:
                return "none", f"{name} is over {split.source.name}, and {benchmark.name} over {own.name}", 0
            return "related", f"declares {name}, over {split.source.name}, which {shared} as {own.name}", None
        train = split.part("train").row_ids
        test = np.concatenate([benchmark.view(view)[0].row_ids for view in _VIEWS])
    except Unavailable as error:
        return "none", f"the rows of {name} are not available here: {error}", None
    count = int(np.isin(test, train).sum())
    if not count:
        return "none", f"no test row of {benchmark.name} is among the training rows of {name}", 0
    return (
        "test",
        f"declares {name}: {count} of {len(test)} test rows of {benchmark.name} are training rows there",
        count,
    )


def _describe_relation(first: Source, second: Source) -> str:
    """Describe how two sources share rows: the same files, or the same generator and seed; empty if neither is
    known."""
    origins = []
    for source in (first, second):
        distributions: Sequence[Any] = source.definition.distributions
        files = {pin.sha256 for item in distributions for pin in item.files}
        seeds = {(item.generator, str(item.options["seed"])) for item in distributions if item.options.get("seed")}
        origins.append((files, seeds))
    if origins[0][0] & origins[1][0]:
        return "is read from the same files"
    return "is generated with the same generator and seed" if origins[0][1] & origins[1][1] else ""


def count_duplicate_rows(files: Sequence[Path], benchmark: Benchmark) -> Record:
    """Count the rows of each test view with exact (ignoring case and spaces) or near duplicates in files of texts, list
    the first five by row id, and count those with near duplicates in the benchmark's own training rows (the first
    100,000). Raises `FarshiftError` if the benchmark's inputs are not text."""
    if not _has_text_inputs(benchmark):
        raise FarshiftError(f"{benchmark.name} has inputs that are not text: duplicates are found in texts only")
    views = {name: benchmark.view(name)[0] for name in _VIEWS}
    rows = {name: _join_row_texts(part, benchmark) for name, part in views.items()}
    exact, near = ({name: np.zeros(len(part), bool) for name, part in views.items()} for _ in range(2))
    count, texts = 0, iterate_texts(files)
    while piece := list(islice(texts, PIECE)):
        count += len(piece)
        known = set(map(_hash_text, piece))
        for name in views:
            exact[name] |= np.array([_hash_text(text) in known for text in rows[name]], bool)
            near[name] |= _find_resembling(rows[name], piece)
    train = benchmark.part("train")
    own = _join_row_texts(train.select(np.arange(min(len(train), PIECE))), benchmark)
    counts = {
        name: {
            "rows": len(part),
            "exact": int(exact[name].sum()),
            "near": int((near[name] & ~exact[name]).sum()),
            "near_own_training": int(_find_resembling(rows[name], own).sum()),
            "first": [f"{row:016x}" for row in part.row_ids[exact[name] | near[name]][:5].tolist()],
        }
        for name, part in views.items()
    }
    return {"probe": "duplicates", "benchmark": benchmark.name, "texts": count, "views": counts}


def _has_text_inputs(benchmark: Benchmark) -> bool:
    schema = benchmark.split.source.schema
    return all(schema[name].type == "string" for name in benchmark.task.inputs)


def _join_row_texts(part: Part, benchmark: Benchmark) -> list[str]:
    """The text of each row's inputs, fields joined by spaces."""
    columns = part.numpy(benchmark.task.inputs)
    return [" ".join(values) for values in zip(*(columns[name] for name in benchmark.task.inputs), strict=True)]


def _hash_text(text: str) -> bytes:
    return blake2b(" ".join(text.casefold().split()).encode("utf-8", "replace"), digest_size=16).digest()


def _find_resembling(rows: list[str], texts: list[str]) -> NDArray[np.bool_]:
    """Whether each row is a near duplicate of one of the texts."""
    import pyarrow as pa

    both = make_shingles(pa.chunked_array([pa.array([*rows, *texts], pa.large_string())]))
    return both.resembling(np.arange(len(rows)), np.arange(len(rows), len(rows) + len(texts)))


PIECE = 100_000
"""Number of texts in memory at once."""

_SUFFIXES = (".txt", ".md", ".csv", ".tsv", ".text", ".jsonl", ".ndjson", ".parquet")


def list_text_files(location: Path | str) -> list[Path]:
    """The files of training texts at a path, sorted. Raises `FarshiftError` if there are none that can be read."""
    location = Path(location)
    candidates = sorted(location.rglob("*")) if location.is_dir() else [location]
    files = [path for path in candidates if path.is_file() and path.suffix.lower() in _SUFFIXES]
    if not files:
        raise FarshiftError(
            f"{location}: no texts found; give a folder, or a file that ends with {', '.join(_SUFFIXES)}"
        )
    return files


def iterate_texts(files: Iterable[Path]) -> Iterator[str]:
    """Yield the texts of files: every line, every string in a JSON line, every value of a Parquet text column."""
    for path in files:
        if path.suffix.lower() == ".parquet":
            yield from _iterate_columns(path)
            continue
        with path.open(encoding="utf-8", errors="replace") as lines:
            for number, line in enumerate(lines, 1):
                if path.suffix.lower() not in (".jsonl", ".ndjson"):
                    values: Any = [line]
                else:
                    values = _parse_line(line, f"{path}, line {number}")
                yield from (text.strip() for text in values if text.strip())


def _iterate_columns(path: Path) -> Iterator[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        names = [field.name for field in file.schema_arrow if str(field.type) in ("string", "large_string")]
        for batch in file.iter_batches(PIECE, columns=names) if names else ():
            for column in batch.columns:
                yield from (text for text in column.to_pylist() if text)
    except (pa.ArrowException, OSError) as error:
        raise BadData(f"{path}: cannot be read: {get_first_line(error, 200)}") from error


def _parse_line(line: str, where: str) -> Iterator[str]:
    """Yield every string in a line of JSON."""
    try:
        waiting = [parse_json(line)] if line.strip() else []
    except ValueError as error:
        raise BadData(f"{where}: not JSON") from error
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            waiting += value.values() if isinstance(value, dict) else value
