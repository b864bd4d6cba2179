"""Sweeps: the engine changes nothing, a kill costs nothing that was done, progress is told by the steps of all."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import farshift as fs
import numpy as np
import pytest
from farshift import FarshiftError
from farshift.baselines.running.sweep import report_file_progress, run_baseline
from farshift.baselines.training import fit_progress_reporter
from farshift.baselines.training.fit_progress_reporter import FitProgressReporter
from farshift.baselines.training.trained_group import AdaptiveReplica, TrainedStack
from farshift.baselines.training.trainer import Training
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.runs.run import Run
from farshift.benchmarks.runs.run_folder import RunFolder
from farshift.benchmarks.runs.status import FitProgress, Status, get_fit_file, list_statuses, read_fit_progress
from farshift.core.engines import open_engine
from farshift.core.errors import MissingExtra, UnknownName
from farshift.core.progress import report_to
from support import SHARED

from .killed_groups import killed_before

ON = "modadd97/xi35"


@pytest.fixture(scope="module")
def by_processes(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("processes") / "run"
    return run_baseline("mlp", ON, seeds=4, steps=60, out=out, engine="processes")


@pytest.mark.slow
def test_processes_and_local_give_the_same_scores(tmp_path, by_processes):
    local = run_baseline("mlp", ON, seeds=4, steps=60, out=tmp_path / "local", engine="local")
    assert fs.score(local).json() == fs.score(by_processes).json()


def test_the_run_card_says_what_was_spent(tmp_path):
    run = run_baseline("quadratic-mlp", ON, seeds=1, steps=5, out=tmp_path / "run")
    spent = run.card.spent.by_seed["seed_0"]
    assert spent["steps"] == 5
    assert {"fit_seconds", "predict_seconds"} <= spent.keys()
    assert len(run.card.model.code) == 64
    assert run.card.environment["torch"]


def test_what_does_not_exist_is_refused(tmp_path):
    with pytest.raises(UnknownName, match="did you mean knn"):
        run_baseline("kn", ON, out=tmp_path / "r")
    with pytest.raises(UnknownName, match="no engine named 'rays': did you mean ray"):
        run_baseline("knn", ON, out=tmp_path / "r", engine="rays")
    with pytest.raises(FarshiftError, match="device 'nonsense': use cpu"):
        run_baseline("quadratic-mlp", ON, out=tmp_path / "r", device="nonsense")
    with pytest.raises(
        FarshiftError,
        match="^lstm: the network lstm is for sequence tasks, and this is a classification task: use --network ",
    ):
        run_baseline("lstm", ON, seeds=1, steps=1, out=tmp_path / "r")


@pytest.mark.parametrize(
    ("name", "on", "has"), [("quadratic-mlp", "modadd97/xi35", False), ("mlp", "modadd97/xi35", True)]
)
def test_class_probabilities_are_given_by_networks_whose_outputs_are_logits(tmp_path, name, on, has):
    run = run_baseline(name, on, seeds=1, out=tmp_path / "r", budget="quick", steps=3)
    assert ("scores" in run.predictions().column_names) is has


def tiny(out: Path, **more: Any) -> Run:
    """Two seeds of two settings, one of which keeps three checkpoints."""
    settings = {"one": {"width": 8}, "three": {"width": 8, "lr": 0.01, "candidates": 3}}
    return run_baseline("mlp", ON, seeds=2, steps=9, out=out, settings=settings, **more)


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return tiny(tmp_path_factory.mktemp("clean") / "run")


KILLED: list[tuple[str, type, str, int]] = [
    ("training", Training, "step", 6),
    ("training the other setting", Training, "step", 8),
    ("the first answer", TrainedStack, "predict", 1),
    ("answering", TrainedStack, "predict", 10),
    ("one seed done", RunFolder, "finish_seed", 2),
    ("all seeds done", RunFolder, "finish", 1),
]


def test_a_run_killed_anywhere_gives_the_same_bytes_when_it_is_repeated(tmp_path: Path, clean: Run) -> None:
    """Killed, taken up, killed later, and so on."""
    out = tmp_path / "run"
    for where, owner, name, call in KILLED:
        assert killed_before(owner, name, call, lambda: tiny(out)) == -9, where
        assert not (out / "run.toml").exists()
    again = tiny(out)
    assert (again.path / "predictions.parquet").read_bytes() == (clean.path / "predictions.parquet").read_bytes()
    assert sorted(path.name for path in out.iterdir()) == ["log.jsonl", "predictions.parquet", "run.toml"]


def test_three_checkpoints_of_a_setting_are_three_candidates_for_the_scorer(clean: Run) -> None:
    assert clean.card.model.candidates == ("one/last", "three/step-3", "three/step-6", "three/last")
    requested = clean.predictions().group_by("candidate").aggregate([("row_id", "count")]).to_pylist()
    assert len({row["row_id_count"] for row in requested}) == 1
    assert len(requested) == 4


def counted(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> list[int]:
    full, calls = getattr(owner, name), []
    monkeypatch.setattr(owner, name, lambda self, *given: (calls.append(1), full(self, *given))[1])
    return calls


def test_a_rule_that_trains_folds_trains_each_fold_once_for_the_whole_team(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"low": {"lr": 0.001}, "high": {"lr": 0.1}}
    on = "linear_unit_test_2/shuffled"
    fixed: dict[str, Any] = {"seeds": 2, "steps": 5, "settings": settings, "selection": "leave_one_group_out"}
    with monkeypatch.context() as patch:
        trained = counted(patch, Training, "run")
        together = run_baseline("mlp", on, out=tmp_path / "together", **fixed)
    groups = len({*find_benchmark(on).part("train").row_metadata["group"].tolist()})
    assert groups > 1
    assert len(trained) == 1 + groups
    alone = run_baseline("mlp", on, out=tmp_path / "alone", stack=1, **fixed)
    scores = [np.array(run.predictions()["scores"].to_pylist()) for run in (together, alone)]
    assert np.abs(scores[0] - scores[1]).max() < 1e-5
    assert fs.score(together).ood.value == pytest.approx(fs.score(alone).ood.value)


OWN = """
name = "{name}"
title = "Own"
citation = "none"
network = "mlp"
algorithm = "{algorithm}"
quick = {{ steps = 5 }}
full = {{ steps = 5 }}
"""


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The published data, and a folder for own recipes."""
    if not SHARED.exists():
        pytest.skip("the published data are not here")
    monkeypatch.setenv("FARSHIFT_MIRRORS", str(SHARED))
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path / "own"))
    recipes = tmp_path / "own" / "baselines" / "recipes"
    recipes.mkdir(parents=True)
    return recipes


