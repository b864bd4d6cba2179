"""Whether the rules of claims were committed before their outcomes.

A commit may not change the rules or runs of a claim together with its recorded outcome: otherwise nobody can check that
the rules came first. Claims of before SINCE that did so say it (`committed_with_outcome`). Exits 1 and names the
commits; a clone without that history is not checked.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1]
SINCE = "cfa0b47d"
CLAIMS = "baselines/claims"
DECISIVE = ("runs", "quantities", "published", "premises", "rules")


def run_git(*arguments: str) -> str | None:
    """The output of a git command; None if it fails."""
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def read_rules(commit: str, name: str) -> dict[str, Any]:
    """What decides a claim's verdict in a commit; empty if there is no such claim."""
    text = run_git("show", f"{commit}:{CLAIMS}/{name}.toml")
    claim = {} if text is None else tomllib.loads(text)
    rules = {key: claim[key] for key in DECISIVE if key in claim}
    if "runs" in rules:
        rules["runs"] = {run: {**given, "quick": None} for run, given in rules["runs"].items()}
    return rules


def find_violations(since: str) -> list[str] | None:
    """Each claim whose rules and outcome one commit changed; None if the history does not reach back to `since`."""
    listed = run_git("log", "--no-merges", "--format=%H", f"{since}..HEAD", "--", CLAIMS)
    if listed is None:
        return None
    violations = []
    for commit in listed.split():
        files = (run_git("show", "--format=", "--name-only", "--diff-filter=d", commit, "--", CLAIMS) or "").split("\n")
        for file in sorted(files):
            folder, _, verdict = file.removeprefix(f"{CLAIMS}/results/").partition("/")
            if verdict == "verdict.json" and read_rules(commit, folder) != read_rules(f"{commit}~", folder):
                violations.append(f"{commit[:12]}: {folder}: its rules change together with its outcome")
    return violations


def main() -> None:
    violations = find_violations(sys.argv[2] if len(sys.argv) > 2 else SINCE)
    if violations is None:
        print(f"claims: the history does not reach back to {SINCE}: the order of rules and outcomes is not checked")
        return
    for line in violations:
        print(line)
    if violations:
        sys.exit("commit the rules of a claim first, then its outcome")
    print("claims: no commit changes rules together with their outcome")


if __name__ == "__main__":
    main()
