"""Checkpoints: a training that is killed goes on as if nothing had happened, and only ever takes up its own."""

from pathlib import Path
from typing import Any

import pytest
from farshift.baselines.running.sweep import run_baseline
from farshift.baselines.training import replica_group, trainer
from farshift.baselines.training.replica_group import ReplicaGroup
from farshift.baselines.training.trainer import Training
from farshift.baselines.training.training_rows import FitInput, Member
from farshift.core.errors import ModelError
from farshift.core.progress import report_to
from support import Heard

from .killed_groups import answers, fitted, killed_before, made, rows

SEEDS = [Member(0, {}), Member(1, {}), Member(2, {})]
RATES = [Member(0, {}), Member(0, {"lr": 1e30}), Member(1, {"lr": 0.02})]
SLOWER = [Member(0, {"lr": rate}) for rate in (0.01, 0.1, 0.5, 1.0)]
CASES: dict[str, tuple[dict[str, Any], list[Member], int]] = {
    "dropout, schedule and clipping": ({"dropout": 0.3, "schedule": "cosine", "clip": 0.5}, SEEDS, 0),
    "momentum and sharp steps": ({"optimiser": "sgd", "momentum": 0.9, "sharpness": 0.1}, SEEDS, 0),
    "two stages": ({"algorithm": "jtt", "first_percent": 50}, SEEDS, 0),
    "weights of environments": ({"algorithm": "group_dro", "batch_size": 4}, SEEDS, 3),
    "averaged weights": ({"algorithm": "swa"}, SEEDS, 0),
    "three candidates": ({"candidates": 3}, SEEDS, 0),
    "early stopping": ({"check_every": 1, "patience": 1}, SLOWER, 0),
    "early stopping with candidates": ({"check_every": 1, "patience": 1, "candidates": 6}, SLOWER, 0),
    "a replica that fails": ({}, RATES, 0),
    "replicas that all fail": ({"lr": 1e30}, SEEDS, 0),
    "one replica at a time": ({"stack": 1}, SEEDS, 0),
}


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer, "FINITE_CHECK_EVERY", 4)


@pytest.mark.parametrize("case", CASES)
def test_a_training_that_is_killed_goes_on_to_the_same_bits(case: str, tmp_path: Path) -> None:
    settings, members, groups = CASES[case]
    stack = settings.get("stack", 0)
    recipe = made(**{name: value for name, value in settings.items() if name != "stack"})
    train, stored = rows(groups).train, tmp_path / "kept"
    given: dict[str, Any] = {"stack": stack, "given": FitInput(train, train)}
    clean = answers(fitted(recipe, members, **given))
    steps = []
    further = 3 if case == "replicas that all fail" else 4
    for _ in range(5):  # each time it gets so many steps further
        code = killed_before(Training, "step", further + 1, lambda: fitted(recipe, members, stored, **given))
        steps.append(code)
        if code == 0:
            break
    assert steps[0] == -9
    assert set(steps) <= {-9, 0}
    assert answers(fitted(recipe, members, stored, **given)) == clean


def test_a_kill_while_the_last_checkpoint_is_written_leaves_the_one_before(tmp_path: Path) -> None:
    recipe, stored = made(), tmp_path / "kept"
    assert killed_before(Path, "replace", 6, lambda: fitted(recipe, SEEDS, stored)) == -9
    assert len(list(stored.glob("*.pt"))) == 1
    assert answers(fitted(recipe, SEEDS, stored)) == answers(fitted(recipe, SEEDS))


def test_a_finished_training_is_taken_up_without_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = made(candidates=2)
    first = answers(fitted(recipe, SEEDS, tmp_path))
    monkeypatch.setattr(Training, "step", lambda self: pytest.fail("a step was taken"))
    assert answers(fitted(recipe, SEEDS, tmp_path)) == first


def test_a_resumed_training_says_where_it_goes_on(tmp_path: Path) -> None:
    assert killed_before(Training, "step", 6, lambda: fitted(made(), SEEDS, tmp_path)) == -9
    with report_to(heard := Heard()):
        fitted(made(), SEEDS, tmp_path)
    assert heard.lines == ["toy on toy/toy: resumes at step 5 of 12"]


OTHERS: dict[str, dict[str, Any]] = {
    "settings": {"recipe": made(weight_decay=0.1)},
    "steps": {"recipe": made(steps=13)},
    "code": {"code": "b"},
    "rows of validation": {"given": FitInput(rows().train, rows().train)},
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_checkpoint_of_another_training_is_not_resumed(other: str, tmp_path: Path) -> None:
    first: dict[str, Any] = {"recipe": made(), "members": SEEDS, "kept": tmp_path, "code": "a"}
    fitted(**first)
    with report_to(heard := Heard()):
        again = fitted(**first | OTHERS[other])
    assert heard.lines == [] and len(list(tmp_path.glob("*.pt"))) == 2
    assert answers(again) == answers(fitted(**first | OTHERS[other] | {"kept": None}))


def test_other_training_rows_are_a_training_of_their_own(tmp_path: Path) -> None:
    """Selection rules have the same members trained on other rows in the same folder."""
    fitted(made(), SEEDS, tmp_path)
    assert fitted(made(), SEEDS, tmp_path, groups=2).replica(SEEDS[0]).remarks["steps"] == 12
    assert len(list(tmp_path.glob("*.pt"))) == 2


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
def test_a_checkpoint_that_is_cut_off_is_refused_in_one_line_that_names_it(share: float, tmp_path: Path) -> None:
    fitted(made(), SEEDS, tmp_path)
    (file,) = tmp_path.glob("*.pt")
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ModelError) as caught:
        fitted(made(), SEEDS, tmp_path).replica(SEEDS[0])
    assert str(caught.value) == f"{file} cannot be read as a checkpoint: remove it to train from the start"


def test_a_resumed_training_stacks_as_it_did_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere than on a CPU the number is measured, and a checkpoint is of one stack."""
    monkeypatch.setattr(replica_group, "choose_stack_size", lambda make, items: 2)
    assert killed_before(Training, "step", 6, lambda: fitted(made(), SEEDS, tmp_path)) == -9
    monkeypatch.setattr(replica_group, "choose_stack_size", lambda make, items: 3)
    assert fitted(made(), SEEDS, tmp_path).replica(SEEDS[0]).remarks["replicas"] == 2


def test_an_error_of_a_whole_fit_is_met_once_and_told_to_every_member(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[ReplicaGroup] = []

    def refused(self: ReplicaGroup, *_: Any) -> None:
        begun.append(self)
        raise ModelError("it cannot be")

    monkeypatch.setattr(ReplicaGroup, "fit", refused)
    with pytest.raises(ModelError, match=r"seed 0: it cannot be \(and 2 more of its replicas failed\)$"):
        run_baseline("mlp", "modadd97/xi35", seeds=3, steps=3, out=tmp_path / "run")
    assert len(begun) == 1