def test_a_baseline_that_adapts_is_asked_as_the_protocol_says(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shared / "own-t3a.toml").write_text(OWN.format(name="own-t3a", algorithm="t3a"))
    resets, sizes = counted(monkeypatch, AdaptiveReplica, "reset"), []
    full = TrainedStack.predict
    monkeypatch.setattr(
        TrainedStack,
        "predict",
        lambda self, index, batch: (sizes.append(len(batch["features"])), full(self, index, batch))[1],
    )
    run_baseline("own-t3a", "vowel/speakers_adapting", seeds=1, out=tmp_path / "run")
    assert len(resets) == 3, "before each of id_test, id_val and ood_test"
    assert max(sizes) == 32


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farshift.core.engines.find_spec", lambda name: None)
    with (
        pytest.raises(
            MissingExtra, match=r"^the engine ray needs an optional dependency: pip install 'farshift\[ray\]'$"
        ),
        open_engine("ray"),
    ):
        pass


ON_PROGRESS = "vowel/speakers"


class Bars:
    """Listens, and looks at the run folder each time that it hears of steps."""

    def __init__(self, out: Path | None = None) -> None:
        self.out, self.steps, self.notes, self.lines = out, [], [], []  # type: ignore[var-annotated]
        self.states: list[Status] = []

    def say(self, text: str) -> None:
        self.lines.append(text)

    def advance(self, label: str, done: int, total: int | None, note: str = "") -> None:
        if label == f"mlp on {ON_PROGRESS}, steps":
            self.steps.append((done, total))
            self.notes.append(note)
            if self.out is not None:
                self.states += list_statuses([self.out])


