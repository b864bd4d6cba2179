"""What an audit decides: each kind of shift, where it is held, where it is not, and the line that says why."""

from __future__ import annotations

import numpy as np
import pytest
from audited import audited, rows_of
from farshift.core.errors import BadDefinition, UnknownName
from farshift.splits.audit.verdict import find_remedy

PART = ["train"] * 4 + ["ood_test"] * 2
PLAIN = {"q": ["a b", "b c", "c a", "a c", "b a", "c b"], "y": ["0", "1", "0", "1", "0", "1"]}


def decided(kind, columns=PLAIN, part=PART, inputs=("q",), **said):
    result = audited(kind, columns, part, list(inputs), **said)
    assert "\n" not in result["why"]
    return result["holds"], result["why"]


@pytest.mark.parametrize("kind", ["length", "easy-to-hard"])
@pytest.mark.parametrize(
    ("severity", "expected"),
    [
        ([1, 2, 3, 4, 5, 6], (True, "training reaches severity 4, ood_test begins at 5")),
        ([1, 2, 3, 5, 5, 6], (False, "training reaches severity 5, ood_test begins at 5")),
        (None, (False, "no severity in train and ood_test")),
    ],
)
def test_length_and_difficulty_must_end_in_training_where_the_test_begins(kind, severity, expected):
    assert decided(kind, severity=severity) == expected


COMMANDS = [f"{verb} {where}" for verb in ("walk", "run", "jump", "look") for where in ("left", "right", "up", "down")]


def commands(held, times=20):
    """Many rows of each command, told apart by their numbers, which are no words of the text."""
    texts = [text for text in COMMANDS for _ in range(times)]
    part = ["ood_test" if text in held else "train" for text in texts]
    return {"q": texts, "k": list(range(len(texts))), "y": texts}, part


def test_pairs_of_words_that_a_random_split_shows_are_new_to_most_of_the_test():
    columns, part = commands({"walk left", "run right"})
    assert decided("compositional", columns, part, ("q", "k")) == (
        True,
        "0 unseen tokens; 100% of ood_test rows hold an unseen pair of words in q (0% by chance); "
        "100% of ood_test rows hold an unseen pair of words in y (0% by chance)",
    )


def test_prose_of_which_every_random_split_has_new_pairs_is_no_compositional_split():
    words = [f"w{k}" for k in range(30)]
    texts = [f"{a} {b}" for a in words for b in words if a != b]
    part = ["ood_test" if k % 5 == 0 else "train" for k in range(len(texts))]
    holds, why = decided("compositional", {"q": texts, "y": ["0"] * len(texts)}, part)
    assert not holds
    assert "no form of novelty: 100% of ood_test rows hold an unseen pair of words in q (100% by chance)" in why


def test_unseen_words_are_no_new_combination_unless_declared():
    columns, part = commands({"walk left", "run right", "jump up"})
    columns = {
        name: [str(v).replace("jump up", "hop up") if name == "q" else v for v in values]
        for name, values in columns.items()
    }
    holds, why = decided("compositional", columns, part, ("q", "k"))
    assert not holds
    assert why.startswith("1 unseen tokens; ")
    declared = {"unseen_tokens": {"ood_test": 1}}
    assert decided("compositional", columns, part, ("q", "k"), declared=declared)[0]
    too_many = {"unseen_tokens": {"ood_test": 2}}
    assert decided("compositional", columns, part, ("q", "k"), declared=too_many) == (
        False,
        "1 tokens of ood_test do not occur in training, but 2 are declared",
    )


SHAPES = {
    "pixels": [1, 2, 3, 4, 5, 6, 7, 8],
    "shape": ["disc", "disc", "box", "box", "disc", "disc", "box", "box"],
    "colour": ["red", "red", "blue", "blue", "blue", "blue", "red", "red"],
    "y": ["0", "1"] * 4,
}
SHAPE_PART = ["train"] * 4 + ["ood_test"] * 4


