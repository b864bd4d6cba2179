"""How fast a board takes in, while three workers and a server are killed: 200 submissions by 20 clients, two servers,
three workers. Every one that was acknowledged is entered once, or this fails.

    python tests/bench/intake.py [--submissions 200] [--clients 20] [--postgresql]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "leaderboard"))
sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import farshift as fs
import models
import postgres
from farshift.leaderboard.submission.pack import pack_runs
from swarm import Swarm, killed_while_working

ON = "modadd97/xi35"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--submissions", type=int, default=200)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--postgresql", action="store_true")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(postgres.serving()).database() if given.postgresql else None
        files = []
        for number in range(given.submissions):
            out = folder / f"run{number}"
            chance = number / given.submissions / 2
            fs.evaluate(lambda seed, n=chance: models.Adder(seed, n), on=ON, seeds=1, out=out, name=f"m{number}")
            files.append(pack_runs([out], folder / f"{number}.zip", team="us"))
        before = processor_seconds()
        with Swarm(folder, url) as swarm:
            result = killed_while_working(swarm, files, given.clients)
        result["processor_s_a_submission"] = (processor_seconds() - before) / given.submissions
        result["load"] = os.getloadavg()[0]
    print(json.dumps({"ledger": "postgresql" if given.postgresql else "sqlite", "clients": given.clients, **result}))


def processor_seconds() -> float:
    """Of all processes that this one started and that have ended, and of theirs; but for what a worker that was killed
    had started."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
