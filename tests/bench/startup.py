"""How long does the command take to start? Medians over whole processes, beside a bare interpreter in the same run.

make bench-startup
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import farshift": ["-c", "import farshift"],
    "farshift --help": ["-m", "farshift", "--help"],
    "farshift splits list": ["-m", "farshift", "splits", "list"],
    "import numpy": ["-c", "import numpy"],
}
ROUNDS = 15


def seconds(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main() -> None:
    result: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS + 1):  # the first round warms the disk's cache and is dropped
        for name, arguments in COMMANDS.items():
            result[name].append(seconds(arguments))
    base = statistics.median(result["python -c pass"][1:])
    print(f"median of {ROUNDS} interleaved runs; x: ratio to a bare interpreter")
    for name, times in result.items():
        median = statistics.median(times[1:])
        print(f"{name:>22}  {median * 1000:7.1f} ms  {median / base:5.1f} x  (max {max(times[1:]) * 1000:.1f} ms)")


if __name__ == "__main__":
    main()
