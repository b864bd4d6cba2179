"""Names, numbers and remarks as users give them: kept apart, kept plain, or refused before anything is trained."""

from __future__ import annotations

from typing import Any

import farshift as fs
import models
import numpy as np
import pytest
from farshift import FarshiftError
from farshift.benchmarks.listing import describe_benchmark
from farshift.benchmarks.settings import MAX_CANDIDATES, to_card_values
from farshift.core.errors import ModelError
from own import changed

ON = "modadd97/xi35"

ALIKE = [
    ("a", "A"),
    (".", ".."),
    ("e\u0301", "é"),
    ("✓" * 99 + "1", "✓" * 99 + "2"),
]
"""Names that a file system, or a careless escape, may take for the same, or for something else altogether."""


@pytest.mark.parametrize(("one", "other"), ALIKE, ids=[f"{item[:5]!r}-{other[:5]!r}" for item, other in ALIKE])
def test_settings_are_kept_apart_whatever_they_are_called(tmp_path, one, other):
    settings = {one: {"wrong": 0.5}, other: {"wrong": 0.0}}
    run = fs.evaluate(models.Adder, on=ON, seeds=2, settings=settings, selection="id_val", out=tmp_path / "r")
    assert run.candidates == (f"{one}/last", f"{other}/last")
    result = fs.score(run)
    assert result.selections["id_val"].chosen == {0: f"{other}/last", 1: f"{other}/last"}
    assert result.id.value == 1.0
    assert result.selections["last"].id.value == pytest.approx(0.5, abs=0.02)


def test_a_setting_may_be_called_as_the_fold_of_another(tmp_path):
    fold = {"bad": {}, "bad.leave_one_group_out.0": {}}
    run = fs.evaluate(
        Rote, on="scan/length", seeds=1, settings=fold, selection="leave_one_group_out", out=tmp_path / "r"
    )
    assert fs.score(run).candidates == 2


class Rote:
    def fit(self, train, val, budget):
        self.rows = len(train)

    def predict(self, batch):
        return ["I_WALK"] * len(batch["command"])


def test_values_are_stated_so_that_other_values_are_stated_otherwise():
    values = [1, 1.5, True, "x", None, [1, 2], [1, 3], (2, 1), {"a": [1]}, {"a": [2]}, np.arange(3), np.arange(4)]
    values += [
        "y" * 500,
        "y" * 499 + "z",
        list(range(500)),
        list(range(499)),
        print,
        dict,
        np.float32(2.5),
        {(1, 2): 3},
    ]
    output = [to_card_values({"value": value})["value"] for value in values]
    assert len(set(map(repr, output))) == len(values)
    assert all(isinstance(item, int | float | str) and len(str(item)) <= 200 for item in output)
    assert output == [to_card_values({"value": value})["value"] for value in values], "the same again"


def test_whole_numbers_of_numpy_are_whole_numbers(tmp_path):
    run = fs.evaluate(
        models.Adder(), on=ON, seeds=np.arange(2), batch_size=np.int64(700), steps=np.int32(7), out=tmp_path / "r"
    )
    assert (run.seeds, run.steps, run.card.model.extra["batch_size"]) == ((0, 1), 7, 700)
    assert fs.evaluate(models.Adder(), on=ON, seeds=np.int64(2)).seeds == (0, 1)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        *[({"seeds": seeds}, "seeds: give 1 to 100") for seeds in ([1.5], [], [2**31], "12", 1.0, 10**12, -1)],
        ({"batch_size": 64.5}, "batch_size must be a whole number, at least 1, not 64.5"),
        ({"batch_size": 0}, "batch_size must be a whole number, at least 1, not 0"),
        ({"steps": -1}, "steps must be a whole number, at least 1, not -1"),
        ({"steps": "9"}, "steps must be a whole number, at least 1, not '9'"),
        ({"limit": 0}, "limit must be a whole number, at least 1, not 0"),
        ({"settings": {"a": 3}}, "setting 'a': give its values by name"),
        ({"settings": {"a": {1: 2}}}, "setting 'a': give its values by name"),
        ({"settings": ["a"]}, "settings: give at most 1000, by name"),
        ({"settings": {3: {}}}, "setting 3: its name must be 1 to 100 printable characters"),
        ({"settings": {"a\nb": {}}}, r"setting 'a\\nb': its name must be"),
        ({"settings": {"a": {"seed": 3}}}, "'seed' is set by the harness and cannot be in a setting"),
        ({"settings": {str(number): {} for number in range(1001)}}, "give at most 1000"),
        *(({"name": name}, "1 to 100 printable characters, not spaces alone") for name in ("x" * 101, "", " ")),
        ({"on": "scan/lenght"}, "did you mean scan/length"),
        ({"budget": "huge"}, "use full or quick"),
        ({"device": "gpu"}, "device 'gpu': use cpu, cuda"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, complaint):
    with pytest.raises(FarshiftError, match=complaint):
        fs.evaluate(models.Adder, **({"on": ON, "seeds": 1} | options))