def test_factors_known_one_by_one_and_unknown_together_are_a_new_combination():
    assert decided("compositional", SHAPES, SHAPE_PART, ("pixels",), factors=["shape", "colour"]) == (
        True,
        "0 unseen tokens; 100% of ood_test rows combine factors as no training row does",
    )


def test_a_factor_whose_value_training_never_shows_is_no_combination():
    columns = SHAPES | {"shape": [*SHAPES["shape"][:7], "star"]}
    holds, why = decided("compositional", columns, SHAPE_PART, ("pixels",), factors=["shape", "colour"])
    assert (holds, why.split(";")[0]) == (False, "1 unseen tokens")


def test_half_of_the_rows_combined_anew_are_not_most_of_them():
    columns = SHAPES | {"colour": ["red", "red", "blue", "blue", "blue", "blue", "blue", "blue"]}
    holds, why = decided("compositional", columns, SHAPE_PART, ("pixels",), factors=["shape", "colour"])
    assert not holds
    assert "no form of novelty: 50% of ood_test rows combine factors" in why


def test_a_factor_is_a_field_of_single_values():
    with pytest.raises(UnknownName, match="shap"):
        decided("compositional", SHAPES, SHAPE_PART, ("pixels",), factors=["shap"])


def test_groups_that_training_does_not_have_are_new_templates():
    group = ["a", "a", "b", "b", "c", "d"]
    columns = {"k": [1, 2, 3, 4, 5, 6], "y": PLAIN["y"]}
    assert decided("compositional", columns, inputs=("k",), group=group) == (
        True,
        "0 unseen tokens; 0 of 2 groups of ood_test are in training",
    )
    assert decided("compositional", columns, inputs=("k",), group=[*group[:5], "a"]) == (
        False,
        "0 unseen tokens; no form of novelty: 1 of 2 groups of ood_test are in training",
    )


def test_a_depth_beyond_training_is_a_new_combination():
    columns = {"k": [1, 2, 3, 4, 5, 6], "y": PLAIN["y"]}
    assert decided("compositional", columns, inputs=("k",), severity=[1, 1, 2, 2, 3, 3]) == (
        True,
        "0 unseen tokens; training reaches severity 2, ood_test begins at 3",
    )


def test_a_compositional_split_without_anything_measurable_does_not_hold():
    columns = {"k": [1, 2, 3, 4, 5, 6], "y": PLAIN["y"]}
    assert decided("compositional", columns, inputs=("k",)) == (
        False,
        "0 unseen tokens; no form of novelty: nothing to measure",
    )
    assert decided("compositional", columns, ["train"] * 6, ("k",)) == (False, "no rows in train and ood_test")


def numbered(rows, **columns):
    return {"k": list(range(rows)), **columns}


HALVES = ["train"] * 400 + ["ood_test"] * 400
LABELS = ["0", "1"] * 400


def domains(*group, labels=LABELS):
    holds, why = decided("domain", numbered(800, y=labels), HALVES, ("k",), group=list(group))
    return holds, why.split(";")[0]


def test_domains_are_disjoint_or_their_proportions_differ():
    assert domains(*["a"] * 400, *["b"] * 400) == (True, "domains are disjoint")
    holds, why = domains(*["a"] * 300, *["b"] * 100, *["a"] * 100, *["b"] * 300)
    assert (holds, why) == (True, "the proportions of domains differ by 0.50 (total variation")
    holds, why = domains(*(["a", "a", "b", "b"] * 200))
    assert not holds
    assert why.startswith("domains are shared, and the proportions of domains")
    assert "differ by 0.00" in why


def test_a_correlation_of_domain_and_label_that_turns_over_is_a_shift():
    turned = ["a" if (label == "0") == (k < 400) else "b" for k, label in enumerate(LABELS)]
    holds, why = domains(*turned)
    assert (holds, why) == (True, "the proportions of domains with labels differ by 1.00 (total variation")


def test_proportions_that_differ_only_as_those_of_any_small_sample_are_no_shift():
    group = [f"g{(k * 7919) % 61}" for k in range(80)]
    part = ["train"] * 40 + ["ood_test"] * 40
    holds, why = decided("domain", numbered(80, y=["0", "1"] * 40), part, ("k",), group=group)
    assert not holds
    assert "by chance" in why


