"""Would a test notice? A sample of small errors is put into the code, one by one, and the tests that run it are run.

    make mutants                    all four rooms
    make mutants ARGS="splits --sample 50"

Prints the share of errors that a test noticed, and each that none did. mutmut makes the errors; the sample is the same
on every run. The tree is copied to build/mutants/ROOM first: mutmut finds a module by the path of its file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
OUT = ROOT / "build" / "mutants"

ROOMS = {
    "splits": (["splits/*"], ["tests/splits"]),
    "statistics": (
        ["benchmarks/statistics/*"],
        [
            f"tests/benchmarks/test_{name}.py"
            for name in ("aggregate", "comparing", "concurrence", "paired_tests", "ranks", "score", "statistics*")
        ],
    ),
    "metrics": (["benchmarks/metrics/*"], ["tests/benchmarks/test_metrics_*.py"]),
    "validation": (
        ["leaderboard/validation/*", "leaderboard/submission/validate.py"],
        [
            f"tests/leaderboard/test_{name}.py"
            for name in ("fuzz_submissions", "pack", "protocol_enforced", "submit_attacks", "teams", "validate*")
        ],
    ),
}
"""What is changed, and the tests that have to notice."""

LEFT_OUT = ("other_processes", "every_process", "every_rule", "rules_are_listed")
CHOICE = ["-m", "not slow", "-k", " and ".join(f"not {name}" for name in LEFT_OUT)]
"""Which of these tests: none that starts an interpreter of its own folder or lists the rules that there are."""

NOTICED = {1, 3, 36, -24, 24, 152, 255}
"""Exit codes of mutmut: a test failed, or the error made it run out of time."""


def copy_tree(room: str) -> Path:
    """A folder in which the package lies under its own name, with mutmut's settings beside it."""
    folder = OUT / room
    shutil.rmtree(folder, ignore_errors=True)
    for name in subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines():
        target = folder / "farshift" / name
        if (ROOT / name).is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
    # The process that reads submissions has to receive the variable that names the error, and to run the code under the
    # name by which the error is known.
    reader = folder / "farshift/leaderboard/validation/process.py"
    text = reader.read_text("utf-8").replace('("PATH", ', '("PATH", "MUTANT_UNDER_TEST", ')
    text = text.replace('"-m", f"{package}.reader"', '"-c", f"from {package}.reader import main; main()"')
    reader.write_text(text, "utf-8")
    code, tests = ROOMS[room]
    paths = sorted(
        path.relative_to(folder).as_posix() for pattern in tests for path in (folder / "farshift").glob(pattern)
    )
    pytest_settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["pytest"]["ini_options"]
    settings = {
        "tool.mutmut": {
            "source_paths": ["farshift"],
            "only_mutate": [f"farshift/{name}" for name in code],
            "pytest_add_cli_args": [*CHOICE, "-p", "no:cacheprovider", "-p", "no:xdist"],
            "pytest_add_cli_args_test_selection": paths,
            "track_dependencies": False,
            "use_git_change_detection": False,
            "timeout_multiplier": 5.0,
        },
        "tool.pytest.ini_options": {
            "addopts": pytest_settings["addopts"],
            "markers": pytest_settings["markers"],
            "pythonpath": [f"farshift/{name}" for name in pytest_settings["pythonpath"]],
        },
    }
    lines = [
        f"[{table}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
        for table, values in settings.items()
    ]
    (folder / "pyproject.toml").write_text("\n".join(lines), "utf-8")
    return folder


def run_mutmut(folder: Path, names: list[str]) -> None:
    with (folder / "mutmut.log").open("a") as log:
        subprocess.run([sys.executable, "-m", "mutmut", "run", *names], cwd=folder, check=False, stdout=log, stderr=log)


def is_noticed_elsewhere(folder: Path, name: str) -> bool:
    """Whether a test fails with this error where all tests of the room are run, also in the processes they start.

    mutmut runs the tests that it saw call the function in their own process.
    """
    command = [sys.executable, "-P", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *CHOICE]
    tests = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["tool"]["mutmut"]
    paths = os.pathsep.join([str(folder / "mutants"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "MUTANT_UNDER_TEST": name, "PYTHONPATH": paths}
    done = subprocess.run(
        [*command, *tests["pytest_add_cli_args_test_selection"]],
        cwd=folder / "mutants",
        env=environment,
        capture_output=True,
        check=False,
    )
    return done.returncode == 1


def read_results(folder: Path) -> dict[str, int | None]:
    """The exit code for every error that was made, None where it was not tried."""
    files = sorted((folder / "mutants").rglob("*.meta"))
    return {name: code for file in files for name, code in json.loads(file.read_text())["exit_code_by_key"].items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=", ".join(ROOMS))
    parser.add_argument("--sample", type=int, default=200, help="errors to try in each room")
    options = parser.parse_args()
    if unknown := set(options.rooms) - set(ROOMS):
        parser.error(f"no room named {', '.join(sorted(unknown))}: there are {', '.join(ROOMS)}")
    for room in options.rooms or ROOMS:
        folder = copy_tree(room)
        # Makes the errors, finds which test runs which function, and ends since there is no such error to try.
        run_mutmut(folder, ["*.no_such_function"])
        if "failed to collect stats" in (folder / "mutmut.log").read_text(errors="replace"):
            sys.exit(f"{room}: a test fails without any error put in: see {folder / 'mutmut.log'}")
        names = sorted(read_results(folder), key=lambda name: hashlib.sha256(name.encode()).digest())[: options.sample]
        if not names:
            sys.exit(f"{room}: no error was made: see {folder / 'mutmut.log'}")
        run_mutmut(folder, names)
        results = {name: code for name, code in read_results(folder).items() if name in set(names)}
        if is_noticed_elsewhere(folder, "none"):
            sys.exit(f"{room}: a test fails without any error put in, where all of them are run")
        missed = [name for name, code in sorted(results.items()) if code not in NOTICED]
        missed = [name for name in missed if not is_noticed_elsewhere(folder, name)]
        print(f"{room}: {len(results) - len(missed)} of {len(results)} noticed ({1 - len(missed) / len(results):.0%})")
        for name in missed:
            print(f"  not noticed: {name}")


if __name__ == "__main__":
    main()
