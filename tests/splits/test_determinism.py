"""Generators give the same bytes in every process: whatever its hash seed, locale, time zone and working directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from farshift.loaders.acquire.source import Source, load_sources
from support import ROOT

LARGE = 14_000
"""Rows beyond which a source is a matter of the slow tests."""

BUILD = """
import sys
from farshift.loaders.acquire.source import find_source, add_row_ids
for name in sys.argv[1:]:
    source = find_source(name)
    for distribution in source.definition.distributions:
        if distribution.generator:
            digest = add_row_ids(source.compute_rows(distribution), source.schema)[1]
            print(name, distribution.generator, digest)
"""
"""Prints the digest of what each generator gives now; no cache has a part in it."""

PROCESSES = (
    {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "Pacific/Kiritimati", "OMP_NUM_THREADS": "1"},
    {
        "PYTHONHASHSEED": "4242",
        "LC_ALL": "C.UTF-8",
        "TZ": "America/St_Johns",
        "PYTHONUTF8": "1",
        "OMP_NUM_THREADS": "3",
    },
)


def generators(source: Source) -> list[str]:
    return [item.generator for item in source.definition.distributions if item.generator]


def smallest() -> dict[str, Source]:
    """For each generator that a source uses, the source of fewest rows that does."""
    result: dict[str, Source] = {}
    for source in load_sources().values():
        for name in generators(source):
            if name not in result or source.definition.rows < result[name].definition.rows:
                result[name] = source
    return result


SMALLEST = smallest()
HERE = {item.name: item.definition.rows for item in SMALLEST.values() if not item.lacks}
"""Those that run here: what an optional package makes is skipped where it is absent, and named by its own tests."""
QUICK = sorted(name for name, count in HERE.items() if count <= LARGE)
SLOW = sorted(set(HERE) - set(QUICK))


def test_every_generator_there_is_makes_a_source():
    files = {path.stem for path in (ROOT / "loaders/generators").glob("[!_]*.py")}
    assert set(SMALLEST) == files


@pytest.mark.parametrize(
    ("names", "processes"),
    # That large sources have their digest in a process of the user's own variables, test_manifests.py shows.
    [(QUICK, PROCESSES), pytest.param(SLOW, PROCESSES[1:], marks=pytest.mark.slow)],
    ids=["quick", "slow"],
)
def test_processes_that_share_nothing_give_the_pinned_digest(
    tmp_path: Path, names: list[str], processes: tuple[dict[str, str], ...]
):
    pinned = {
        f"{name} {generator} {load_sources()[name].definition.digest}"
        for name in names
        for generator in generators(load_sources()[name])
    }
    started = []
    for number, environment in enumerate(processes):
        folder = tmp_path / f"in {number}"
        folder.mkdir()
        command = [sys.executable, "-c", BUILD, *(names if number else reversed(names))]
        started.append(
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder, env=os.environ | environment)
        )
    for process in started:
        printed, _ = process.communicate()
        assert process.returncode == 0
        assert set(printed.splitlines()) == pinned
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
