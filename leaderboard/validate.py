"""Validation: may this file be scored? Every problem at once, each with where it is. Nothing in it is ever run.

`farshift submit` and the board use this one function.
"""

from __future__ import annotations

import io
import lzma
import re
import tomllib
import zipfile
import zlib
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..benchmarks.benchmark import MAX_CANDIDATES, MAX_SEEDS, Benchmark, find_benchmark, name_problem
from ..benchmarks.run import Carded, card_problem
from ..splits.errors import BadSubmission, FarshiftError, Unavailable
from .submission import CARD, FORMAT
from .validate_predictions import checked_predictions

if TYPE_CHECKING:
    import pyarrow as pa

MAX_BYTES = 1 << 30
MAX_RUNS = 500
_NAMES = re.compile(r"^(submission\.toml|runs/\d{1,3}/(run\.toml|predictions\.parquet))$")


@dataclass(frozen=True)
class Entry(Carded):
    """One valid run of a submission, ready to be scored."""

    benchmark: Benchmark
    predictions: pa.Table


@dataclass(frozen=True)
class Submission:
    """A valid submission."""

    digest: str
    team: str
    note: str
    entries: list[Entry]


def check(path: Path | str, only: set[int] | None = None) -> Submission:
    """A submission file, read and validated. `BadSubmission` lists every problem found. `only` names the runs to look
    at (a board that recomputes leaves out those of an older identity)."""
    path = Path(path)
    if not path.is_file():
        raise BadSubmission(f"{path} does not exist or is not a file")
    if path.stat().st_size > MAX_BYTES:
        raise BadSubmission(f"{path} has {path.stat().st_size} bytes; at most {MAX_BYTES} are taken")
    content = path.read_bytes()
    problems: list[str] = []
    files = _unzip(content, problems)
    card = _toml(files, CARD, problems)
    listed = card.get("runs") if isinstance(card.get("runs"), list) else []
    if card and (card.get("format") != FORMAT or not listed):
        problems.append(f"{CARD}: format must be {FORMAT}, and runs must be listed")
    chosen = [(number, item) for number, item in enumerate(listed or []) if only is None or number in only]
    entries = [_entry(number, item, files, problems) for number, item in chosen]
    for name in sorted(set(files) - {CARD} - {f"runs/{n}/{f}" for n in range(len(listed or [])) for f in _FILES}):
        problems.append(f"{name}: not listed in {CARD}")
    if problems:
        count = f"{len(problems)} problems: " if len(problems) > 1 else ""
        raise BadSubmission(f"{path.name}: {count}{'; '.join(problems)}")
    good = [entry for entry in entries if entry is not None]
    return Submission(sha256(content).hexdigest(), str(card.get("team", "")), str(card.get("note", "")), good)


_FILES = ("run.toml", "predictions.parquet")


def _unzip(content: bytes, problems: list[str]) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as bundle:
            entries = bundle.infolist()
            if len(entries) > 2 * MAX_RUNS + 1 or sum(entry.file_size for entry in entries) > MAX_BYTES:
                problems.append(f"unpacks to over {MAX_BYTES} bytes or {MAX_RUNS} runs")
                return {}
            files: dict[str, bytes] = {}
            for entry in entries:
                if not _NAMES.match(entry.filename) or entry.filename in files:
                    problems.append(f"unexpected entry {entry.filename[:80]!r}")
                else:
                    files[entry.filename] = bundle.read(entry)
            return files
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, RuntimeError, ValueError, EOFError) as error:
        problems.append(f"not a readable zip: {error}")
        return {}


def _toml(files: dict[str, bytes], name: str, problems: list[str]) -> dict[str, Any]:
    try:
        return tomllib.loads(files[name].decode("utf-8"))
    except KeyError:
        problems.append(f"{name} is missing")
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a plain ValueError
        problems.append(f"{name}: not valid TOML: {error}")
    return {}


