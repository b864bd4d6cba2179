"""Does this tree give what another commit gives? For a change that must move nothing: `make same-as BASE=COMMIT`.

The same commands are run in both trees, each from its own code, and what they print is compared byte by byte: listings of
splits and benchmarks with their identities, every benchmark's protocol, the score of every recorded run, comparisons of
neighbouring runs, and the proof of every manifest. With `--board`, the board of all recorded runs that the other commit
built is verified and its tables are printed by both. Exit code 1 on any difference, each named.

Both use the caches and mirrors of the environment (`FARSHIFT_CACHE`, `FARSHIFT_MIRRORS`): what one could not have at all
is compared as such.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EVERY = 10
"""One in so many pairs of neighbouring runs is compared."""


def said(arguments: list[str]) -> tuple[int, str]:
    """The exit code and the output of one command, run in this process."""
    from farshift.cli import main

    out, sys.argv = io.StringIO(), ["farshift", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            main()
    except SystemExit as ending:
        return int(ending.code or 0), out.getvalue()
    return 0, out.getvalue()


def digested(arguments: list[str]) -> list[object]:
    code, text = said(arguments)
    return [" ".join(arguments), code, sha256(text.encode()).hexdigest()]


def commands(recorded: Path, board: str) -> list[list[str]]:
    """What is run: the same in both trees as long as their listings are."""
    names = [item["name"] for item in json.loads(said(["benchmarks", "list", "--json"])[1])]
    runs = sorted(f"{file.stem}@{file.parent.name.replace('__', '/')}" for file in recorded.glob("*/*.parquet"))
    runs.sort(key=lambda run: run.split("@")[::-1])
    pairs = [
        (item, other)
        for item, other in itertools.pairwise(runs)
        if item.split("@")[1] == other.split("@")[1] and int(sha256(item.encode()).hexdigest(), 16) % EVERY == 0
    ]
    result = [["splits", "list", "--json"], ["benchmarks", "list", "--json"]]
    result += [["benchmarks", "show", name, "--json"] for name in names]
    result += [["score", f"baseline:{run}", "--json"] for run in runs]
    result += [["compare", f"baseline:{item}", f"baseline:{other}", "--json"] for item, other in pairs]
    result += [["splits", "verify", "--all", "--json"]]
    if board:
        result += [["board", "verify", board, "--json"], ["board", "standings", board, "--json"]]
    return result


def collect(out: Path, board: str, workers: int) -> None:
    """In one of the trees: run everything and write a line each."""
    import farshift

    chosen = commands(Path(farshift.__file__).parent / "baselines" / "results", board)
    with ProcessPoolExecutor(workers) as pool, out.open("w") as file:
        for line in pool.map(digested, chosen):
            print(json.dumps(line), file=file, flush=True)


def in_tree(tree: Path, arguments: list[str]) -> None:
    """Run Python with `tree` as the package `farshift`."""
    with tempfile.TemporaryDirectory() as position:
        (Path(position) / "farshift").symlink_to(tree)
        environment = os.environ | {"PYTHONPATH": position, "PYTHONDONTWRITEBYTECODE": "1"}
        subprocess.run([sys.executable, *arguments], env=environment, cwd=position, check=True)


def main() -> int:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("base", nargs="?", help="the commit to compare with")
    ask.add_argument("--board", action="store_true", help="compare the board of all recorded runs too (minutes more)")
    ask.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    ask.add_argument("--collect", type=Path, help=argparse.SUPPRESS)
    ask.add_argument("--on", default="", help=argparse.SUPPRESS)
    given = ask.parse_args()
    if given.collect:
        collect(given.collect, given.on, given.workers)
        return 0
    if not given.base:
        ask.error("name the commit to compare with")
    with tempfile.TemporaryDirectory() as position:
        folder = Path(position)
        base, board = folder / "base", str(folder / "board") if given.board else ""
        base.mkdir()
        archive = subprocess.run(["git", "archive", given.base], cwd=ROOT, stdout=subprocess.PIPE, check=True)
        subprocess.run(["tar", "-x", "-C", base], input=archive.stdout, check=True)
        if board:
            in_tree(base, ["-m", "farshift", "board", "build", board])
        result = []
        for number, tree in enumerate((base, ROOT)):
            out = folder / f"{number}.jsonl"
            in_tree(tree, [__file__, "--collect", str(out), "--on", board, "--workers", str(given.workers)])
            result.append({name: rest for name, *rest in map(json.loads, out.read_text().splitlines())})
    before, after = result
    differ = [name for name in (before | after) if before.get(name) != after.get(name)]
    for name in differ:
        print(f"differs: farshift {name}")
    print(f"{len(before | after)} commands, {len(differ)} differ from {given.base}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
