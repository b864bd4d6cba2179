"""Sequences, arithmetic and chains: each answer against its definition, each format against the plain one."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import pytest
from algorithmic_cases import instances
from farshift.core.errors import BadDefinition

SIZES = (1, 2, 3, 7, 20, 60)


def outputs_and(answer, found):
    return [row["output"] for row in found], [answer(row["input"]) for row in found]


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split()]


def joined(values) -> str:
    return " ".join(map(str, values))


@pytest.mark.parametrize(
    ("task", "answer", "options"),
    [
        ("strings/copy", lambda text: text, {"symbols": 2}),
        ("strings/copy_distinct", lambda text: text, {"symbols": 100}),
        ("strings/reverse", lambda text: joined(text.split()[::-1]), {"symbols": 100}),
        ("strings/sort_distinct", lambda text: joined(sorted(numbers(text))), {"symbols": 100}),
        ("strings/sort_digits", lambda text: joined(sorted(numbers(text))), {}),
        ("strings/count", lambda text: joined(range(numbers(text)[0], numbers(text)[1] + 1)), {"symbols": 70}),
        ("strings/mode", lambda text: Counter(text).most_common(1)[0][0], {}),
        ("arithmetic/modular_sum", lambda text: str(sum(numbers(text.replace("+", " "))) % 10), {"modulus": 10}),
        ("arithmetic/parity", lambda text: str(text.count("1") % 2), {}),
    ],
)
def test_the_answer_is_what_the_task_says(task, answer, options):
    ours, theirs = outputs_and(answer, instances(task, SIZES, **options))
    assert ours == theirs


@pytest.mark.parametrize("task", ["strings/copy_distinct", "strings/sort_distinct"])
def test_distinct_numbers_stand_once_each(task):
    result = instances(task, SIZES, symbols=100)
    assert all(len(set(row["input"].split())) == row["length"] for row in result)


def test_the_most_frequent_letter_is_the_only_one_that_often():
    result = instances("strings/mode", SIZES)
    leaders = [[count for _, count in Counter(row["input"]).most_common(2)] for row in result]
    assert all(len(counts) == 1 or counts[0] > counts[1] for counts in leaders)


def test_the_runs_before_the_most_frequent_letter_are_the_letters_sorted():
    for row in instances("strings/mode_scratchpad", SIZES):
        *runs, winner = row["output"].split()
        assert "".join(runs) == "".join(sorted(row["input"]))
        assert all(len(set(run)) == 1 for run in runs) and len(runs) == len(set(row["input"]))
        assert winner == max(runs, key=len)[0]


def test_a_polynomial_has_its_value_modulo_ten():
    for row in instances("arithmetic/polynomial", SIZES):
        x, terms = row["input"].removeprefix("x = ").split(" : ")
        parts = [term.split(" x ^ ") for term in terms.split(" + ")]
        assert len(parts) == row["length"]
        assert int(row["output"]) == math.fsum(int(c) * int(x) ** int(e) for c, e in parts) % 10


def digits(text: str) -> int:
    return int(text.replace(" ", ""))


def carries(left: str, right: str) -> int:
    """The longest run of places that carry, digit by digit as at school."""
    carry, run, longest = 0, 0, 0
    for a, b in zip(left.split()[::-1], right.split()[::-1], strict=True):
        carry = int(int(a) + int(b) + carry > 9)
        run = run + 1 if carry else 0
        longest = max(longest, run)
    return longest


def test_a_sum_is_the_sum_with_one_digit_more_and_knows_its_longest_carry():
    for row in instances("arithmetic/addition", SIZES):
        left, right = row["input"].split(" + ")
        assert len(left.split()) == len(right.split()) == row["length"] == len(row["output"].split()) - 1
        assert digits(row["output"]) == digits(left) + digits(right)
        assert row["carry_chain"] == carries(left, right)


def test_long_carries_are_not_rare():
    chains = [row["carry_chain"] for row in instances("arithmetic/addition", [20], each=1000)]
    assert sum(chain >= 5 for chain in chains) > 200


def unhinted(text: str) -> str:
    return joined(word for word in text.split() if not word.startswith("i"))


@pytest.mark.parametrize(
    ("task", "options"),
    [
        ("arithmetic/addition_reversed", {}),
        ("arithmetic/addition_hinted", {"hints": 70}),
        ("arithmetic/addition_reversed_hinted", {"hints": 70}),
    ],
)
def test_the_formats_of_addition_hold_the_same_sums(task, options):
    plain, other = instances("arithmetic/addition", SIZES), instances(task, SIZES, **options)
    assert [row["item"] for row in plain] == [row["item"] for row in other]
    assert [row["input"] for row in plain] == [unhinted(row["input"]) for row in other]
    step = -1 if "reversed" in task else 1
    assert [row["output"] for row in plain] == [joined(unhinted(row["output"]).split()[::step]) for row in other]


def test_a_hint_names_the_place_of_its_digit_in_both_numbers_and_in_the_sum():
    for row in instances("arithmetic/addition_hinted", SIZES, hints=70):
        left, right = (side.split()[::2] for side in row["input"].split(" + "))
        total = row["output"].split()[::2]
        assert left == right == total[1:]
        places = [int(hint[1:]) for hint in total]
        assert all(after == before + 1 for before, after in pairwise(places))
        assert places[0] >= 0 and places[-1] < 70


def test_short_training_sums_show_every_hint():
    result = instances("arithmetic/addition_hinted", range(1, 11), each=200, hints=70)
    shown = {word for row in result for word in f"{row['input']} {row['output']}".split() if word.startswith("i")}
    assert shown == {f"i{position}" for position in range(70)}


def test_the_formats_of_parity_hold_the_same_bits_and_end_with_the_same_answer():
    plain = instances("arithmetic/parity", SIZES)
    for task, options in (("parity_scratchpad", {}), ("parity_hinted_scratchpad", {"hints": 70})):
        other = instances(f"arithmetic/{task}", SIZES, **options)
        assert [row["item"] for row in plain] == [row["item"] for row in other]
        assert [row["input"] for row in plain] == [unhinted(row["input"]) for row in other]
        assert [row["output"] for row in plain] == [row["output"].split()[-1] for row in other]


def test_a_parity_scratchpad_is_the_running_parity():
    for row in instances("arithmetic/parity_scratchpad", SIZES):
        bits = numbers(row["input"])
        assert numbers(row["output"]) == [sum(bits[: at + 1]) % 2 for at in range(len(bits))]


def test_a_hinted_parity_scratchpad_names_the_ones():
    for row in instances("arithmetic/parity_hinted_scratchpad", SIZES, hints=70):
        words, notes = row["input"].split(), row["output"].rpartition("=")[0].split()
        ones = [hint for hint, bit in zip(words[::2], words[1::2], strict=True) if bit == "1"]
        assert notes[::2] == ones
        assert notes[1::2] == [str((at + 1) % 2) for at in range(len(ones))]


def resolved(text: str) -> dict[str, int]:
    """The value of every variable, by going through the clauses until nothing is left open."""
    values, clauses = {"1": 1}, [clause.split() for clause in text.split(" ; ")[:-1]]
    while clauses:
        left = []
        for name, _, sign, before in clauses:
            if before in values:
                values[name] = values[before] * (1 if sign == "+" else -1)
            else:
                left.append([name, _, sign, before])
        assert len(left) < len(clauses), "the clauses have no order"
        clauses = left
    return values


def asked(row) -> str:
    return row["input"].split()[-2]


@pytest.mark.parametrize("task", ["lego/chain", "lego/chain_shuffled"])
def test_a_chain_gives_the_value_of_the_variable_asked_for(task):
    result = instances(task, (2, 3, 8, 40))
    assert [row["output"] for row in result] == [f"{resolved(row['input'])[asked(row)]:+d}" for row in result]


def test_the_variable_asked_for_is_of_the_second_half_of_the_chain():
    for row in instances("lego/chain", (2, 3, 8, 40)):
        chain = [clause.split()[0] for clause in row["input"].split(" ; ")[:-1]]
        assert len(set(chain)) == row["length"]
        assert chain.index(asked(row)) >= row["length"] // 2


def test_the_formats_of_a_chain_hold_the_same_clauses():
    plain = instances("lego/chain", (2, 3, 8, 40))
    for task in ("chain_shuffled", "chain_shuffled_scratchpad"):
        other = instances(f"lego/{task}", (2, 3, 8, 40))
        assert [row["item"] for row in plain] == [row["item"] for row in other]
        assert [sorted(row["input"].split(" ; ")) for row in plain] == [
            sorted(row["input"].split(" ; ")) for row in other
        ]
        assert [row["output"] for row in plain] == [row["output"].split()[-1] for row in other]


def test_a_chain_scratchpad_gives_each_variable_its_value_in_the_order_of_the_chain():
    for row in instances("lego/chain_shuffled_scratchpad", (2, 3, 8, 40)):
        values = resolved(row["input"])
        notes = [note.split() for note in row["output"].split(" ; ")]
        assert all(int(value) == values[name] for name, value in notes)
        assert notes[-1][0] == asked(row)
        before = {clause.split()[0]: clause.split()[3] for clause in row["input"].split(" ; ")[:-1]}
        assert [before[name] for name, _ in notes] == ["1", *(name for name, _ in notes[:-1])]


@pytest.mark.parametrize(
    ("task", "size", "options"),
    [
        ("strings/copy_distinct", 11, {"symbols": 10}),
        ("strings/sort_distinct", 11, {"symbols": 10}),
        ("strings/count", 11, {"symbols": 10}),
        ("arithmetic/addition_hinted", 10, {"hints": 10}),
        ("arithmetic/parity_hinted_scratchpad", 11, {"hints": 10}),
        ("lego/chain", 101, {}),
    ],
)
def test_a_size_beyond_the_supply_is_refused(task, size, options):
    with pytest.raises(BadDefinition, match=r"the task has no instances of size \d+: there are 1\d+ "):
        instances(task, [size], **options)
