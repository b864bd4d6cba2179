"""Generated questions: each answer is found again by another way. (That the rows are those of the published splits, in
every process, shows `test_determinism.py`.)"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter, deque
from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import pytest
from farshift.core.errors import BadDefinition, UnknownName
from farshift.loaders.generators import (
    comparison,
    coverage,
    gcog,
    rated_sums,
    scan_primitives,
    scylla,
    skills,
    string_rewriting,
    two_hop,
)
from farshift.loaders.generators.algorithmic import rows as algorithmic_rows
from farshift.loaders.generators.scan import list_commands

LENGTHS = (3, 4, 5, 8, 13, 40, 41, 120)
SIZES = (1, 2, 3, 7, 20, 60)
CHAINS = (2, 3, 8, 40)
TRACED = (2, 3, 8, 10, 30)


def instances(task: str, sizes: Iterable[int], each: int = 20, measure: str = "length", **options: Any) -> list[dict]:
    """Up to `each` different instances of `task` ("file/function") of every size, one dictionary a row."""
    ranges = [{"first": size, "last": size, "each": each} for size in sizes]
    return algorithmic_rows(task=task, seed="test", sizes=ranges, measure=measure, options=options).to_pylist()


def numbers(text: str) -> list[int]:
    return [int(word) for word in text.split()]


def joined(values: Iterable[Any]) -> str:
    return " ".join(map(str, values))


def value(expression: str) -> int:
    """The value modulo 5, by Python's own arithmetic."""
    assert set(expression) <= set("01234+-*()")
    return eval(expression, {"__builtins__": {}}) % 5


def pop_and_push(text: str) -> str:
    stack: list[str] = []
    for symbol in text:
        stack = stack[:-1] if symbol == "-" else [*stack, {"a": "0", "b": "1"}.get(symbol, symbol)]
    return "".join(stack[::-1]) + "."


def from_lowest_bit(bits: str) -> int:
    return sum(int(bit) << position for position, bit in enumerate(bits))


def missing(text: str) -> str:
    half = len(text) // 2
    return next(b if a == "_" else a for a, b in zip(text[:half], text[half:], strict=True) if "_" in (a, b))


def solve_equation(text: str) -> str:
    left, right = text.split("=")
    return "".join(x for x in "01234" if value(left.replace("x", x)) == int(right))


def evaluate_polynomial(text: str) -> str:
    x, terms = text.removeprefix("x = ").split(" : ")
    parts = [term.split(" x ^ ") for term in terms.split(" + ")]
    return str(sum(int(c) * int(x) ** int(e) for c, e in parts) % 10)


def without_hints(text: str) -> str:
    return joined(word for word in text.split() if not word.startswith("i"))


def add(text: str) -> str:
    left, right = (int(side.replace(" ", "")) for side in text.split(" + "))
    return joined(str(left + right).zfill(len(text.split(" + ")[0].split()) + 1))


def resolve_chain(text: str) -> dict[str, int]:
    """The value of every variable, by going through the clauses until nothing is left open."""
    values, clauses = {"1": 1}, [clause.split() for clause in text.split(" ; ")[:-1]]
    while clauses:
        for name, _, sign, before in (clause for clause in clauses if clause[3] in values):
            values[name] = values[before] * (1 if sign == "+" else -1)
        clauses = [clause for clause in clauses if clause[0] not in values]
    return values


