"""Mutated submissions by the hundred thousand, each handed to the validator, in processes under limits.

    python tests/fuzz/submissions.py --cases 200000 --processes 2 --out fuzzed

Every case must be accepted or refused by a name within 10 seconds, by a process that may have no more than 1 GiB of
address space; so must the reader that it starts. Anything else is a failure: its bytes and what happened are kept in
`--out`, and the exit code is 1. Case n of a name is always the same bytes: `--only N` repeats one.
"""

from __future__ import annotations

import argparse
import json
import math
import mmap
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

SECONDS = 10.0
MEMORY = 1 << 30
_STATE = struct.Struct("<qd")
_EVERY = 100


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=200_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("fuzzed"))
    parser.add_argument("--name", default="1", help="another name draws other cases")
    parser.add_argument("--only", type=int, help="a single case")
    parser.add_argument("--worker", type=int, nargs=2, metavar=("FROM", "STEP"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        return worker(given.out, given.name, given.worker[0], given.cases, given.worker[1])
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
    """Run the cases 0..cases-1 of a name in worker processes, and watch over these."""
    began, result = time.monotonic(), Found()
    with tempfile.TemporaryDirectory() as folder:
        shared = Path(folder)
        _prepare(shared / "runs")
        starts = [only] if only is not None else range(processes)
        stop, step = (only + 1, 1) if only is not None else (cases, processes)
        watched = [Worker(shared, number, name, start, stop, step) for number, start in enumerate(starts)]
        try:
            while any(item.process is not None for item in watched):
                time.sleep(0.2)
                for item in watched:
                    item.look(result, out)
        finally:
            for item in watched:
                item.end()
        for tally in sorted(shared.glob("tally-*.jsonl")):
            _add(result, tally)
        for stored in sorted([*shared.glob("failed-*"), *shared.glob("contained-*")]):
            shutil.copy(stored, out / stored.name)
            if stored.suffix == ".txt":  # what failed; the reader's own ends are contained, and kept to be looked at
                result.failures[int(stored.stem.split("-")[1])] = stored.read_text().splitlines()[-1]
    result.seconds = time.monotonic() - began
    return result


def _prepare(folder: Path) -> None:
    # Elsewhere, so that this process, which watches, has nothing of it in memory.
    code = f"from pathlib import Path; from fuzz.bases import made; made(Path({str(folder)!r}))"
    subprocess.run([sys.executable, "-c", code], check=True, env=_environment(), stdout=subprocess.DEVNULL)


def _environment() -> dict[str, str]:
    paths = [str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    limits = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
    return os.environ | limits | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


class Worker:
    """A process that works through every `step`-th case, watched: one that hangs or dies is a failure of its case, and
    another goes on behind that."""

    def __init__(self, shared: Path, number: int, name: str, start: int, stop: int, step: int) -> None:
        self.shared, self.number, self.name, self.stop, self.step = shared, number, name, stop, step
        self.process: subprocess.Popen[bytes] | None = None
        self._seen: tuple[int, float] = (-1, 0.0)
        self._begin(start)

    def _begin(self, start: int) -> None:
        if start >= self.stop:
            self.process = None
            return
        state = self.shared / f"state-{self.number}"
        state.write_bytes(_STATE.pack(-1, time.time()))
        command = [sys.executable, __file__, "--worker", str(start), str(self.step), "--cases", str(self.stop)]
        command += ["--out", str(self.shared), "--name", self.name]
        environment = _environment() | {"FARSHIFT_FUZZ_STATE": str(state)}
        with (self.shared / f"words-{self.number}").open("wb") as words:
            self.process = subprocess.Popen(command, env=environment, stderr=words, stdout=subprocess.DEVNULL)

    def end(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def look(self, found: Found, out: Path) -> None:
        """See whether the process ended or hangs."""
        if self.process is None:
            return
        code = self.process.poll()
        case, began = state = _STATE.unpack((self.shared / f"state-{self.number}").read_bytes())
        # Twice the same, for what is read while it is written is anything.
        hangs = code is None and state == self._seen and case >= 0 and time.time() - began > 4 * SECONDS
        self._seen = state
        if code == 0:
            self.process = None
        elif code is not None or hangs:
            self.process.kill()
            self.process.wait()
            words = (self.shared / f"words-{self.number}").read_text(errors="replace").strip().splitlines()[-1:]
            what = f"hang: over {4 * SECONDS:.0f} s" if hangs else f"crash: the process ended with code {code} {words}"
            if case < 0:
                raise SystemExit(f"the fuzzer cannot start: {what}")
            found.failures[case] = what
            (out / f"failed-{case}.txt").write_text(what + "\n")
            self._begin(case + self.step)


def worker(shared: Path, name: str, start: int, stop: int, step: int) -> int:
    """Work through cases in this process, under its limit of memory."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    from fuzz.bases import made, opened
    from fuzz.kept import Validator
    from fuzz.mutations import mutated

    look, bases = Validator(opened()), made(shared / "runs")
    for base in bases:
        look(base.packed())  # what is opened once is opened now
    with open(os.environ["FARSHIFT_FUZZ_STATE"], "r+b") as file:  # noqa: PTH123
        state = mmap.mmap(file.fileno(), _STATE.size)
    tally = Found()
    for case in range(start, stop, step):
        _STATE.pack_into(state, 0, case, math.inf)  # while it is made, no time runs
        layer, content = mutated(case, bases, name)
        began = time.time()
        _STATE.pack_into(state, 0, case, began)
        outcome = outcome_of(look, content)
        spent = time.time() - began
        if spent > SECONDS:  # once more, for a machine that is busy with other things is not a hang
            began = time.time()
            outcome = outcome_of(look, content)
            spent = time.time() - began
        if spent > SECONDS:
            outcome = f"FAILED\nhang: {spent:.1f} s, then {outcome}"
        if outcome.startswith("FAILED"):
            (shared / f"failed-{case}.zip").write_bytes(content)
            (shared / f"failed-{case}.txt").write_text(outcome)
            outcome = "FAILED"
        elif outcome.startswith("reader-"):
            (shared / f"contained-{outcome}-{case}.zip").write_bytes(content)
        tally.outcomes[outcome] += 1
        tally.layers[layer] += 1
        tally.slowest = max(tally.slowest, spent)
        if tally.outcomes.total() >= _EVERY or case + step >= stop:
            _write(shared / f"tally-{start}.jsonl", tally)
            tally = Found()
    look.end()
    _write(shared / f"tally-{start}.jsonl", tally)
    return 0


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


def _write(path: Path, tally: Found) -> None:
    # Not this process's own ru_maxrss: that remembers how large the process was which started it.
    own = re.search(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert own is not None
    usage = [int(own[1]), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]
    output = {"outcomes": tally.outcomes, "layers": tally.layers, "slowest": tally.slowest, "rss": max(usage) / 1024}
    with path.open("a") as file:
        file.write(json.dumps(output) + "\n")


def _add(found: Found, tally: Path) -> None:
    for line in tally.read_text().splitlines():
        output = json.loads(line)
        found.outcomes.update(output["outcomes"])
        found.layers.update(output["layers"])
        found.slowest = max(found.slowest, output["slowest"])
        found.peak_mib = max(found.peak_mib, output["rss"])


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
