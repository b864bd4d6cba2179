"""Judge claims anew by their current rules and premises, from the stored predictions of their runs, without training.

    python .ci/rejudge.py CLAIM ..

Writes `baselines/claims/results/CLAIM/verdict.json`. The claim's file must be committed first, and the runs that were
trained for the recorded outcome must be unchanged: otherwise `farshift reproduce CLAIM --keep` has to train them.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from farshift.baselines.reproduce.reproduce import judge_evidence, load_recorded_runs
from farshift.benchmarks.claims.claim import CLAIMS_FOLDER, load_claim
from farshift.benchmarks.claims.outcome import HOME, Outcome, get_outcome_path, write_outcome
from farshift.core.clock import Stopwatch
from farshift.core.documents import read_json

ROOT = Path(__file__).resolve().parents[1]


def run_git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True).stdout


def read_trained_runs(text: str) -> dict[str, Any]:
    """The runs of a claim's file that are trained, without their short forms."""
    runs = tomllib.loads(text).get("runs", {})
    return {name: run | {"quick": None} for name, run in runs.items() if not run.get("recorded")}


def judge_anew(name: str) -> Outcome:
    """The new outcome of a claim, with the record of the trained runs from the recorded one."""
    claim, file = load_claim(name), f"{CLAIMS_FOLDER}/{name}.toml"
    if run_git("status", "--porcelain", "--", file):
        sys.exit(f"{name}: commit {file} first")
    recorded = get_outcome_path(name, HOME)
    commit = run_git("log", "-1", "--format=%H", "--", str(recorded)).strip()
    if read_trained_runs(run_git("show", f"{commit}:{file}")) != read_trained_runs((ROOT / file).read_text("utf-8")):
        sys.exit(f"{name}: its trained runs changed after its outcome of {commit[:12]}: farshift reproduce {name}")
    earlier = Outcome.from_dict(read_json(recorded))
    outcome = judge_evidence(load_recorded_runs(claim), "full", Stopwatch())
    trained = {run: earlier.runs[run] for run in outcome.runs if not claim.runs[run].recorded}
    return replace(
        outcome, runs={**outcome.runs, **trained}, seconds=outcome.seconds + earlier.seconds, quick=earlier.quick
    )


def main() -> None:
    for name in sys.argv[1:]:
        outcome = judge_anew(name)
        write_outcome(outcome, HOME)
        print(f"{name}: {outcome.verdict}: {outcome.reason}", flush=True)


if __name__ == "__main__":
    main()