ANSWERS: list[tuple[str, Callable[[str], str], Iterable[int], dict[str, Any]]] = [
    # Deletang et al. 2023, arXiv 2207.02098.
    (
        "chomsky_regular/even_pairs",
        lambda text: str(sum(text[at : at + 2] in ("01", "10") for at in range(len(text) - 1)) % 2),
        LENGTHS,
        {},
    ),
    ("chomsky_regular/modular_arithmetic", lambda text: str(value(text)), (1, 3, 5, 9, 39, 121), {}),
    ("chomsky_regular/parity_check", lambda text: str(text.count("1") % 2), LENGTHS, {}),
    ("chomsky_regular/cycle_navigation", lambda text: str((text.count("+") - text.count("-")) % 5), LENGTHS, {}),
    ("chomsky_context_free/modular_arithmetic_brackets", lambda text: str(value(text)), (1, 2, *LENGTHS), {}),
    ("chomsky_context_free/reverse_string", lambda text: text[::-1], LENGTHS, {}),
    ("chomsky_context_free/stack_manipulation", pop_and_push, (1, 2, *LENGTHS), {}),
    ("chomsky_context_free/solve_equation", solve_equation, LENGTHS, {}),
    (
        "chomsky_context_sensitive/binary_addition",
        lambda text: format(sum(map(from_lowest_bit, text.split("+"))), "b")[::-1],
        LENGTHS,
        {},
    ),
    (
        "chomsky_context_sensitive/binary_multiplication",
        lambda text: format(math.prod(map(from_lowest_bit, text.split("*"))), "b")[::-1],
        LENGTHS,
        {},
    ),
    ("chomsky_context_sensitive/duplicate_string", lambda text: text + text, LENGTHS, {}),
    ("chomsky_context_sensitive/missing_duplicate", missing, (2, 4, 6, 12, 40, 120), {}),
    ("chomsky_context_sensitive/bucket_sort", lambda text: "".join(sorted(text)), LENGTHS, {}),
    ("chomsky_context_sensitive/odds_first", lambda text: text[1::2] + text[::2], LENGTHS, {}),
    (
        "chomsky_context_sensitive/compute_sqrt",
        lambda text: format(math.isqrt(int(text, 2)), f"0{-(-len(text) // 2)}b"),
        LENGTHS,
        {},
    ),
    ("strings/copy", lambda text: text, SIZES, {"symbols": 2}),
    ("strings/copy_distinct", lambda text: text, SIZES, {"symbols": 100}),
    ("strings/reverse", lambda text: joined(text.split()[::-1]), SIZES, {"symbols": 100}),
    ("strings/sort_distinct", lambda text: joined(sorted(numbers(text))), SIZES, {"symbols": 100}),
    ("strings/sort_digits", lambda text: joined(sorted(numbers(text))), SIZES, {}),
    ("strings/count", lambda text: joined(range(numbers(text)[0], numbers(text)[1] + 1)), SIZES, {"symbols": 70}),
    ("strings/mode", lambda text: Counter(text).most_common(1)[0][0], SIZES, {}),
    (
        "strings/mode_scratchpad",
        lambda text: joined(
            [*(c * n for c, n in sorted(Counter(text).items())), max(sorted(set(text)), key=text.count)]
        ),
        SIZES,
        {},
    ),
    ("arithmetic/modular_sum", lambda text: str(sum(numbers(text.replace("+", " "))) % 10), SIZES, {"modulus": 10}),
    ("arithmetic/parity", lambda text: str(text.count("1") % 2), SIZES, {}),
    (
        "arithmetic/parity_scratchpad",
        lambda text: joined(sum(numbers(text)[: at + 1]) % 2 for at in range(len(text.split()))),
        SIZES,
        {},
    ),
    ("arithmetic/polynomial", evaluate_polynomial, SIZES, {}),
    ("arithmetic/addition", add, SIZES, {}),
    ("arithmetic/addition_reversed", lambda text: joined(add(text).split()[::-1]), SIZES, {}),
    ("lego/chain", lambda text: f"{resolve_chain(text)[text.split()[-2]]:+d}", CHAINS, {}),
    ("lego/chain_shuffled", lambda text: f"{resolve_chain(text)[text.split()[-2]]:+d}", CHAINS, {}),
]
"""By task: the answer to an input, sizes, and options."""


