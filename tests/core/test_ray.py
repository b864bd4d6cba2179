"""The engine `ray`: results and errors are those of any engine, and a worker that is killed costs nothing.

A real local cluster of two workers. Each test drives it from a process of its own, and reads what that has printed: Ray
2.60's driver has died right after `ray.shutdown()`, where all results were out, and would take all other tests along.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import farshift as fs
import pytest
from farshift.benchmarks.runs.run import read_run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed"),
]

ON = "modadd97/xi35"

JOBS = """
import os, signal
from farshift import FarshiftError
def cube(number):
    if number == 13:
        raise FarshiftError("13 brings bad luck")
    if number == 14:
        raise ZeroDivisionError("a fault of the program")
    return number**3
def die_once(marker):
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 7
"""

Drive = Callable[[str], Any]


@pytest.fixture
def drive(tmp_path: Path) -> Drive:
    """Runs code in a process of its own that is connected to a cluster; what it has told `show`, in order."""
    (tmp_path / "jobs.py").write_text(JOBS)
    runtime = {"env_vars": {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}}

    def run(code: str) -> list[Any]:
        script = f"""
import json, ray
from pathlib import Path
from farshift import FarshiftError
from farshift.core.engines import Needs, iterate_outcomes, map_jobs, open_engine
from jobs import cube, die_once
def show(value):
    print("SHOWN", json.dumps(value), flush=True)
ray.init(num_cpus=2, num_gpus=0, include_dashboard=False, log_to_driver=False, runtime_env={runtime!r})
{code}
ray.shutdown()
"""
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"PYTHONPATH": runtime["env_vars"]["PYTHONPATH"]},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return [json.loads(line[6:]) for line in done.stdout.splitlines() if line.startswith("SHOWN ")]

    return run


def test_results_come_in_order_and_the_first_error_ends_it(drive: Drive) -> None:
    shown = drive("""
show([list(map_jobs(cube, list(range(9)), engine="ray")), list(map_jobs(cube, [], engine="ray"))])
try:
    list(map_jobs(cube, [1, 13, 2], engine="ray"))
except FarshiftError as error:
    show(str(error))
""")
    assert shown == [[[number**3 for number in range(9)], []], "13 brings bad luck"]


def test_as_completed_an_error_is_an_outcome_and_a_fault_of_the_program_is_none(drive: Drive) -> None:
    shown = drive("""
with open_engine("ray") as engine:
    for position, result, error in sorted(iterate_outcomes(engine, cube, [1, 13, 2, 3]), key=lambda one: one[0]):
        show([position, result, error and str(error)])
try:
    with open_engine("ray") as engine:
        list(iterate_outcomes(engine, cube, [14, 1]))
except ZeroDivisionError as error:
    show("the program's own error")
""")
    assert shown == [
        [0, 1, None],
        [1, None, "13 brings bad luck"],
        [2, 8, None],
        [3, 27, None],
        "the program's own error",
    ]


def test_a_worker_that_is_killed_costs_no_result(drive: Drive) -> None:
    assert drive('show(list(map_jobs(die_once, [Path("a"), Path("b")], engine="ray")))') == [[7, 7]]


def test_a_cluster_without_a_gpu_says_so_for_cuda(drive: Drive) -> None:
    shown = drive("""
try:
    with open_engine("ray", Needs("cuda")):
        pass
except FarshiftError as error:
    show(str(error))
""")
    assert shown == ["the Ray cluster has no GPU, which --device cuda needs: choose another device"]


DYING = """
'''Empirical risk whose first replica's process is killed once, after its eighth step.'''
import os, signal
from pathlib import Path
from farshift.baselines.training import replica_group
from farshift.baselines.algorithms.erm import Algorithm as Base

KIND = "any"
CITATION = "none"
TASKS = ("classification",)
TOUCHES = ("train",)
SEARCH = {}
SETTINGS = {"loss": "cross-entropy", "label_smoothing": 0.0, "notes": ""}
replica_group.CHECKPOINT_SECONDS = 0.0

class Algorithm(Base):
    def after(self, network, clock):
        notes = Path(self.hyperparameters["notes"])
        with open(notes, "a") as file:
            file.write(f"{','.join(name[-1] for name in self.about.names)} {clock.total}\\n")
        if clock.total == 7 and self.about.names[0].endswith("0") and not notes.with_suffix(".killed").exists():
            notes.with_suffix(".killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
"""
RECIPE = """
name = "dying"
title = "Dying"
citation = "none"
network = "mlp"
algorithm = "dying"
settings = {{ width = 8, notes = {notes!r} }}
quick = {{ steps = 12 }}
full = {{ steps = 12 }}
"""


def test_a_worker_that_is_killed_costs_a_training_what_it_did_since_the_last_checkpoint(
    farshift: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    for folder, name, text in (
        ("algorithms", "dying.py", DYING),
        ("recipes", "dying.toml", RECIPE.format(notes=str(notes))),
    ):
        (tmp_path / "own" / "baselines" / folder).mkdir(parents=True)
        (tmp_path / "own" / "baselines" / folder / name).write_text(text)
    given = ("run", "dying", "--on", ON, "--seeds", "3", "--steps", "12", "--stack", "1")
    runs = []
    for engine in ("ray", "local"):
        folder = tmp_path / engine
        ended = farshift(*given, "--engine", engine, "--out", folder, FARSHIFT_PATH=str(tmp_path / "own"))
        assert "Traceback" not in ended.stderr, ended.stderr
        if engine == "ray":
            done = [line.split() for line in notes.read_text().splitlines()]
        runs.append(read_run(folder))
    steps = {seed: [int(step) for name, step in done if name == seed] for seed in "012"}
    assert notes.with_suffix(".killed").exists()
    assert steps["0"] == [*range(8), *range(7, 12)], "the step whose checkpoint was not written is taken again"
    assert steps["1"] == steps["2"] == list(range(12))
    by_ray, local = runs
    assert sorted(path.name for path in by_ray.path.iterdir()) == ["log.jsonl", "predictions.parquet", "run.toml"]
    assert (by_ray.path / "predictions.parquet").read_bytes() == (local.path / "predictions.parquet").read_bytes()
    assert fs.score(by_ray).json() == fs.score(local).json()


DIVERGING = """
name = "diverging"
title = "Diverging"
citation = "none"
network = "mlp"
algorithm = "erm"
settings = { width = 8, lr = 1e30 }
quick = { steps = 3 }
full = { steps = 3 }
"""


def test_an_error_of_a_replica_is_the_same_line_as_anywhere(
    farshift: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    recipes = tmp_path / "own" / "baselines" / "recipes"
    recipes.mkdir(parents=True)
    (recipes / "diverging.toml").write_text(DIVERGING)
    given = ("run", "diverging", "--on", ON, "--seeds", "2", "--stack", "1")
    messages = {}
    for engine in ("local", "ray"):
        ended = farshift(*given, "--engine", engine, "--out", tmp_path / engine, FARSHIFT_PATH=str(tmp_path / "own"))
        messages[engine] = re.sub(r" \(and .*", "", ended.stderr[ended.stderr.index("farshift: ") :])
        assert (tmp_path / engine / "plan.json").exists()
    assert messages["ray"] == messages["local"]
    assert f"diverging on {ON}, seed 0: diverging/{ON}/0: " in messages["ray"]
    assert "the loss is not finite at step 2 of 3: lower the setting lr" in messages["ray"]
