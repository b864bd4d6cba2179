"""All contamination probes of one command, and descriptions of their records."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...benchmarks.benchmark import CANARY, Benchmark, find_benchmark, load_benchmarks, make_guid
from ...benchmarks.harness.factory import make_factory
from ...benchmarks.model import Model
from ...core.documents import parse_json, read_toml
from ...core.errors import BadData, FarshiftError, ModelError, Unavailable, get_first_line
from ...loaders.acquire.source import Source, find_source, load_sources
from ...loaders.part import Part
from ...loaders.split import open_split
from ...splits.catalogue import list_manifests
from ...splits.measures.near_duplicates import make_shingles
from ...splits.rows import compute_first_ids
from ...splits.schema import Schema
from ..validation.card import UNKNOWN, ModelCard, parse_team_and_model
from ..validation.problem import Problems

if TYPE_CHECKING:
    import pyarrow as pa

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
        problems = Problems()
        contents = parse_team_and_model(read_toml(Path(card)), str(card), problems)
        problems.refuse_if_any("probe")
        records += list_declared_overlaps(contents.model, benchmark)
    if data is not None:
        files = list_text_files(data)
        records.append(search_texts(benchmark, (text for piece in iterate_pieces(files) for text in piece)))
        records.append(count_duplicate_rows(files, benchmark))
    if model is not None:
        schema = benchmark.split.source.schema
        records.append(probe_continuation(benchmark, schema, make_factory(model, benchmark.task)(0, {})))
    return records


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


_KNOWN = 16
"""Hexadecimal digits of the GUID that are shown to a model; it should continue with the other sixteen."""

_MIN_DIGITS = 8
"""Number of consecutive digits of the hidden half that counts as found: guessed with probability 1 in 2^32."""


def search_texts(benchmark: Benchmark, texts: Iterable[str]) -> dict[str, Any]:
    """Count the texts that contain the canary (with or without dashes, any case); list the first of them, from 0."""
    canary = make_guid(benchmark)
    bare = canary.replace("-", "")
    matches, first, count = 0, None, 0
    for count, text in enumerate(texts, 1):
        low = text.lower()
        if canary in low or bare in low:
            matches += 1
            first = count - 1 if first is None else first
    return {"probe": "canary in texts", "benchmark": benchmark.name, "texts": count, "found": matches, "first": first}


def probe_continuation(benchmark: Benchmark, schema: Schema, model: Model) -> dict[str, Any]:
    """Check whether a text-to-text model continues the canary when half of the GUID is an input of the benchmark's
    task. Raises `FarshiftError` if the task's inputs or outputs are not text."""
    task = benchmark.task
    if task.type != "sequence" or len(task.inputs) != 1 or schema[task.inputs[0]].type != "string":
        raise FarshiftError(f"{benchmark.name} is not a text-to-text task, which the canary probe needs")
    digits = make_guid(benchmark).replace("-", "")
    known, hidden = digits[:_KNOWN], digits[_KNOWN:]
    prompt = f"{CANARY} {benchmark.name} {known[:8]}-{known[8:12]}-{known[12:]}-"
    answer = model.predict({task.inputs[0]: np.array([prompt], object)})
    values = list(getattr(answer, "prediction", answer))
    if len(values) != 1:
        raise ModelError(f"the model returned {len(values)} predictions for one text")
    reply = values[0] if isinstance(values[0], str) else ""
    bare = "".join(letter for letter in reply.lower() if letter in "0123456789abcdef")
    knows = any(hidden[start : start + _MIN_DIGITS] in bare for start in range(len(hidden) - _MIN_DIGITS + 1))
    return {"probe": "canary continued", "benchmark": benchmark.name, "continued": knows, "said": reply[:200]}


FIELDS = ("training_data", "pretraining")


def list_declared_overlaps(card: ModelCard, benchmark: Benchmark) -> list[dict[str, Any]]:
    """One record for each name that a card declares. `overlap` is "test" if the named data contain test rows of the
    benchmark, "source" if it names the source of the test rows, "related" if it names a source made from the same files
    or the same seed, "training" for the benchmark's own training rows, "none" for anything else, known or unknown, and
    "unknown" if the card says so. `why` explains it."""
    records = []
    for field in FIELDS:
        for name in getattr(card, field):
            overlap, why, rows = _find_overlap(benchmark, name)
            record = {"probe": "declared training data", "benchmark": benchmark.name, "field": field, "declared": name}
            records.append(record | {"overlap": overlap, "rows": rows, "why": why})
    return records