def spent(remarks: Any, after: Any = None) -> dict[str, Any]:
    """What the card of two settings says that one seed spent."""

    class Remarkable(models.Adder):
        def __init__(self, seed):
            super().__init__(seed)

        def fit(self, train, val, budget):
            return remarks

        def remarks(self):
            return after

    return fs.evaluate(Remarkable, on=ON, seeds=1, settings={"a": {}, "b": {}}).card.spent.by_seed["seed_0"]


def test_remarks_of_any_kind_never_spoil_a_run():
    assert spent({"steps": "many"})["steps"] == "many"
    assert spent({"steps": np.int64(3), "loss": np.float32(0.5)}).items() >= {"steps": 6, "loss": 0.5}.items()
    assert spent({"path": "\ud800x", "\ud800": 1}).items() >= {"path": "?x", "?": 1}.items()
    assert spent({"seed": 7, "event": "x", "time": 1, "self": 2})["seed"] == 7
    assert "huge" not in spent({"huge": 10**5000})
    assert spent({"loss": np.array(float("nan"))})["loss"] == "nan"
    measured = spent({"fit_seconds": "x"}, {"fit_seconds": 1e9, "predict_seconds": "y", "tokens": 5})
    assert measured["tokens"] == 5
    assert measured["fit_seconds"] < 100
    assert measured["predict_seconds"] < 100


@pytest.mark.parametrize("when", ["fit", "remarks"])
@pytest.mark.parametrize("number", [30, np.int64(30), np.float32(30)], ids=["int", "int64", "float32"])
def test_steps_are_held_to_the_ceiling_whenever_and_however_a_model_says_them(when, number):
    class Spender(models.Adder):
        def fit(self, train, val, budget):
            return {"steps": number} if when == "fit" else None

        def remarks(self):
            return {"steps": number} if when == "remarks" else {}

    bounded = changed(ON, {"protocol": {"ceiling": {"steps": 20}}})
    with pytest.raises(ModelError, match="fit used 30 steps, and the protocol allows 20"):
        fs.evaluate(Spender, on=bounded, seeds=1)


def test_a_models_own_attributes_are_not_mistaken_for_the_harnesss(tmp_path):
    class Own(models.Adder):
        steps, code, fit, reset, checkpoints, remarks, close = 1000, np.zeros(3), None, None, None, None, None

    assert fs.evaluate(Own(), on=ON, seeds=1, out=tmp_path / "r").model == "Own"


def test_a_model_that_breaks_when_it_is_looked_at_is_named():
    class Guarded(models.Adder):
        def __getattr__(self, name):
            raise KeyError(name)

    with pytest.raises(ModelError, match="reading the model, a Guarded, raised KeyError"):
        fs.evaluate(Guarded(), on=ON, seeds=1)


class Shut(models.Adder):
    def close(self):
        raise OSError("still in use")


class Both(Shut):
    def predict(self, batch):
        raise ValueError("the cause")