@pytest.mark.parametrize(("task", "answer", "sizes", "options"), ANSWERS, ids=[task for task, *_ in ANSWERS])
def test_an_answer_is_what_the_task_says(task, answer, sizes, options):
    result = instances(task, sizes, **options)
    assert {row["length"] for row in result} == set(sizes)
    assert len({row["input"] for row in result}) == len(result)
    assert [row["output"] for row in result] == [answer(row["input"]) for row in result]


@pytest.mark.parametrize(
    ("plain", "other", "sizes", "options"),
    [
        ("arithmetic/addition", "arithmetic/addition_hinted", SIZES, {"hints": 70}),
        ("arithmetic/addition_reversed", "arithmetic/addition_reversed_hinted", SIZES, {"hints": 70}),
        ("lego/chain", "lego/chain_shuffled", CHAINS, {}),
        ("lego/chain", "lego/chain_shuffled_scratchpad", CHAINS, {}),
        ("arithmetic/parity", "arithmetic/parity_scratchpad", SIZES, {}),
        ("arithmetic/parity", "arithmetic/parity_hinted_scratchpad", SIZES, {"hints": 70}),
    ],
)
def test_formats_of_a_task_hold_the_same_items_and_answers(plain, other, sizes, options):
    first, second = instances(plain, sizes), instances(other, sizes, **options)
    assert [row["item"] for row in first] == [row["item"] for row in second]
    if other.startswith("lego"):
        assert [sorted(row["input"].split(" ; ")) for row in first] == [
            sorted(row["input"].split(" ; ")) for row in second
        ]
    else:
        assert [row["input"] for row in first] == [without_hints(row["input"]) for row in second]
    answers = [without_hints(row["output"]) for row in second]
    keep = slice(None) if "addition" in other else slice(-1, None)
    assert [row["output"] for row in first] == [joined(answer.split()[keep]) for answer in answers]


def test_hints_name_the_place_of_a_digit_in_both_numbers_and_in_the_sum():
    for row in instances("arithmetic/addition_hinted", SIZES, hints=70):
        left, right = (numbers(side.replace("i", ""))[::2] for side in row["input"].split(" + "))
        total = numbers(row["output"].replace("i", ""))[::2]
        assert left == right == total[1:] and total == list(range(total[0], total[-1] + 1))


TRACED = {
    **dict.fromkeys(("graph_algorithms/bfs", "graph_algorithms/bellman_ford", "graph_algorithms/dfs"), (2, 3, 8)),
    **dict.fromkeys(("traces_linear/register_machine", "traces_linear/digit_product"), (2, 3, 8)),
    **dict.fromkeys(("traces_linear/interval_schedule", "traces_linear/increasing_subsequences"), (1, 2, 5)),
    **dict.fromkeys(("traces_branching/inorder_traversal", "traces_branching/merge_sort"), (2, 3, 8)),
    **dict.fromkeys(("traces_branching/pair_sums", "traces_branching/tree_search"), (2, 3, 8)),
}


@pytest.mark.parametrize("task", TRACED)
def test_a_trace_leads_to_the_answer_that_the_task_has_without_it(task):
    plain, traced = (instances(task, TRACED[task], trace=trace) for trace in (False, True))
    for row, other in zip(plain, traced, strict=True):
        assert (row["item"], row["input"], row["output"]) == (
            other["item"],
            other["input"],
            other["output"].split(" = ")[1],
        )


def test_a_proof_ends_in_the_verdict_and_its_cases_follow_the_implications():
    for depth, breadth in ((1, 1), (4, 1), (2, 2), (2, 3)):
        plain, proven = (
            instances(f"propositional/{task}", [depth], 12, "depth", breadths=[breadth])
            for task in ("entailment", "entailment_proof")
        )
        for row, proof in zip(plain, proven, strict=True):
            given, *steps, goal = row["input"].removesuffix(" ?").split(" ; ")
            onward, lanes = dict(step.split(" > ") for step in steps), [[head] for head in given.split(" | ")]
            for lane in lanes:
                while lane[-1] in onward:
                    lane.append(onward[lane[-1]])
            assert row["output"] == str(all(lane[-1] == goal for lane in lanes)).lower()
            assert proof["output"] == " ; ".join([*map(joined, lanes), row["output"]])