def _find_overlap(benchmark: Benchmark, name: str) -> tuple[str, str, int | None]:
    if name == UNKNOWN:
        return "unknown", "the card does not name it", None
    own = find_source(benchmark.manifest.definition.source.name)
    plain_name = normalise_name(name)
    if plain_name in (normalise_name(own.name), normalise_name(own.definition.title)):
        return "source", f"declares training on {own.name}, which contains the split's test rows", None
    own_names = (benchmark.name, benchmark.manifest.name, benchmark.manifest.full_name)
    if plain_name in map(normalise_name, own_names):
        return "training", f"declares {benchmark.name} itself: its training rows are what every entry may train on", 0
    split = _find_split(plain_name)
    if split is not None:
        return _find_split_overlap(benchmark, split)
    for other in load_sources().values():
        if plain_name in (normalise_name(other.name), normalise_name(other.definition.title)) and (
            shared := describe_relation(own, other)
        ):
            return (
                "related",
                f"declares training on {other.name}, which {shared} as {own.name}, the source of the test rows",
                None,
            )
    return "none", f"{name} is not a source or split that is known to contain test rows of {benchmark.name}", 0


def normalise_name(name: str) -> str:
    """Normalise a name for comparison: lower case, letters and digits only."""
    return re.sub("[^a-z0-9]+", "", name.lower())


def _find_split(plain_name: str) -> str | None:
    """The full name of the split that a declared name refers to, as a split or a benchmark."""
    for benchmark in load_benchmarks().values():
        if normalise_name(benchmark.name) == plain_name:
            return benchmark.definition.split
    for manifest in list_manifests():
        if manifest.frozen and plain_name in (normalise_name(manifest.name), normalise_name(manifest.full_name)):
            return manifest.full_name
    return None


def _find_split_overlap(benchmark: Benchmark, name: str) -> tuple[str, str, int | None]:
    """The overlap with the training rows of another split."""
    try:
        split = open_split(name)
        own = benchmark.split.source
        if split.source.name != own.name:
            shared = describe_relation(own, split.source)
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
    why = f"declares {name}: {count} of {len(test)} test rows of {benchmark.name} are training rows there"
    return "test", why, count


def describe_relation(first: Source, second: Source) -> str:
    """Describe how two sources share rows: the same files, or the same generator and seed; empty if neither is
    known."""
    first_origins, second_origins = (_list_origins(source.definition.distributions) for source in (first, second))
    if first_origins[0] & second_origins[0]:
        return "is read from the same files"
    return "is generated with the same generator and seed" if first_origins[1] & second_origins[1] else ""


def _list_origins(distributions: Sequence[Any]) -> tuple[set[str], set[tuple[str, str]]]:
    files = {pin.sha256 for distribution in distributions for pin in distribution.files}
    seeds = {
        (distribution.generator, str(distribution.options["seed"]))
        for distribution in distributions
        if distribution.options.get("seed")
    }
    return files, seeds


_NAMED = 5
"""Maximum number of row ids of duplicates that are listed."""

Flags = NDArray[np.bool_]


def count_duplicate_rows(files: Sequence[Path], benchmark: Benchmark) -> dict[str, Any]:
    """Count the rows of each test view with exact or near duplicates in files of texts, list the first few by row id,
    and count those with near duplicates in the benchmark's own training rows. Raises `FarshiftError` if the benchmark's
    inputs are not text and no Parquet file has columns of their names."""
    views = {name: benchmark.view(name)[0] for name in _VIEWS}
    texts = {name: join_row_texts(part, benchmark) for name, part in views.items()}
    exact = {name: np.zeros(len(part), bool) for name, part in views.items()}
    near = {name: np.zeros(len(part), bool) for name, part in views.items()}
    rows = _mark_column_matches(files, benchmark, views, exact)
    if not rows and not all(texts.values()):
        needed = ", ".join(benchmark.task.inputs)
        raise FarshiftError(f"{benchmark.name} is not a text task: give Parquet with its inputs as columns ({needed})")
    texts = {name: view_texts for name, view_texts in texts.items() if view_texts}
    count = 0
    for piece in iterate_pieces(files):
        count += len(piece)
        known = {compute_fingerprint(text) for text in piece}
        for name, view_texts in texts.items():
            exact[name] |= np.array([compute_fingerprint(text) in known for text in view_texts], bool)
            near[name] |= _find_resembling(view_texts, piece)
    counts = {}
    for name, part in views.items():
        first = part.row_ids[exact[name] | near[name]][:_NAMED].tolist()
        counts[name] = {
            "rows": len(part),
            "exact": int(exact[name].sum()),
            "near": int((near[name] & ~exact[name]).sum()),
            "near_own_training": _count_training_matches(benchmark, texts[name]) if name in texts else 0,
            "first": [f"{row:016x}" for row in first],
        }
    return {"probe": "duplicates", "benchmark": benchmark.name, "texts": count, "rows": rows, "views": counts}