@pytest.mark.parametrize(
    ("model", "complaint"), [(Shut, "seed 0: close raised OSError: still in use"), (Both, "ValueError: the cause")]
)
def test_a_model_that_breaks_when_it_is_closed_is_named_and_an_earlier_error_comes_first(model, complaint):
    with pytest.raises(ModelError, match=complaint):
        fs.evaluate(model, on=ON, seeds=1)


def test_a_checkpoint_that_adapts_is_refused_where_adaptation_is_not_allowed():
    class Adapting(models.Adder):
        def reset(self):
            pass

    class Plain(models.Adder):
        def checkpoints(self):
            yield "last", Adapting()

    with pytest.raises(ModelError, match=r"Adapting has reset\(\), so it adapts at test time"):
        fs.evaluate(Plain, on=ON, seeds=1)


def test_settings_and_checkpoints_together_make_no_more_candidates_than_a_board_takes(monkeypatch):
    class Many(models.Adder):
        def checkpoints(self):
            return [(str(number), self) for number in range(3)]

    assert MAX_CANDIDATES == 1000
    monkeypatch.setattr("farshift.benchmarks.harness.loop.MAX_CANDIDATES", 5)
    with pytest.raises(ModelError, match="more than 5 candidates: give fewer settings or checkpoints"):
        fs.evaluate(Many, on=ON, seeds=1, settings={"a": {}, "b": {}})


def test_checkpoints_may_be_called_anything_that_can_be_printed(tmp_path):
    class Odd:
        def checkpoints(self):
            for number, name in enumerate(("a/b", ".", "..", "a b", "id_test.0.0-9", "last")):
                yield name, models.Adder(0, number / 10)

        def predict(self, batch):
            raise AssertionError

    run = fs.evaluate(Odd(), on=ON, seeds=2, selection="id_val", out=tmp_path / "r")
    assert run.candidates == ("a/b", ".", "..", "a b", "id_test.0.0-9", "last")
    assert fs.score(run).selections["oracle"].chosen == {0: "a/b", 1: "a/b"}


def holdout(part: str, to: str, share: float) -> dict:
    return {"part": part, "to": to, "share": share}


def crafted(*families: str) -> dict:
    return {"protocol": {"selection": ["last", "crafted_shift"], "crafted": {"families": families, "folds": 2}}}


@pytest.mark.parametrize(
    ("on", "change", "complaint"),
    [
        (ON, {"holdouts": [holdout("train", "id_val", 1e-6)]}, "the part id_val has no rows"),
        (ON, {"holdouts": [holdout("train", "id_val", 1 - 1e-9)]}, "the part train has no rows"),
        (ON, {"holdouts": [holdout("train", "id_test", 0.1)]}, "holdouts: the split has rows of id_test already"),
        (ON, {"holdouts": [holdout(part, "id_val", 0.1) for part in ("train", "id_test")]}, "only one per new part"),
        *[(ON, {"task": {"classes": classes}}, "classes") for classes in (0, 1, -3)],
        (ON, {"task": {"inputs": ["a", "b", "sum"]}}, "'sum' has the role label, so it cannot be an input"),
        (ON, {"task": {"inputs": ["a", "row_id"]}}, "no field named 'row_id'"),
        (ON, {"task": {"label": "a"}}, "label 'a' is not the split's, 'sum'"),
        (ON, {"views": {"extra": {"part": "id_test", "rows": "corrupted"}}}, "the view 'extra' has no rows"),
        (ON, crafted("blur", "noise"), "the input 'a' is not an image, and augmentations require images"),
        ("optdigits/writers", crafted("blurr", "noise"), "'blurr': did you mean blur"),  # codespell:ignore blurr
    ],
)
def test_a_definition_that_shows_labels_or_scores_nothing_is_refused_before_anything_is_trained(on, change, complaint):
    with pytest.raises((FarshiftError, ValueError), match=complaint):
        fs.evaluate(lambda batch: None, on=changed(on, change), seeds=1)


def test_a_benchmark_says_how_its_prompt_is_read():
    lines = dict(describe_benchmark(ON)["lines"])
    assert lines["prompt"] == "version 1, 8 examples, parsed by last_number@1"
