"""Mutated submissions by the hundred thousand, each handed to the validator, in processes under limits.

    python tests/fuzz/submissions.py --cases 200000 --processes 2 --out fuzzed

Every case must be accepted or refused by a name within 10 seconds, by a process that may have no more than 1 GiB of
address space; so must the reader that it starts. Anything else is a failure: what happened is kept in `--out`, with its
bytes where the process outlived it, and the exit code is 1. Case n of a name is always the same bytes: `--only N`
repeats one.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing import connection, get_context
from pathlib import Path
from unittest.mock import patch

SECONDS = 10.0
MEMORY = 1 << 30
FEW_THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=200_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("fuzzed"))
    parser.add_argument("--name", default="1", help="another name draws other cases")
    parser.add_argument("--only", type=int, help="a single case")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    result = fuzz(given.cases, given.processes, given.out, given.name, given.only)
    print(report(result))
    return 1 if result.failures else 0


@dataclass
class Found:
    """What a run of the fuzzer saw: outcomes by name, cases by layer, and failures by case."""

    outcomes: Counter[str] = field(default_factory=Counter)
    layers: Counter[str] = field(default_factory=Counter)
    failures: dict[int, str] = field(default_factory=dict)
    slowest: float = 0.0
    peak_mib: float = 0.0
    seconds: float = 0.0


def report(found: Found) -> str:
    """The counts as text, most frequent first."""
    cases = found.outcomes.total()
    lines = [f"{cases} mutated submissions in {found.seconds:.0f} s; slowest {found.slowest:.2f} s"]
    lines += [f"largest resident set of a process {found.peak_mib:.0f} MiB; {len(found.failures)} failures"]
    lines += [f"  {count:8} {name}" for name, count in found.outcomes.most_common()]
    lines += ["by layer: " + ", ".join(f"{name} {count}" for name, count in sorted(found.layers.items()))]
    lines += [f"FAILED case {case}: {what}" for case, what in sorted(found.failures.items())]
    return "\n".join(lines)


def fuzz(cases: int, processes: int, out: Path, name: str = "1", only: int | None = None) -> Found:
    """Work through the cases 0..cases-1 of a name in processes, and watch these: one that hangs or dies is a failure of
    its case, and another goes on behind that."""
    began, result = time.monotonic(), Found()
    starts, stop, step = ([only], only + 1, 1) if only is not None else (range(processes), cases, processes)
    running: dict[connection.Connection, Worker] = {}
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, FEW_THREADS):
        # Elsewhere, so that this process, which watches, has nothing of it in memory.
        preparing = get_context("spawn").Process(target=prepare, args=(folder,))
        preparing.start()
        preparing.join()
        for start in starts:
            worker = Worker(folder, name, start, stop, step)
            running[worker.receiver] = worker
        try:
            while running:
                ready = connection.wait(list(running), timeout=1)
                for receiver, worker in list(running.items()):
                    failure = worker.listen(result, out) if receiver in ready else worker.find_hang()
                    if failure is None:
                        continue
                    worker.process.kill()
                    worker.process.join()
                    del running[receiver]
                    if failure:
                        result.failures[worker.case] = failure
                        (out / f"failed-{worker.case}.txt").write_text(failure + "\n")
                        if worker.case + step < stop:
                            worker = Worker(folder, name, worker.case + step, stop, step)
                            running[worker.receiver] = worker
        finally:
            for worker in running.values():
                worker.process.kill()
    result.seconds = time.monotonic() - began
    return result


class Worker:
    """A process that works through every `step`-th case, and where it is."""

    def __init__(self, folder: str, name: str, start: int, stop: int, step: int) -> None:
        self.case, self.since = -1, math.inf
        self.receiver, sender = get_context("spawn").Pipe(duplex=False)
        self.process = get_context("spawn").Process(target=work, args=(sender, folder, name, start, stop, step))
        self.process.start()
        sender.close()

    def listen(self, found: Found, out: Path) -> str | None:
        """Take what the process says; if it ended, why it failed, or "" if it is done."""
        try:
            message = self.receiver.recv()
        except EOFError:
            self.process.join()
            if self.process.exitcode and self.case < 0:
                raise SystemExit(f"the fuzzer cannot start: code {self.process.exitcode}") from None
            return f"crash: the process ended with code {self.process.exitcode}" if self.process.exitcode else ""
        if isinstance(message, int):
            self.case, self.since = message, time.monotonic()
            return None
        layer, outcome, content, spent, peak = message
        self.since = math.inf  # while the next one is made, no time runs
        if content is not None:  # what failed; and the reader's own ends, which are contained, to be looked at
            kept = f"failed-{self.case}" if outcome.startswith("FAILED") else f"contained-{outcome}-{self.case}"
            (out / f"{kept}.zip").write_bytes(content)
        if outcome.startswith("FAILED"):
            (out / f"failed-{self.case}.txt").write_text(outcome)
            found.failures[self.case] = outcome.splitlines()[-1]
        found.outcomes[outcome.splitlines()[0]] += 1
        found.layers[layer] += 1
        found.slowest, found.peak_mib = max(found.slowest, spent), max(found.peak_mib, peak)
        return None

    def find_hang(self) -> str | None:
        """What failed, if the process is at its case for too long."""
        late = time.monotonic() - self.since > 4 * SECONDS
        return f"hang: over {4 * SECONDS:.0f} s" if late else None


def prepare(folder: str) -> None:
    """Make the good submissions."""
    from fuzz.bases import made

    made(Path(folder))


def work(sender: connection.Connection, folder: str, name: str, start: int, stop: int, step: int) -> None:
    """Work through cases in this process, under its limit of memory: tell each before it begins, and how it fared."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    from fuzz.bases import made, opened
    from fuzz.kept import Validator
    from fuzz.mutations import mutated

    look, bases = Validator(opened()), made(Path(folder))
    for base in bases:
        look(base.packed())  # what is opened once is opened now
    for case in range(start, stop, step):
        layer, content = mutated(case, bases, name)
        sender.send(case)
        for _ in range(2):  # once more if slow, for a machine that is busy with other things is not a hang
            began = time.monotonic()
            outcome = outcome_of(look, content)
            spent = time.monotonic() - began
            if spent <= SECONDS:
                break
        else:
            outcome = f"FAILED\nhang: {spent:.1f} s, then {outcome}"
        kept = content if outcome.startswith(("FAILED", "reader-")) else None
        sender.send((layer, outcome, kept, spent, measure_peak_mib()))
    look.end()


def outcome_of(look, content: bytes) -> str:
    """How a submission fared: accepted, the name of its first problem, or FAILED and what happened."""
    from farshift.core.errors import BadSubmission
    from farshift.leaderboard.validation.problem import REMEDIES

    try:
        look(content)
    except BadSubmission as refusal:
        names = [problem.name for problem in refusal.problems]
        if not names or not set(names) <= set(REMEDIES):
            return f"FAILED\nrefused without a name: {refusal}"
        if "reader-crash" in names and "signal SIG" not in str(refusal):
            return f"FAILED\nthe reader broke: {refusal}"
        return names[0]
    except Exception:  # whatever it is, it is what is looked for
        return f"FAILED\n{traceback.format_exc()}"
    return "accepted"


def measure_peak_mib() -> float:
    """The largest resident set of this process and of its reader so far."""
    # Not this process's own ru_maxrss: that remembers how large the process was which started it.
    own = re.search(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert own is not None
    return max(int(own[1]), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) / 1024


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