@pytest.fixture
def each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_progress_reporter, "REPORT_INTERVAL", 0.0)
    monkeypatch.setattr(fit_progress_reporter, "WRITE_INTERVAL", 0.0)


@pytest.mark.usefixtures("each_step")
@pytest.mark.parametrize("stack", [0, 1])
def test_a_bar_moves_with_the_steps_of_all_replicas_and_tells_their_loss(tmp_path: Path, stack: int) -> None:
    heard = Bars()
    with report_to(heard):
        run_baseline("mlp", ON_PROGRESS, seeds=2, steps=4, stack=stack, out=tmp_path / "r")
    done = [done for done, _ in heard.steps]
    assert {total for _, total in heard.steps} == {8}
    assert done == sorted(done)
    assert {2, 4, 6, 8} <= set(done)
    assert any(note.startswith("loss ") and float(note.removeprefix("loss ")) > 0 for note in heard.notes)
    assert f"mlp on {ON_PROGRESS}: training 2 replicas, 4 steps each" in heard.lines


@pytest.mark.usefixtures("each_step")
def test_status_says_what_is_trained_of_a_run_and_the_time_left(tmp_path: Path) -> None:
    heard = Bars(tmp_path / "r")
    with report_to(heard):
        run_baseline("mlp", ON_PROGRESS, seeds=2, steps=4, out=tmp_path / "r")
    halfway = next(item for item in heard.states if item.steps == 4)
    assert (halfway.state, halfway.of_steps, halfway.answers) == ("running", 8, 0)
    assert halfway.left is not None
    assert halfway.left >= 0
    assert "50%" in halfway.cells()
    assert not (tmp_path / "r" / "training").exists()


def test_replicas_that_left_a_stack_are_trained_and_time_left_is_by_the_pace_of_this_process(tmp_path: Path) -> None:
    now, file = [0.0], get_fit_file(tmp_path, [3, 5])
    output = FitProgressReporter("mlp", 400, file, clock=lambda: now[0])
    training: Any = SimpleNamespace(stack=[0, 1, 2, 3], total=50, steps=100, losses=[])
    output.begin(training, 4)  # taken up at step 50
    now[0], training.stack, training.total = 10.0, [0, 1], 75
    output.step(training, 4)
    result = read_fit_progress(file)
    assert result is not None
    assert (result.done, result.steps, result.first) == (350, 400, 200)
    assert result.remaining_seconds == pytest.approx(10 / 150 * 50)
    output.close()
    assert read_fit_progress(file) is None


def test_trainings_in_other_processes_are_one_bar(tmp_path: Path) -> None:
    heard, seen = Bars(), {}  # type: ignore[var-annotated]
    files = {get_fit_file(tmp_path, [seed]): 100 for seed in (0, 1)}
    label = f"mlp on {ON_PROGRESS}, steps"
    with report_to(heard):
        report_file_progress(label, files, seen)
        for path, (done, loss) in zip(files, [(40, 1.0), (10, 2.0)], strict=True):
            FitProgress(done, 100, 0, 1.0, loss).write(path)
        report_file_progress(label, files, seen)
        next(iter(files)).unlink()
        report_file_progress(label, files, seen)
    assert heard.steps == [(50, 200), (110, 200)]
    assert heard.notes == ["loss 1.5", "loss 2"]