def _entry(number: int, listed: Any, files: dict[str, bytes], problems: list[str]) -> Entry | None:
    where = f"runs/{number}"
    before = len(problems)
    card = _toml(files, f"{where}/run.toml", problems)
    if len(problems) > before:
        return None
    problem = card_problem(card) or _card_values(card)
    if not problem and (not isinstance(listed, dict) or listed.get("digest") != card["digests"]["run"]):
        problem = f"is not the run that {CARD} lists"
    if problem:
        problems.append(f"{where}/run.toml: {problem}")
        return None
    content = files.get(f"{where}/predictions.parquet", b"")
    if sha256(content).hexdigest() != card["digests"]["predictions"]:
        problems.append(f"{where}/predictions.parquet: missing, or its digest is not the one in run.toml")
        return None
    try:
        benchmark = find_benchmark(card["benchmark"]["name"])
        if card["benchmark"]["entry_identity"] != benchmark.identity(
            card["budget"]["name"], card["budget"].get("steps"), card["benchmark"]["selection"]
        ):
            problems.append(f"{where}: made for another version of {benchmark.name}; run it again")
            return None
        carded = Carded(card)
        predictions = checked_predictions(content, benchmark, carded, f"{where}/predictions.parquet", problems)
    except Unavailable:
        raise  # not the submission's fault
    except FarshiftError as error:
        problems.append(f"{where}: {error}")
        return None
    return None if predictions is None else Entry(card, benchmark, predictions)


def _card_values(card: dict[str, Any]) -> str:
    budget, model, benchmark = card["budget"], card["model"], card["benchmark"]
    seeds = budget.get("seeds")
    if budget.get("name") not in ("full", "quick"):
        return f"budget {budget.get('name')!r} is neither full nor quick"
    whole = isinstance(seeds, list) and all(type(seed) is int and 0 <= seed < 2**31 for seed in seeds)
    if not whole or not 0 < len(seeds) <= MAX_SEEDS:
        return f"seeds must be 1 to {MAX_SEEDS} whole numbers, each from 0 to 2147483647"
    steps = budget.get("steps")
    if steps is not None and (type(steps) is not int or not 0 < steps < 2**31):
        return "steps must be a whole number above 0"
    if not isinstance(budget.get("device"), str):
        return "device must be a text"
    if len(set(seeds)) != len(seeds):
        return "a seed is listed twice"
    if problem := name_problem(model.get("name")):
        return problem
    if not all(isinstance(benchmark.get(name), str) for name in ("name", "entry_identity", "selection")):
        return "lacks the benchmark's name, entry identity or selection rule"
    return _spent_problem(card["spent"]) or _candidate_problem(model.get("candidates"), model.get("finals"))


def _spent_problem(spent: dict[str, Any]) -> str:
    touched, by_seed = spent.get("touched"), spent.get("by_seed")
    if not isinstance(touched, list) or not set(map(str, touched)) <= _TOUCHABLE:
        return f"touched must list none, one or more of {', '.join(sorted(_TOUCHABLE))}"
    if not isinstance(by_seed, dict) or not all(isinstance(seed, dict) for seed in by_seed.values()):
        return "spent must have a table for each seed"
    return ""


_TOUCHABLE = {"ood_val", "unlabelled"}
"""What `fit` may ask for beyond training and validation rows."""


def _candidate_problem(candidates: Any, finals: Any) -> str:
    if not isinstance(candidates, list) or not 0 < len(candidates) <= MAX_CANDIDATES:
        return f"candidates must list 1 to {MAX_CANDIDATES} names"
    if any(not isinstance(name, str) or not 0 < len(name) <= 201 or not name.isprintable() for name in candidates):
        return "a candidate's name must be 1 to 201 printable characters"
    if len(set(candidates)) < len(candidates):
        return "a candidate is listed twice"
    if not isinstance(finals, list) or not finals or any(name not in candidates for name in finals):
        return "finals must list the last checkpoint of each setting, each one of the candidates"
    return ""
