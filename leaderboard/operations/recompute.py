"""The part of a verification that recomputes every entry, in parallel, and compares it with the ledger.

Results are cached in the user's cache, never on a board: in `boards/computed/<key>.json`, by the submission's digest,
the runs and their identities, and this version's code. An interrupted verification continues from there. A cached file
has its own digest; if it does not match, the result is computed again.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ...benchmarks.benchmark import Benchmark
from ...benchmarks.scoring.record import Score
from ...core.canonical import compute_identity, to_canonical_json
from ...core.documents import parse_json, read_json
from ...core.engines import Needs, map_jobs
from ...core.errors import BadSubmission, FarshiftError, Unavailable
from ...core.files import write_atomically
from ...core.plugins import list_plugin_folders
from ...core.progress import report_progress
from ..board_view import get_derived_folder
from ..entries import Entry, RescoreRecord, get_submission_path
from ..submission.validate import validate_submission
from ..tables.standings import OWN, explain_unknown
from .submit import extract_headline_values, make_entry_name, make_run_item, score_entry

MANY = 4
"""Minimum number of submissions for several processes."""

CACHE_VERSION = 2
"""Version of the cache format: raise it with every change of the content."""

SUBPACKAGES = ("core", "splits", "loaders", "benchmarks", "leaderboard")
LIBRARIES = ("numpy", "pyarrow")


@dataclass(frozen=True)
class RecomputeJob:
    """What to compute for a submission: its file, and for each run the entry's name and identity. fresh: ignore cached
    results."""

    file: Path
    digest: str
    runs: Mapping[int, tuple[str, str]]
    fresh: bool = False


@dataclass(frozen=True)
class Recomputation:
    """The result. metadata: name, team, team key and note of the submission; runs: for each run the expected ledger
    entry (`item`), and `score`, the digest of its score, with the `scorer`, or `problem`. unavailable, invalid: why
    nothing could be computed. before: whether an earlier verification computed it."""

    metadata: Mapping[str, str]
    runs: Mapping[int, Mapping[str, Any]]
    unavailable: str = ""
    invalid: str = ""
    before: bool = False


def recompute_entries(
    entries: Sequence[Entry], known: Mapping[str, Benchmark], files: Mapping[str, Path], workers: int, fresh: bool
) -> dict[str, Recomputation]:
    """Recompute everything that this version of Farshift can score, in several processes. files: the board's files
    by their paths. Returns the results by the submission's digest."""
    runs: dict[str, dict[int, tuple[str, str]]] = {}
    for entry in entries:
        if entry.scores and get_submission_path(entry.submission) in files and not explain_older(known, entry):
            runs.setdefault(entry.submission, {})[entry.run] = (entry.entry, entry.scores[-1].entry_identity)
    jobs = [RecomputeJob(files[get_submission_path(digest)], digest, of, fresh) for digest, of in runs.items()]
    parallel = workers != 1 and len(jobs) >= MANY
    needs = Needs(workers=workers, threads=1)
    computed = map_jobs("processes", recompute_scores, jobs, needs) if parallel else map(recompute_scores, jobs)
    results = {}
    for job, result in zip(jobs, computed, strict=True):
        results[job.digest] = result
        report_progress("recomputing", len(results), len(jobs))
    return results


def recompute_scores(job: RecomputeJob) -> Recomputation:
    """Recompute a submission's scores, or read them from the cache."""
    runs_by_number = {str(run): list(names) for run, names in job.runs.items()}
    parts = {"version": CACHE_VERSION, "submission": job.digest, "runs": runs_by_number, "code": compute_code_digest()}
    cache_path = get_derived_folder() / "computed" / f"{compute_identity(parts)[:32]}.json"
    if not job.fresh and (cached := _read_cache(cache_path)) is not None:
        return cached
    runs: dict[int, dict[str, Any]] = {}
    try:
        submission = validate_submission(job.file, set(job.runs))
        for run, entry in zip(sorted(job.runs), submission.entries, strict=True):
            runs[run] = {"item": make_run_item(job.runs[run][0], run, entry)}
            try:
                score = score_entry(entry)
            except Unavailable:
                raise
            except FarshiftError as error:
                runs[run]["problem"] = str(error)
            else:
                runs[run] |= {"score": compute_identity(score.to_dict()), "scorer": score.scorer}
    except BadSubmission as error:
        return Recomputation({}, {}, invalid=str(error))
    except FarshiftError as error:
        return Recomputation({}, {}, unavailable=str(error))
    metadata = {name: getattr(submission, name) for name in ("name", "team", "team_key", "choose", "note")}
    if not any("problem" in run for run in runs.values()):
        content = to_canonical_json({"metadata": metadata, "runs": {str(run): item for run, item in runs.items()}})
        with suppress(FarshiftError):  # a full or read-only cache: computed again next time
            write_atomically(cache_path, sha256(content).hexdigest().encode() + b"\n" + content)
    return Recomputation(metadata, runs)