def test_numbers_of_scylla_s_ood_test_are_never_shown():
    shown, never = map(set, scylla.draw_halves("t"))
    assert shown | never == set(range(1, 400)) and not shown & never
    for row in scylla.rows(seed="t", train=2, test=2).to_pylist():
        task, text = row["question"].split(" : ")
        assert (task, row["level"]) == (row["task"], scylla.TASKS[task][0])
        assert set(numbers(text.partition(" ; ")[0])) <= (never if row["use"] == "ood_test" else shown)


def apply_skill(name: str, letters: list[str]) -> list[str]:
    turned = deque(letters)
    turned.rotate(-1)
    return {
        "reverse": letters[::-1],
        "rotate": list(turned),
        "sort": sorted(letters),
        "swap": [letters[-1], *letters[1:-1], letters[0]] if len(letters) > 1 else letters,
        "echo": [*letters, letters[-1]],
        "drop": letters[1:] or letters,
        "next": [chr((ord(letter) - ord("a") + 1) % 26 + ord("a")) for letter in letters],
        "odd": letters[::2],
    }[name]


def test_skills_are_applied_from_first_to_last_in_every_sequence():
    rows = skills.rows(seed="t", shortest=3, longest=6, counts={"1": 20, "2": 4}).to_pylist()
    for row in rows:
        names, letters = (side.split() for side in row["question"].split(" : "))
        assert (joined(names), len(names)) == (row["skills"], row["size"])
        for name in names:
            letters = apply_skill(name, letters)
        assert row["answer"] == joined(letters)
    pairs = {joined(pair): 4 for pair in product(skills.SKILLS, repeat=2)}
    assert Counter(row["skills"] for row in rows) == dict.fromkeys(skills.SKILLS, 20) | pairs


def test_a_rewriting_step_replaces_the_leftmost_occurrence_of_a_rule_of_the_regime():
    rows = string_rewriting.rows(
        seed="t", shortest=4, longest=9, regimes=[{"regime": "a", "rows": 300, "first": 5, "rules": 7}]
    ).to_pylist()
    for row in rows:
        rule, text = (part.replace(" ", "") for part in row["question"].split(" : "))
        left, right = rule.split(">")
        assert row["answer"].replace(" ", "") == text.replace(left, right, 1)
        assert row["occurs"] == ("yes" if left in text else "no")
    assert len({row["rule"] for row in rows}) == 7


def test_compositions_are_all_chains_of_two_facts_of_one_sort_and_comparisons_compare_facts():
    rows = two_hop.rows(seed="t", entities=60, relations=10, out_degree=5, ood_share=0.2).to_pylist()
    facts = {row["question"]: (row["answer"], row["facts"]) for row in rows if row["hops"] == 1}
    expected = {
        f"{first} {second.split()[1]}": (answer, sort, bridge)
        for first, (bridge, sort) in facts.items()
        for second, (answer, other) in facts.items()
        if second.split()[0] == bridge and sort == other
    }
    assert {r["question"]: (r["answer"], r["facts"], r["bridge"]) for r in rows if r["hops"] == 2} == expected
    options = {"seed": "t", "entities": 20, "attributes": 3, "values": 5, "ood_share": 0.25, "id_pairs": 300}
    rows = comparison.rows(**options).to_pylist()
    facts = {row["question"]: (row["answer"], row["facts"]) for row in rows if row["hops"] == 1}
    for row in (row for row in rows if row["hops"] == 2):
        attribute, item, other = row["question"].split()
        (left, sort), (right, same) = facts[f"{attribute} {item}"], facts[f"{attribute} {other}"]
        a, b = int(left[1:]), int(right[1:])
        assert row["answer"] == ("smaller" if a < b else "larger" if a > b else "equal")
        assert sort == same == row["facts"]


