"""Augmented rows: those made from texts, with their weights and groups; and training on them, alone or among many."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from farshift.baselines.augmentations import augment_rows, mixup
from farshift.baselines.augmentations.primitives import find_primitives
from farshift.baselines.recipe import (
    Recipe,
    find_plugin_files,
    find_recipe,
    replace_augmentation,
    resolve_settings,
)
from farshift.baselines.running.sweep import run_baseline
from farshift.baselines.training.losses import cross_entropy, label_smoothing_loss, squared_error
from farshift.baselines.training.replica_group import ReplicaGroup
from farshift.baselines.training.trained_group import TrainedGroup
from farshift.baselines.training.trainer import Training
from farshift.baselines.training.training_rows import FitInput, Member
from farshift.benchmarks.model import Budget, Task
from farshift.core.errors import BadDefinition, ModelError, UnknownName
from farshift.core.plugins import load_module

from .small_sequences import COPY, pairs
from .toys import ADD, PARITY, TURN, Rows, accuracy, additions, bits, commands, recipe, start_training, trained, words

SCAN = [
    ("walk left", "L W"),
    ("walk and run", "W R"),
    ("run twice", "R R"),
    ("run left and walk twice", "L R W W"),
    ("jump", "J"),
]


def grown(task: Task, rows: Any, **settings: Any) -> list[tuple[str, str]]:
    """The added rows alone."""
    defaults = {"augment": "none", "copies": 1, "hint_task": "successor"}
    count = len(rows[task.label])
    result, weight, _ = augment_rows(task, rows, np.ones(count), None, defaults | settings)
    assert len(weight) == len(result[task.label])
    return list(zip(result[task.inputs[0]][count:], result[task.label][count:], strict=True))


def test_without_an_augmentation_nothing_changes() -> None:
    rows, weight, group = commands().numpy(), np.ones(36), np.arange(36)
    result = augment_rows(TURN, rows, weight, group, {"augment": "none"})
    assert all(a is b for a, b in zip(result, (rows, weight, group), strict=True))


def test_primitives_are_the_pairs_of_words_that_no_row_tells_apart() -> None:
    rows = [
        (a.split(), b.split()) for a, b in zip(*(commands().columns[x] for x in ("command", "actions")), strict=True)
    ]
    read, written = ({word for row in rows for word in row[side]} for side in (0, 1))
    where = {word: [word in row[side] for row in rows] for side, known in enumerate((read, written)) for word in known}
    expected = {
        a: b
        for a, b in product(read, written)
        if where[a] == where[b] and not all(where[a]) and sum(where[a] == where[other] for other in read | written) == 2
    }
    assert find_primitives([a for a, _ in rows], [b for _, b in rows]) == expected
    assert expected == {"walk": "W", "run": "R", "look": "K", "jump": "J", "left": "L", "right": "T"}


def test_words_that_always_come_together_are_no_primitives() -> None:
    assert find_primitives([["a", "b"], ["c"]], [["A"], ["C"]]) == {"c": "C"}
    assert find_primitives([["a"], ["a", "c"]], [["A"], ["A", "C"]]) == {"c": "C"}


def test_renaming_back_gives_the_row_that_was_cloned() -> None:
    def back(text: str) -> str:
        return " ".join(word.split("_")[0] for word in text.split())

    copies = grown(COPY, pairs(*SCAN), augment="primitives", copies=5)
    assert [(back(a), back(b)) for a, b in copies] == [row for row in SCAN for _ in range(5)]
    assert len(set(copies) | set(SCAN)) == 6 * len(SCAN), "no two copies of a row are alike"


def test_a_clone_has_the_same_name_for_a_primitive_on_both_sides() -> None:
    names = {"walk": "W", "run": "R", "jump": "J", "left": "L"}
    for read, written in grown(COPY, pairs(*SCAN), augment="primitives", copies=7):
        renamed = [
            names[word.split("_")[0]] + word[word.find("_") :] * ("_" in word)
            for word in read.split()
            if word.split("_")[0] in names
        ]
        assert set(renamed) == set(written.split())


def test_every_name_of_a_primitive_is_met_as_often_as_the_others() -> None:
    rows = pairs(*SCAN)
    texts = [*rows["input"], *(read for read, _ in grown(COPY, rows, augment="primitives", copies=3))]
    for word, often in (("walk", 3), ("run", 3), ("jump", 1), ("left", 2)):
        counts = [sum(name in text.split() for text in texts) for name in (word, *(f"{word}_{i}" for i in (1, 2, 3)))]
        assert counts == [often] * 4


def test_a_new_name_is_none_that_there_is() -> None:
    copies = grown(COPY, pairs(("a", "A"), ("a_1", "B")), augment="primitives", copies=1)
    assert ("a_1_", "A_1") in copies


def test_weights_and_groups_follow_the_rows() -> None:
    rows, group = pairs(*SCAN), np.array(["p", "q", "p", "q", "r"], object)
    settings = {"augment": "primitives", "copies": 2}
    result, weight, groups = augment_rows(COPY, rows, np.array([1.0, 2, 3, 4, 5]), group, settings)
    assert groups is not None
    assert weight.tolist() == [1, 2, 3, 4, 5, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert "".join(groups) == "pqpqr" + "ppqqppqqrr"
    assert len(result["input"]) == 15


def test_a_task_without_primitives_is_an_error() -> None:
    with pytest.raises(ModelError, match="no word of the inputs corresponds to one word of the outputs"):
        grown(COPY, pairs(("a b", "x"), ("b a", "x")), augment="primitives")
    with pytest.raises(ModelError, match="tokens are characters"):
        grown(PARITY, bits(4, 4).numpy(), augment="primitives")
    with pytest.raises(ModelError, match="this is a classification task"):
        augment_rows(ADD, additions().numpy(), np.ones(49), None, {"augment": "primitives", "copies": 1})


def test_successors_follow_the_last_place_of_a_word_in_the_answer() -> None:
    result = grown(COPY, pairs(("3 1 1 2", "1 1 2 3"), ("7", "7")), augment="task_hinting", copies=9)
    assert sorted(result) == [("3 1 1 2 → 1", "2"), ("3 1 1 2 → 2", "3")]


def test_a_blank_is_filled_with_the_word_that_stood_there() -> None:
    result = grown(COPY, pairs(("b a", "a b")), augment="task_hinting", copies=9, hint_task="fill")
    assert sorted(result) == [("b a □ a □", "b"), ("b a □ □ b", "a")]


def test_counts_are_of_the_answer_in_decimal_digits() -> None:
    result = grown(
        COPY, pairs(("x", " ".join(["a"] * 12 + ["b"]))), augment="task_hinting", copies=9, hint_task="count"
    )
    assert sorted(result) == [("x # a", "1 2"), ("x # b", "1")]


def test_hints_are_drawn_without_repetition_as_many_as_asked_for() -> None:
    answer = " ".join(map(str, range(10)))
    for copies in (1, 4):
        result = grown(COPY, pairs((answer, answer), ("5 4", "4 5")), augment="task_hinting", copies=copies)
        assert len(result) == len(set(result)) == copies + 1


def test_hints_of_texts_of_characters_are_characters() -> None:
    task = Task("sequence", ("bits",), "sums", tokens="character")
    rows = {"bits": words(["ab"]), "sums": words(["ba"])}
    assert grown(task, rows, augment="task_hinting") == [("ab→b", "a")]


def test_hints_that_cannot_be_asked_are_an_error() -> None:
    with pytest.raises(ModelError, match="this task is aligned"):
        grown(PARITY, bits(4, 4).numpy(), augment="task_hinting")
    with pytest.raises(ModelError, match="use successor, fill, count"):
        grown(COPY, pairs(("a", "a")), augment="task_hinting", hint_task="sort")
    with pytest.raises(ModelError, match="contains '→'"):
        grown(COPY, pairs(("a → b", "a")), augment="task_hinting")


def test_a_network_is_trained_on_the_rows_that_were_added() -> None:
    rows = Rows(command=words(["a b", "b", "c"]), actions=words(["A B", "B", "C"]))
    built = recipe("lstm", 60, width=16, lr=0.02, batch_size=8, augment="primitives", copies=1)
    model = trained(built, TURN, rows)
    requested = Rows(command=words(["a_1 b_1", "c_1"]), actions=words(["A_1 B_1", "C_1"]))
    assert accuracy(model, TURN, requested) == 1


TASK = Task("classification", ("image",), "kind", classes=3)
SPECTROGRAM = Task("classification", ("sound",), "kind", classes=3)
STEPS = 6
OF_PICTURES = sorted(
    name
    for name in find_plugin_files("augmentations")
    if getattr(load_module("baselines/augmentations", name, "augmentation"), "READS", "")
    in ("colours", "images", "numbers")
)


def images(count: int = 24, seed: int = 0) -> Rows:
    draw = np.random.default_rng(seed)
    kind = np.arange(count) % 3
    pixels = draw.integers(0, 180, (count, 8, 8, 3)) + 60 * (kind[:, None, None, None] == np.arange(3))
    return Rows(image=pixels.astype(np.uint8), kind=kind, group=np.array([f"g{n // 3 % 3}" for n in range(count)]))


def fitted(
    augment: str, members: list[Member], kept: Path | None = None, network: str = "mlp", **settings: Any
) -> TrainedGroup:
    chosen = {"batch_size": 8, "lr": 0.01, "augment": augment} | ({"width": 12} if network == "mlp" else {}) | settings
    built = recipe(network, STEPS, chosen.pop("algorithm", "erm"), **chosen)
    rows = FitInput(images(), images(9, 1), None, images(12, 2).only("image"))
    return ReplicaGroup(built, TASK, members, "toy/toy", kept).fit(rows, Budget("quick"))


def scores(fit: TrainedGroup, members: list[Member]) -> list[Any]:
    return [fit.replica(member).predict(images(15, 4).only("image")).scores for member in members]


TWO = [Member(0, {}), Member(1, {})]


@pytest.mark.parametrize("settings", [{}, {"algorithm": "dann", "batch_size": 4}, {"network": "cnn", "widths": [4]}])
def test_streamed_rows_are_augmented_as_resident_ones(settings: dict[str, Any]) -> None:
    result = [scores(fitted("domainbed", TWO, feed=feed, **settings), TWO) for feed in ("resident", "streamed")]
    for item, other in zip(*result, strict=True):
        np.testing.assert_allclose(item, other, rtol=0, atol=1e-6)


def training(augment: str, task: Task = TASK, rows: Rows | None = None, **settings: Any) -> Training:
    names = settings.pop("names", ["first", "second"])
    chosen = {"width": 8, "batch_size": 7, "lr": 0.01, "augment": augment} | settings
    built = recipe("mlp", 4, chosen.pop("algorithm", "erm"), **chosen)
    return start_training(built, task, rows or images(), [{}] * len(names), names, feed="auto")


def drawn(given: Training, step: int) -> list[Any]:
    (pair,) = given.batches(step)
    return list(pair)


@pytest.mark.parametrize("augment", OF_PICTURES)
def test_a_replica_has_the_same_rows_to_the_bit_alone_or_among_many(augment: str) -> None:
    both, alone = drawn(training(augment), 1)[0], drawn(training(augment, names=["second"]), 1)[0]
    assert torch.equal(both.inputs[1][1:], alone.inputs[1])
    assert torch.equal(both.target[1:], alone.target)
    assert not torch.equal(both.inputs[1][0], both.inputs[1][1])
    assert not torch.equal(alone.inputs[1], drawn(training("none", names=["second"]), 1)[0].inputs[1])


def test_shifted_rows_are_augmented_beside_the_labelled_ones() -> None:
    given = training("domainbed")
    (batch, _), plain = drawn(given, 0), drawn(training("none"), 0)[0]
    shifted = replace(plain, unlabelled=plain.inputs)
    [(both, _)] = given.augmentation.of([(shifted, None)], 0)
    assert torch.equal(both.inputs[1], batch.inputs[1])
    assert both.unlabelled is not None
    assert not torch.equal(both.unlabelled[1], plain.inputs[1])
    assert not torch.equal(both.unlabelled[1], batch.inputs[1])


def test_labels_of_mixed_rows_are_shares_of_two_classes() -> None:
    batch, _ = drawn(training("mixup", mixup_alpha=1.0), 0)
    assert batch.target.shape == (2, 7, 3)
    torch.testing.assert_close(batch.target.sum(-1), torch.ones(2, 7))
    assert ((batch.target > 0).sum(-1) <= 2).all()


def test_losses_of_shares_are_the_mixed_losses_of_classes() -> None:
    logits, keeps = torch.randn(2, 5, 4), torch.rand(2, 5)
    first, second = torch.randint(4, (2, 5)), torch.randint(4, (2, 5))
    hot = torch.nn.functional.one_hot
    target = keeps[..., None] * hot(first, 4) + (1 - keeps[..., None]) * hot(second, 4)
    epsilon = torch.tensor([0.1, 0.3])
    for loss in (cross_entropy, lambda x, y: label_smoothing_loss(x, y, epsilon)):
        expected = keeps * loss(logits, first) + (1 - keeps) * loss(logits, second)
        torch.testing.assert_close(loss(logits, target), expected)
    torch.testing.assert_close(squared_error(logits, hot(first, 4).float()), squared_error(logits, first))


def test_spectrograms_are_augmented_along_time_and_frequency() -> None:
    sounds = np.random.default_rng(0).random((12, 20, 6)).astype(np.float32)
    rows = Rows(sound=sounds, kind=np.arange(12) % 3)
    given = training("specaugment", task=SPECTROGRAM, rows=rows, time_width=5, frequency_width=2, time_warp=0)
    result, plain = (drawn(item, 0)[0].inputs[1] for item in (given, training("none", task=SPECTROGRAM, rows=rows)))
    changed = (result != plain).view(2, 7, 20, 6)
    full = changed.all(2)[..., None, :] | changed.all(3)[..., None]
    assert torch.equal(changed, full & changed)
    assert changed.any()
    assert not changed.all()


@pytest.mark.parametrize(
    ("augment", "task", "rows", "settings", "why"),
    [
        ("domainbed", ADD, additions(), {}, "augmentation domainbed: it is for images of one or three channels"),
        ("mixup", ADD, additions(), {}, "augmentation mixup: it is for rows of numbers without categories"),
        ("specaugment", TASK, images(), {}, "augmentation specaugment: it is for spectrograms, rows of two axes"),
        (
            "cutmix",
            TASK,
            images(),
            {"algorithm": "gce"},
            "it mixes labels, and the algorithm gce needs one class",
        ),
    ],
)
def test_what_an_augmentation_does_not_suit_is_refused(
    augment: str, task: Task, rows: Rows, settings: dict[str, Any], why: str
) -> None:
    with pytest.raises(ModelError, match=why):
        training(augment, task=task, rows=rows, **settings)


def test_pictures_are_no_texts() -> None:
    built = recipe("lstm", 2, width=8, batch_size=4, augment="flip_crop")
    with pytest.raises(ModelError, match="augmentation flip_crop: it is for images, and this task has other inputs"):
        start_training(built, TURN, commands())


def test_settings_are_those_of_the_augmentations_that_are_named() -> None:
    built: Recipe = find_recipe("cnn")
    assert "jitter" not in resolve_settings(built, "")
    both = replace_augmentation(built, "domainbed+mixup,jitter=0.4,mixup_alpha=1")
    assert resolve_settings(both, "")["jitter"] == 0.4
    assert resolve_settings(both, "")["mixup_alpha"] == 1.0
    assert resolve_settings(both, "")["grey_chance"] == 0.1
    assert mixup.SETTINGS["mixup_alpha"] == 0.2
    with pytest.raises(UnknownName, match="did you mean domainbed"):
        replace_augmentation(built, "domainbet")
    with pytest.raises(BadDefinition, match="no setting named 'jiter': did you mean jitter"):
        replace_augmentation(built, "domainbed,jiter=1")
    with pytest.raises(BadDefinition, match="magnitude = 11: use a number from 0 to 10"):
        replace_augmentation(built, "randaugment,magnitude=11")
    with pytest.raises(BadDefinition, match="--augment domainbed,jitter: give settings as name=value"):
        replace_augmentation(built, "domainbed,jitter")
    with pytest.raises(ModelError, match="knn is an estimator, which does not augment rows"):
        replace_augmentation(find_recipe("knn"), "domainbed")


def test_how_a_recipe_is_run_otherwise_stands_on_the_run_card(tmp_path: Path) -> None:
    spent: dict[str, Any] = {"seeds": 1, "budget": "quick", "steps": 2}
    run = run_baseline("cnn", "shapes/diagonal", out=tmp_path / "own", augment="domainbed,jitter=0.2", **spent)
    recipe = run.card.model.extra["recipe"]
    assert (recipe["network"], recipe["algorithm"]) == ("cnn", "erm")
    assert {recipe["settings"][name] for name in ("augment", "jitter", "crop_least")} == {"domainbed", 0.2, 0.7}
    plain = run_baseline("cnn", "shapes/diagonal", out=tmp_path / "plain", **spent)
    assert (run.model, plain.model) == ("cnn (domainbed)", "cnn")
    assert "recipe" not in plain.card.model.extra
    assert plain.card.model.extra["code"] != run.card.model.extra["code"]


def test_aug_zero_repeats_each_row_in_words_that_no_other_copy_has() -> None:
    rows = {"command": np.array([a for a, _ in SCAN], object), "actions": np.array([b for _, b in SCAN], object)}
    task = Task(type="sequence", inputs=("command",), label="actions")
    added = grown(task, rows, augment="aug_zero", copies=2)
    originals = [pair for pair in SCAN for _ in range(2)]
    for copy in (0, 1):
        renamed: dict[str, str] = {}
        for old, new in zip(originals[copy::2], added[copy::2], strict=True):
            for before, after in zip(" ".join(old).split(), " ".join(new).split(), strict=True):
                assert renamed.setdefault(before, after) == after != before
        assert len(set(renamed.values())) == len(renamed)
    first, second = ({word for pair in added[copy::2] for text in pair for word in text.split()} for copy in (0, 1))
    assert not first & second and not (first | second) & {word for pair in SCAN for t in pair for word in t.split()}