def _read_cache(path: Path) -> Recomputation | None:
    try:
        digest, _, content = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    if sha256(content).hexdigest().encode() != digest:
        return None
    record = parse_json(content)
    runs = {int(run): result for run, result in record["runs"].items()}
    return Recomputation(record["metadata"], runs, before=True)


def compute_code_digest() -> str:
    """A digest of all code that determines a score: this package's, that in `FARSHIFT_PATH`, and the versions of the
    numerical libraries."""
    return _compute_code_digest(tuple(list_plugin_folders()))


@cache
def _compute_code_digest(folders: tuple[Path, ...]) -> str:
    package, *own = folders
    code = [
        sha256(file.read_bytes()).hexdigest()
        for folder in (*(package / subpackage for subpackage in SUBPACKAGES), *own)
        for file in sorted(folder.rglob("*.py"))
    ]
    libraries = {name: version(name) for name in LIBRARIES}
    return compute_identity({"code": code, "libraries": libraries, "python": platform.python_version()})


def explain_older(known: Mapping[str, Benchmark], entry: Entry) -> str:
    """Why this version of Farshift cannot recompute an entry's newest score; empty if it can."""
    newest = entry.scores[-1]
    try:
        if entry.benchmark not in known:
            return explain_unknown(entry.benchmark)
        benchmark = known[entry.benchmark]
        if benchmark.identity(entry.budget, entry.steps, entry.selection) == newest.entry_identity:
            return ""
        scorer = benchmark.made_under(newest.entry_identity, entry.budget, entry.steps, entry.selection)
    except FarshiftError as error:
        return f"{error} ({OWN})"
    if scorer is not None:
        return f"scored by scorer {scorer}: run farshift board rescore for this version's"
    return "it has an older identity, which this version does not score"


def find_inconsistencies(entry: Entry, files: Mapping[str, Path]) -> list[str]:
    """Contradictions between an entry's records and the ledger or the stored scores."""
    if not entry.scores:
        return ["was submitted but never scored"]
    problems = []
    first = entry.scores[0].entry_identity
    if make_entry_name(entry.submission, entry.run, first) != entry.entry:
        problems.append("its name does not match its submission, run and identity")
    for score in entry.scores:
        if list(score.files) != [score.path]:
            problems.append(f"its record does not name exactly {score.path}")
    for before, after in zip(entry.scores, entry.scores[1:], strict=False):
        assert isinstance(after, RescoreRecord)
        for which, score in (("before", before), ("after", after)):
            if score.path not in files:
                continue
            values = extract_headline_values(Score.from_dict(read_json(files[score.path], dict, score.path)))
            if values != getattr(after, which).model_dump():
                problems.append(f"the value {which} its rescoring by scorer {after.scorer} differs from {score.path}")
    return problems


def find_differences(entry: Entry, computed: Recomputation) -> list[str]:
    """Differences between an entry's records and its submission."""
    newest, run = entry.scores[-1], computed.runs[entry.run]
    problems = [
        f"its {name} is {getattr(entry, name)!r} in the ledger but {submitted!r} in the submission"
        for name, submitted in (*computed.metadata.items(), *run["item"].items())
        if getattr(entry, name) != submitted
    ]
    if "problem" in run:
        return [*problems, f"can no longer be scored: {run['problem']}"]
    if run["scorer"] != newest.scorer:
        problems.append(f"the ledger names scorer {newest.scorer}, but this identity belongs to scorer {run['scorer']}")
    if run["score"] != newest.digest:
        problems.append("its recomputed score differs from the ledger")
    return problems
