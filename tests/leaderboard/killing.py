"""Processes that write to a ledger and are killed at random moments.

    python killing.py FOLDER URL LIVES SEED      (an empty URL: SQLite in FOLDER)

Every life is a fork of this process, which loaded everything: a kill costs no start of Python. A life writes down what
was acknowledged to it, through a pipe; after each kill what lies there is read anew and held against that.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from farshift.leaderboard.ledger.record import find_chain_problems
from ledgers import ledger_in, withdrawn

Tell = Callable[[object], None]


def lived(work: Callable[[Tell], None], seconds: float, after: int = 0) -> tuple[list[Any], bool]:
    """What a fork was told that did `work` until it was killed, `seconds` after it had been told `after` things; and
    whether it was at work when it was killed."""
    out, into = os.pipe()
    child = os.fork()
    if not child:
        os.close(out)
        code = 1
        try:
            work(lambda said: os.write(into, json.dumps(said).encode() + b"\n"))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(into)
    output = b""
    with os.fdopen(out, "rb", buffering=0) as pipe:
        while output.count(b"\n") < after and (more := pipe.read(1 << 16)):
            output += more
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        while more := pipe.read(1 << 16):
            output += more
    full = output[: output.rfind(b"\n") + 1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"a life ended by an error: {output!r}"
    return [json.loads(line) for line in full.splitlines()], os.WIFSIGNALED(status)


def kill_appending(folder: Path, url: str | None, lives: int, seed: int) -> dict[str, int]:
    """Processes that append two records at a time, and are killed up to 30 ms after none to four of these were
    acknowledged."""
    draw = np.random.Generator(np.random.PCG64(seed))
    ledger_in(folder, url).store.close()
    acknowledged: dict[int, str] = {}
    for life in range(lives):

        def work(tell: Tell, life: int = life) -> None:
            ledger = ledger_in(folder, url)
            for number in range(1_000_000):
                both = ledger.append([withdrawn(life), withdrawn(number)])
                tell([[record.seq, record.hash] for record in both])

        output, killed = lived(work, draw.uniform(0, 0.03), int(draw.integers(0, 5)))
        assert killed
        acknowledged |= {seq: hash for both in output for seq, hash in both}
        ledger = ledger_in(folder, url)
        there = {record.seq: record.hash for record in ledger.records()}
        ledger.store.close()
        assert acknowledged.items() <= there.items(), "a record that was acknowledged is gone"
        assert len(there) % 2 == 1, "half of what belongs together is there"
    ledger = ledger_in(folder, url)
    records = ledger.read_unchecked()
    assert find_chain_problems(records, ledger.key) == []
    return {"kills": lives, "acknowledged": len(acknowledged), "records": len(records)}


if __name__ == "__main__":
    folder, url, lives, seed = sys.argv[1:]
    print(json.dumps(kill_appending(Path(folder), url or None, int(lives), int(seed))))
