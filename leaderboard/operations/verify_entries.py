"""Of a verification the part that scores: every entry computed again, side by side, and held to what the ledger says
of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...benchmarks.benchmark import Benchmark
from ...benchmarks.scoring.record import Score
from ...core.engines import Needs, map_jobs
from ...core.errors import FarshiftError, UnknownName
from ...core.progress import advance
from ..entries import Entry, Rescored, submission_path
from ..storage.readers import BoardReader
from .recompute import Computed, Due, recompute
from .submit import entry_name, values

MANY = 4
"""From so many submissions on, several processes compute."""

Results = Mapping[str, Computed]
"""What was computed, by the path of the file that it was computed from."""


@dataclass
class Found:
    """What is wrong, what could not be computed here, with why, and how many entries are as the ledger says."""

    differences: list[str]
    not_recomputed: list[str]
    verified: int = 0


def compute(
    copy: BoardReader,
    entries: Sequence[Entry],
    known: Mapping[str, Benchmark],
    good: set[str],
    rows: bool,
    workers: int,
    fresh: bool,
) -> Results:
    """Compute all that this version of Farshift can score: by several processes, each result kept as it comes.
    rows: whether the scores of rows are wanted."""
    runs: dict[str, dict[int, tuple[str, str]]] = {}
    for one in entries:
        if one.scores and not not_recomputable(known, one) and submission_path(one.submission) in good:
            runs.setdefault(one.submission, {})[one.run] = (one.entry, one.scores[-1].entry_identity)
    jobs: dict[str, Due] = {}
    for digest, those in runs.items():
        file = copy.file(submission_path(digest))
        if file is not None:
            jobs[submission_path(digest)] = Due(file, digest, those, rows, fresh)
    found = {}
    side_by_side = Needs(workers=workers, threads=1)
    ran = map_jobs("processes", recompute, list(jobs.values()), side_by_side) if _pays(jobs, workers) else None
    for number, (path, computed) in enumerate(zip(jobs, ran or map(recompute, jobs.values()), strict=True)):
        found[path] = computed
        advance("recomputing", number + 1, len(jobs))
    return found


def _pays(jobs: Mapping[str, Due], workers: int) -> bool:
    return workers != 1 and len(jobs) >= MANY


def verify_entry(
    copy: BoardReader, entry: Entry, known: Mapping[str, Benchmark], good: set[str], made: Results
) -> Found:
    """Hold one entry to what was computed of its submission."""
    found = Found([f"{entry}: {problem}" for problem in _inconsistencies(copy, entry, good)], [])
    if not entry.scores:
        return found
    computed = made.get(submission_path(entry.submission))
    if why := not_recomputable(known, entry):
        found.not_recomputed.append(f"{entry}: {why}")
    elif computed is None:
        pass  # its submission is missing or was changed, which is named
    elif computed.unavailable:
        found.not_recomputed.append(f"{entry}: {computed.unavailable}")
    elif computed.invalid:
        found.differences.append(f"{entry}: its submission no longer validates: {computed.invalid}")
    else:
        found.differences += [f"{entry}: {problem}" for problem in _differences(entry, computed)]
        found.verified = not found.differences
    return found


def not_recomputable(known: Mapping[str, Benchmark], entered: Entry) -> str:
    """Why an entry's newest score is not one that this version of Farshift makes; empty where it is."""
    newest = entered.scores[-1]
    try:
        if entered.benchmark not in known:
            raise UnknownName("benchmark", entered.benchmark, known)
        benchmark = known[entered.benchmark]
        if benchmark.identity(entered.budget, entered.steps, entered.selection) == newest.entry_identity:
            return ""
        made = benchmark.made_under(newest.entry_identity, entered.budget, entered.steps, entered.selection)
    except FarshiftError as error:
        return f"{error} (if it is your own, set FARSHIFT_PATH to the folder that defines it)"
    if made is not None:
        return f"scored by scorer {made}: farshift board rescore has it scored by this version's"
    return "of an older identity, which this version does not score"


def _inconsistencies(copy: BoardReader, entered: Entry, good: set[str]) -> list[str]:
    """What in an entry's records contradicts the ledger or the stored scores."""
    if not entered.scores:
        return ["was submitted and never scored"]
    problems = []
    first = entered.scores[0].entry_identity
    if entry_name(entered.submission, entered.run, first) != entered.entry:
        problems.append("its name is not that of its submission, run and identity")
    for score in entered.scores:
        if list(score.files) != [score.path]:
            problems.append(f"its record names other files than {score.path}")
    for before, after in zip(entered.scores, entered.scores[1:], strict=False):
        assert isinstance(after, Rescored)
        for which, score in (("before", before), ("after", after)):
            here = copy.file(score.path) if score.path in good else None
            if here and values(Score.from_dict(json.loads(here.read_bytes()))) != getattr(after, which).model_dump():
                problems.append(f"the value {which} its rescoring by scorer {after.scorer} is not that of {score.path}")
    return problems


def _differences(entered: Entry, computed: Computed) -> list[str]:
    """What the ledger says otherwise of an entry than its submission."""
    newest, run = entered.scores[-1], computed.runs[entered.run]
    told = [*((name, getattr(entered, name), is_) for name, is_ in computed.said.items())]
    told += [(name, getattr(entered, name), is_) for name, is_ in run["item"].items()]
    problems = [
        f"its {name} is {said!r} in the ledger and {is_!r} in the submission" for name, said, is_ in told if said != is_
    ]
    if "problem" in run:
        return [*problems, f"can no longer be scored: {run['problem']}"]
    if run["scorer"] != newest.scorer:
        problems.append(f"scorer {newest.scorer} is stated, and {run['scorer']} makes this identity")
    if run["score"] != newest.digest:
        problems.append("computed again, its score differs from the ledger")
    return problems