def join_row_texts(part: Part, benchmark: Benchmark) -> list[str]:
    """The text of each row's inputs, fields joined by spaces; empty if an input is not text."""
    schema = benchmark.split.source.schema
    if any(schema[name].type != "string" for name in benchmark.task.inputs):
        return []
    columns = part.numpy(benchmark.task.inputs)
    fields = (columns[name].tolist() for name in benchmark.task.inputs)
    return [" ".join(values) for values in zip(*fields, strict=True)]


def compute_fingerprint(text: str) -> bytes:
    """A 16-byte digest of a text, ignoring case and spaces."""
    return blake2b(" ".join(text.casefold().split()).encode("utf-8", "replace"), digest_size=16).digest()


def _mark_column_matches(
    files: Sequence[Path], benchmark: Benchmark, views: dict[str, Part], exact: dict[str, Flags]
) -> int:
    """Mark the rows whose inputs occur in Parquet columns of their names; return how many file rows were compared."""
    import pyarrow as pa

    schema = benchmark.split.source.schema
    fields = schema.of_role("input")
    names = [field.name for field in fields]
    types = pa.schema([(field.name, field.arrow()) for field in fields])
    compared = 0
    for path in files:
        if path.suffix.lower() not in _PARQUET:
            continue
        for table in _read_parquet(path, lambda columns: names if set(names) <= set(columns.names) else ()):
            try:
                ids = compute_first_ids(table.cast(types), schema)
            except (ValueError, BadData):  # columns of the same names with other content
                continue
            compared += len(ids)
            for name, part in views.items():
                exact[name] |= np.isin(compute_first_ids(part.arrow(names), schema), ids)
    return compared


def _find_resembling(rows: list[str], texts: list[str]) -> Flags:
    """Whether each row is a near duplicate of one of the texts."""
    import pyarrow as pa

    both = make_shingles(pa.chunked_array([pa.array([*rows, *texts], pa.large_string())]))
    return both.resembling(np.arange(len(rows)), np.arange(len(rows), len(rows) + len(texts)))


def _count_training_matches(benchmark: Benchmark, rows: list[str]) -> int:
    """Count the rows that are near duplicates of the benchmark's own training rows (the first 100,000)."""
    train = benchmark.part("train")
    own = join_row_texts(train.select(np.arange(min(len(train), PIECE))), benchmark)
    return int(_find_resembling(rows, own).sum())


_LINES = (".txt", ".md", ".csv", ".tsv", ".text")
_JSON = (".jsonl", ".ndjson")
_PARQUET = (".parquet",)
PIECE = 100_000
"""Number of texts in memory at once."""


def list_text_files(location: Path | str) -> list[Path]:
    """The files of training texts at a path, sorted. Raises `FarshiftError` if there are none that can be read."""
    location = Path(location)
    known = (*_LINES, *_JSON, *_PARQUET)
    candidates = sorted(location.rglob("*")) if location.is_dir() else [location]
    files = [path for path in candidates if path.is_file() and path.suffix.lower() in known]
    if not files:
        raise FarshiftError(f"{location}: no texts found; give a folder, or a file that ends with {', '.join(known)}")
    return files


def iterate_pieces(files: Sequence[Path]) -> Iterator[list[str]]:
    """Yield the texts of files in lists of at most 100,000: every line, every string in a JSON line, every value of a
    text column."""
    texts = (text for path in files for text in _iterate_texts(path))
    while piece := list(islice(texts, PIECE)):
        yield piece


def _read_parquet(path: Path, choose: Callable[[pa.Schema], Sequence[str]]) -> Iterator[pa.Table]:
    """Yield the chosen columns of a Parquet file in pieces."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        if names := choose(file.schema_arrow):
            for batch in file.iter_batches(PIECE, columns=list(names)):
                yield pa.Table.from_batches([batch])
    except (pa.ArrowException, OSError) as error:
        raise BadData(f"{path}: cannot be read: {get_first_line(error, 200)}") from error


def _iterate_texts(path: Path) -> Iterator[str]:
    suffix = path.suffix.lower()
    if suffix in _PARQUET:
        for table in _read_parquet(path, _list_text_columns):
            for column in table.columns:
                yield from (text for text in column.to_pylist() if text)
        return
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if suffix in _JSON:
                yield from _iterate_json_texts(line, f"{path}, line {number}")
            elif text := line.strip():
                yield text


def _list_text_columns(schema: pa.Schema) -> list[str]:
    return [field.name for field in schema if str(field.type) in ("string", "large_string")]


def _iterate_json_texts(line: str, where: str) -> Iterator[str]:
    """Yield every string in a line of JSON."""
    if not line.strip():
        return
    try:
        waiting = [parse_json(line)]
    except ValueError as error:
        raise BadData(f"{where}: not JSON") from error
    while waiting:
        value = waiting.pop()
        if isinstance(value, str) and value.strip():
            yield value.strip()
        elif isinstance(value, dict):
            waiting += list(value.values())
        elif isinstance(value, list):
            waiting += value
