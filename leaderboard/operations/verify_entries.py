"""The part of a verification that recomputes every entry, in parallel, and compares it with the ledger."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...benchmarks.benchmark import Benchmark
from ...benchmarks.scoring.record import Score
from ...core.engines import Needs, map_jobs
from ...core.errors import FarshiftError, UnknownName
from ...core.progress import report_progress
from ..entries import Entry, RescoreRecord, get_submission_path
from ..storage.readers import BoardReader
from .recompute import Recomputation, RecomputeJob, recompute_scores
from .submit import extract_headline_values, make_entry_name

MANY = 4
"""Minimum number of submissions for several processes."""

Results = Mapping[str, Recomputation]
"""Results by the path of the submission's file."""


@dataclass
class EntryFindings:
    """The differences, the entries that could not be recomputed here with the reason, and the number of verified
    ones."""

    differences: list[str]
    not_recomputed: list[str]
    verified: int = 0


def recompute_entries(
    copy: BoardReader,
    entries: Sequence[Entry],
    known: Mapping[str, Benchmark],
    good: set[str],
    rows: bool,
    workers: int,
    fresh: bool,
) -> Results:
    """Recompute everything that this version of Farshift can score, in several processes; results are cached as they
    arrive. rows: whether row scores are needed."""
    runs: dict[str, dict[int, tuple[str, str]]] = {}
    for entry in entries:
        if (
            entry.scores
            and not explain_not_recomputable(known, entry)
            and get_submission_path(entry.submission) in good
        ):
            runs.setdefault(entry.submission, {})[entry.run] = (entry.entry, entry.scores[-1].entry_identity)
    jobs: dict[str, RecomputeJob] = {}
    for digest, those in runs.items():
        file = copy.file(get_submission_path(digest))
        if file is not None:
            jobs[get_submission_path(digest)] = RecomputeJob(file, digest, those, rows, fresh)
    results = {}
    side_by_side = Needs(workers=workers, threads=1)
    ran = (
        map_jobs("processes", recompute_scores, list(jobs.values()), side_by_side)
        if _is_parallel_worthwhile(jobs, workers)
        else None
    )
    for number, (path, computed) in enumerate(zip(jobs, ran or map(recompute_scores, jobs.values()), strict=True)):
        results[path] = computed
        report_progress("recomputing", number + 1, len(jobs))
    return results


def _is_parallel_worthwhile(jobs: Mapping[str, RecomputeJob], workers: int) -> bool:
    return workers != 1 and len(jobs) >= MANY


def verify_entry(
    copy: BoardReader, entry: Entry, known: Mapping[str, Benchmark], good: set[str], results: Results
) -> EntryFindings:
    """Compare one entry with the results for its submission."""
    findings = EntryFindings([f"{entry}: {problem}" for problem in _find_inconsistencies(copy, entry, good)], [])
    if not entry.scores:
        return findings
    computed = results.get(get_submission_path(entry.submission))
    if why := explain_not_recomputable(known, entry):
        findings.not_recomputed.append(f"{entry}: {why}")
    elif computed is None:
        pass  # its submission is missing or was changed, which is already reported
    elif computed.unavailable:
        findings.not_recomputed.append(f"{entry}: {computed.unavailable}")
    elif computed.invalid:
        findings.differences.append(f"{entry}: its submission is no longer valid: {computed.invalid}")
    else:
        findings.differences += [f"{entry}: {problem}" for problem in _find_differences(entry, computed)]
        findings.verified = not findings.differences
    return findings


def explain_not_recomputable(known: Mapping[str, Benchmark], entered: Entry) -> str:
    """Why this version of Farshift cannot recompute an entry's newest score; empty if it can."""
    newest = entered.scores[-1]
    try:
        if entered.benchmark not in known:
            raise UnknownName("benchmark", entered.benchmark, known)
        benchmark = known[entered.benchmark]
        if benchmark.identity(entered.budget, entered.steps, entered.selection) == newest.entry_identity:
            return ""
        scorer = benchmark.made_under(newest.entry_identity, entered.budget, entered.steps, entered.selection)
    except FarshiftError as error:
        return f"{error} (if it is your own, set FARSHIFT_PATH to the folder that defines it)"
    if scorer is not None:
        return f"scored by scorer {scorer}: run farshift board rescore for this version's"
    return "it has an older identity, which this version does not score"


def _find_inconsistencies(copy: BoardReader, entered: Entry, good: set[str]) -> list[str]:
    """Contradictions between an entry's records and the ledger or the stored scores."""
    if not entered.scores:
        return ["was submitted but never scored"]
    problems = []
    first = entered.scores[0].entry_identity
    if make_entry_name(entered.submission, entered.run, first) != entered.entry:
        problems.append("its name does not match its submission, run and identity")
    for score in entered.scores:
        if list(score.files) != [score.path]:
            problems.append(f"its record does not name exactly {score.path}")
    for before, after in zip(entered.scores, entered.scores[1:], strict=False):
        assert isinstance(after, RescoreRecord)
        for which, score in (("before", before), ("after", after)):
            file = copy.file(score.path) if score.path in good else None
            if (
                file
                and extract_headline_values(Score.from_dict(json.loads(file.read_bytes())))
                != getattr(after, which).model_dump()
            ):
                problems.append(f"the value {which} its rescoring by scorer {after.scorer} differs from {score.path}")
    return problems


def _find_differences(entered: Entry, computed: Recomputation) -> list[str]:
    """Differences between an entry's records and its submission."""
    newest, run = entered.scores[-1], computed.runs[entered.run]
    comparisons = [*((name, getattr(entered, name), submitted) for name, submitted in computed.metadata.items())]
    comparisons += [(name, getattr(entered, name), submitted) for name, submitted in run["item"].items()]
    problems = [
        f"its {name} is {stated!r} in the ledger but {submitted!r} in the submission"
        for name, stated, submitted in comparisons
        if stated != submitted
    ]
    if "problem" in run:
        return [*problems, f"can no longer be scored: {run['problem']}"]
    if run["scorer"] != newest.scorer:
        problems.append(f"the ledger names scorer {newest.scorer}, but this identity belongs to scorer {run['scorer']}")
    if run["score"] != newest.digest:
        problems.append("its recomputed score differs from the ledger")
    return problems