def test_a_domain_split_names_its_domains():
    assert decided("domain", numbered(6, y=PLAIN["y"]), inputs=("k",)) == (False, "no groups in train and ood_test")


def noisy(override, part=PART):
    return decided("corrupted-label", numbered(6, y=[0, 1, 0, 1, 0, 1]), part, ("k",), override=override)


def test_corrupted_labels_are_wrong_in_training_and_right_elsewhere():
    assert noisy([1, None, 1, None, None, None]) == (True, "2 of 4 training labels are wrong, test labels are not")
    assert noisy([1, 1, None, None, 0, None]) == (
        True,
        "1 of 4 training labels are wrong (2 were redrawn), test labels are not",
    )
    assert noisy([0, 1, None, None, None, None])[0] is False
    assert noisy([1, None, None, None, 1, None]) == (
        False,
        "1 of 4 training labels are wrong, and so are labels of ood_test",
    )


def test_an_input_of_training_in_the_test_fails_every_kind_unless_declared():
    columns = PLAIN | {"q": ["a b", "b c", "c a", "a c", "a b", "c b"]}
    severity = [1, 1, 1, 1, 2, 2]
    assert decided("length", columns, severity=severity) == (
        False,
        "1 input in both parts of train/ood_test (none are declared)",
    )
    declared = {"duplicates": {"train/ood_test": 1}}
    assert decided("length", columns, severity=severity, declared=declared)[0]
    assert decided("length", PLAIN, severity=severity, declared=declared) == (
        False,
        "0 inputs in both parts of train/ood_test (declared are 1)",
    )


def test_a_refusal_knows_the_declaration_that_takes_the_split():
    columns, part = commands({"walk left", "run right", "jump up"})
    columns["q"] = [text.replace("jump up", "hop up") for text in columns["q"]]
    rows = rows_of("compositional", columns, part, ["q", "k"])
    result = audited("compositional", columns, part, ["q", "k"])
    assert find_remedy(rows.definition, result) == ({"unseen_tokens": {"ood_test": 1}}, "")
    columns = PLAIN | {"q": ["a b", "b c", "c a", "a c", "a b", "c b"]}
    for severity, left in (
        ([1, 1, 1, 1, 2, 2], ""),
        ([3, 3, 3, 3, 2, 2], "training reaches severity 3, ood_test begins at 2"),
    ):
        rows = rows_of("length", columns, PART, ["q"], severity=severity)
        result = audited("length", columns, PART, ["q"], severity=severity)
        assert find_remedy(rows.definition, result) == ({"duplicates": {"train/ood_test": 1}}, left)
    alike = PLAIN | {"k": list(range(6))}
    group = ["a", "a", "a", "b", "a", "b"]
    rows = rows_of("domain", alike, PART, ["q", "k"], group=group)
    assert find_remedy(rows.definition, audited("domain", alike, PART, ["q", "k"], group=group)) == (
        {"one_distribution": True},
        "",
    )
    rows = rows_of("length", PLAIN, PART, ["q"], severity=[1, 2, 3, 5, 5, 6])
    assert find_remedy(rows.definition, audited("length", PLAIN, PART, ["q"], severity=[1, 2, 3, 5, 5, 6])) == ({}, "")


def test_a_declared_number_of_unseen_words_is_checked_in_every_kind():
    declared = {"unseen_tokens": {"ood_test": 3}}
    assert decided("length", severity=[1, 1, 1, 1, 2, 2], declared=declared) == (
        False,
        "0 tokens of ood_test do not occur in training, but 3 are declared",
    )


def test_a_tensor_is_no_factor():
    columns = {"k": list(range(6)), "grid": np.zeros((6, 4), np.int64), "y": PLAIN["y"]}
    with pytest.raises(BadDefinition, match="factor 'grid' is int64\\[4\\], no single value"):
        decided("compositional", columns, inputs=("k",), factors=["grid"])