def test_simulated_sums_are_sums_and_their_responses_follow_their_difficulty():
    rows = rated_sums.rows(seed="t", count=600, systems=40, fewest=2, most=9).to_pylist()
    assert len({row["question"] for row in rows}) == 600
    for row in rows:
        assert row["answer"] == str(eval(row["question"]) % 10)
        assert (row["terms"], len(row["responses"])) == (len(row["question"].split()) // 2 + 1, 40)
    solved = [row["responses"].count("1") for row in rows]
    assert statistics.correlation(solved, [row["difficulty"] for row in rows]) < -0.9
    asked = sum(40 - row["responses"].count("-") for row in rows)
    assert asked / (600 * 40) == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize(("structure", "second"), [("two_hop", ("bridge", "x3")), ("non_tree", ("bridge", "x2", "x3"))])
def test_a_target_is_a_function_of_the_second_hops_arguments_alone(structure, second):
    rows = coverage.rows(seed="t", tokens=9, structure=structure).to_pylist()
    for inputs, output in ((("x1", "x2"), "bridge"), (second, "target")):
        seen: dict[tuple[int, ...], int] = {}
        assert all(seen.setdefault(tuple(row[name] for name in inputs), row[output]) == row[output] for row in rows)
    alone = {(row["bridge"], row["x3"], row["target"]) for row in rows}
    assert (len(alone) > len({pair[:2] for pair in alone})) == (structure == "non_tree")


REFUSED = [
    ("chomsky_regular/modular_arithmetic", 4, {}, "odd in number"),
    ("chomsky_context_free/solve_equation", 2, {}, "the shortest equation"),
    ("chomsky_context_sensitive/missing_duplicate", 5, {}, "an even length"),
    ("chomsky_context_sensitive/binary_addition", 2, {}, "at least 3 characters"),
    ("traces_branching/tree_search", 1, {"trace": True}, "the target is not the root"),
    ("traces_branching/inorder_traversal", 101, {"trace": True}, "there are 100 labels"),
    ("graph_algorithms/bfs", 101, {"trace": True}, "graphs have 2 to 100 nodes"),
    ("strings/copy_distinct", 11, {"symbols": 10}, "there are 1"),
    ("strings/count", 11, {"symbols": 10}, "there are 1"),
    ("arithmetic/addition_hinted", 10, {"hints": 10}, "there are 1"),
    ("lego/chain", 101, {}, "there are 1"),
    ("propositional/entailment", 20, {"breadths": [1, 4]}, "100 atoms allow chains of at most 19 for 4 cases"),
]


@pytest.mark.parametrize(("task", "size", "options", "complaint"), REFUSED, ids=[task for task, *_ in REFUSED])
def test_a_size_that_a_task_does_not_have_is_refused(task, size, options, complaint):
    with pytest.raises(BadDefinition, match=complaint):
        instances(task, [size], measure="depth" if "breadths" in options else "length", **options)


RANGE = {"first": 1, "last": 3, "each": 1}
BLOCK = {"regime": "r", "rows": 60, "depth": 1, "distractors": [1, 5]}


@pytest.mark.parametrize(
    ("generate", "options", "complaint"),
    [
        (algorithmic_rows, {"task": "strings/mode", "sizes": [{"first": 1, "last": 3}]}, "each range needs first"),
        (algorithmic_rows, {"task": "strings/mode", "sizes": [RANGE | {"every": 2}]}, "each range needs first"),
        (algorithmic_rows, {"task": "strings/mode", "sizes": [RANGE, RANGE | {"first": 3}]}, "3 is in two ranges"),
        (algorithmic_rows, {"task": "strings/mod", "sizes": []}, "did you mean strings/mode"),
        (gcog.rows, {"blocks": [BLOCK | {"depth": 2}]}, "gcog: r:"),
        (gcog.rows, {"blocks": [BLOCK | {"pairing": "other"}]}, "gcog: r:"),
        (gcog.rows, {"blocks": [BLOCK | {"leaves": ["jump"]}]}, "gcog: r:"),
        (rated_sums.rows, {"count": 10, "systems": 3, "fewest": 1, "most": 2}, "two terms"),
        (skills.rows, {"shortest": 1, "longest": 1, "counts": {"1": 27}}, "different rows"),
        (two_hop.rows, {"entities": 60, "relations": 10, "out_degree": 11, "ood_share": 0.2}, "out_degree = 11"),
        (
            comparison.rows,
            {"entities": 20, "attributes": 3, "values": 5, "ood_share": 0.25, "id_pairs": 631},
            "there are 630",
        ),
        (
            string_rewriting.rows,
            {"shortest": 1, "longest": 4, "regimes": [{"regime": "a", "rows": 2, "first": 0, "rules": 1}]},
            "at least 2 letters",
        ),
    ],
)
def test_options_that_cannot_be_are_refused(generate, options, complaint):
    with pytest.raises((BadDefinition, UnknownName), match=complaint):
        generate(seed="s", **options)


def test_a_task_of_ones_own_is_found(tmp_path, monkeypatch):
    folder = tmp_path / "loaders/generators/tasks"
    folder.mkdir(parents=True)
    (folder / "mine.py").write_text(
        "from farshift.loaders.generators.tasks import Examples\n"
        "def ones(draws, length):\n"
        "    return Examples([f'{n} {length}' for n in range(draws.rows)], ['1' * length] * draws.rows)\n"
    )
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    result = instances("mine/ones", [2], each=3)
    assert [(row["input"], row["output"]) for row in result] == [("0 2", "11"), ("1 2", "11"), ("2 2", "11")]


def test_rows_of_a_size_do_not_depend_on_how_many_there_are():
    few, many = (instances("traces_branching/tree_search", [3, 9], each=each, trace=True) for each in (5, 40))
    assert [row for row in few if row["length"] == 9] == [row for row in many if row["length"] == 9][:5]
    sizes = [row["length"] for row in instances("chomsky_regular/parity_check", [1, 2, 3, 10], each=200)]
    assert [sizes.count(size) for size in (1, 2, 3, 10)] == [2, 4, 8, 200], "a small size gives what it has"


def test_verbs_of_scan_have_other_names_that_mean_the_same_and_jump_is_combined_under_its_own_only():
    table, known = scan_primitives.rows(names=3, seed="t").to_pylist(), list_commands()
    assert {row["command"]: row["actions"] for row in table if not row["copy"]} == known
    copied = [row for row in table if row["copy"]]
    names = Counter()
    for row in copied:
        assert known[re.sub(r"\d", "", row["command"])] == re.sub(r"\d", "", row["actions"])
        verbs = set(re.findall(r"(?:walk|look|run|jump)\d?", row["command"]))
        assert {f"I_{verb.upper()}" for verb in verbs} == set(re.findall(r"I_(?!TURN)\w+", row["actions"]))
        assert row["command"] not in known and (len(row["command"].split()) == 1 or "jump" not in row["command"])
        assert len(verbs) == len({re.sub(r"\d", "", verb) for verb in verbs}), "one name in all places"
        names.update(verbs if len(verbs) == 2 else ())
    assert len({row["command"] for row in copied}) == len(copied)
    originals = Counter(re.sub(r"\d", "", row["command"]) for row in copied)
    trained = {command for command in known if re.search("walk|look|run", command) and "jump" not in command}
    assert originals == dict.fromkeys({*trained, "jump"}, 2)
    shares = [names[f"{verb}{number or ''}"] / names.total() for verb in ("walk", "look", "run") for number in range(3)]
    # Of 8 pairs of names 3 have a given new name, and 2 a given verb's own.
    assert shares == pytest.approx([share for _ in range(3) for share in (2 / 24, *[3 / 24] * 2)], abs=0.004)
