"""Metrics of texts: held against the textbook's tables, and to what a token, an entity and an answer are."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from farshift import Answers
from farshift.benchmarks.extraction import load_extraction
from farshift.benchmarks.metrics import find_metric
from farshift.benchmarks.metrics.edit_similarity import compute_levenshtein
from farshift.benchmarks.metrics.entity_f1 import iterate_entities
from farshift.benchmarks.metrics.rouge_l import count_common, split_words
from farshift.benchmarks.model import Task
from farshift.core.errors import BadDefinition
from hypothesis import example, given, settings
from hypothesis import strategies as st
from metric_cases import Case, written

EXACT, TOKENS, EDITS = find_metric("exact_match"), find_metric("token_accuracy"), find_metric("edit_similarity")

WORDS, CHARACTERS = Task("sequence", ("x",), "y"), Task("sequence", ("x",), "y", tokens="character")

sequences = st.text("abc", max_size=12)


def rows(measure, given: list[str | None], expected: list[str], task: Task = WORDS) -> list[float]:
    answers = Answers.all_given(np.array(given, object))
    return measure.per_row(answers, np.array(expected, object), task).tolist()


def edit_table(left: str, right: str) -> int:
    """Wagner and Fischer's dynamic programme, entry by entry."""
    entries = np.zeros((len(left) + 1, len(right) + 1), int)
    entries[:, 0], entries[0] = range(len(left) + 1), range(len(right) + 1)
    for i, a in enumerate(left, 1):
        for j, b in enumerate(right, 1):
            entries[i, j] = min(entries[i - 1, j] + 1, entries[i, j - 1] + 1, entries[i - 1, j - 1] + (a != b))
    return int(entries[-1, -1])


def common_table(left: str, right: str) -> int:
    """The longest common subsequence, entry by entry."""
    entries = np.zeros((len(left) + 1, len(right) + 1), int)
    for i, a in enumerate(left, 1):
        for j, b in enumerate(right, 1):
            entries[i, j] = entries[i - 1, j - 1] + 1 if a == b else max(entries[i - 1, j], entries[i, j - 1])
    return int(entries[-1, -1])


@given(sequences, sequences)
@example("kitten", "sitting")
@example("", "abc")
def test_edit_distances_and_common_subsequences_are_the_tables(left, right):
    assert compute_levenshtein(left, right) == edit_table(left, right)
    assert count_common(left, right) == common_table(left, right)


@given(st.integers(0, 2**32), st.integers(60, 140), st.integers(60, 140))
@settings(max_examples=10)
def test_sequences_longer_than_a_machine_word_are_compared_as_the_tables_do(seed, left, right):
    rng = np.random.default_rng(seed)
    texts = ["".join(rng.choice(list("ab"), size)) for size in (left, right)]
    assert compute_levenshtein(*texts) == edit_table(*texts)
    assert count_common(*texts) == common_table(*texts)


def test_two_texts_of_the_longest_size_are_compared():
    text = "01" * 20_000
    assert compute_levenshtein("1" + text, text + "0") == 2
    assert compute_levenshtein("0" * 20_000, "1" * 20_000) == 20_000


@given(written(), st.sampled_from([WORDS, CHARACTERS]))
def test_token_accuracy_counts_positions(case, task):
    case = replace(case, task=task)
    expected = []
    for text, true, answered in zip(case.answers.prediction, case.truth, case.answers.answered, strict=True):
        given, target = (text.split(), true.split()) if task is WORDS else (text, true)
        longer = max(len(given), len(target))
        right = [at < len(given) and at < len(target) and given[at] == target[at] for at in range(longer)]
        expected.append((np.mean(right) if right else 1.0) if answered else 0.0)
    assert TOKENS.per_row(case.settled, case.truth, task) == pytest.approx(expected, rel=1e-12)


@given(written(), st.sampled_from([WORDS, CHARACTERS]))
def test_edit_similarity_is_never_less_than_token_accuracy_and_only_exact_matches_are_wholly_right(case, task):
    case = replace(case, task=task)
    exact, tokens, edits = (measure.per_row(case.settled, case.truth, task) for measure in (EXACT, TOKENS, EDITS))
    assert (edits >= tokens - 1e-12).all()
    assert (tokens == 1).tolist() == (edits == 1).tolist() == (exact == 1).tolist()


@pytest.mark.parametrize("measure", [EXACT, TOKENS, EDITS], ids=lambda measure: measure.name)
def test_white_space_parts_words_and_is_a_character_among_characters(measure):
    assert rows(measure, ["a b", " a \t b\n", "a\u00a0b"], ["a b"] * 3) == [1, 1, 1]
    assert rows(measure, [" ", "\n"], ["", " "]) == [1, 1]
    assert rows(measure, ["ab "], ["ab"], CHARACTERS) == [0 if measure is EXACT else pytest.approx(2 / 3)]


@pytest.mark.parametrize("measure", [TOKENS, EDITS], ids=lambda measure: measure.name)
@pytest.mark.parametrize("task", [WORDS, CHARACTERS], ids=lambda task: task.tokens)
def test_nothing_where_nothing_was_expected_is_right_and_a_lost_text_is_wrong(measure, task):
    assert rows(measure, ["", None, "a", ""], ["", "", "", "a"], task) == [1, 0, 0, 0]


def test_a_task_of_words_does_not_look_into_them():
    case = Case(Answers.all_given(np.array(["walked"], object)), np.array(["walk"], object), WORDS)
    assert case.value(EDITS) == 0.0
    assert replace(case, task=CHARACTERS).value(EDITS) == pytest.approx(4 / 6)


@pytest.mark.parametrize(
    ("scheme", "tags", "marked"),
    [
        ("conlleval", "I-PER I-PER O B-LOC", [("PER", 0, 2), ("LOC", 3, 4)]),
        ("conlleval", "B-PER I-LOC I-LOC", [("PER", 0, 1), ("LOC", 1, 3)]),
        ("conlleval", "B I O B", [("", 0, 2), ("", 3, 4)]),
        ("IOB1", "I-PER B-PER I-PER", [("PER", 0, 1), ("PER", 1, 3)]),
        ("IOB1", "O B-PER O", []),
        ("IOB2", "I-PER B-PER I-PER I-LOC", [("PER", 1, 3)]),
        ("IOB2", "B-PER E-PER", [("PER", 0, 1)]),
        ("BIOES", "B-PER I-PER E-PER S-LOC", [("PER", 0, 3), ("LOC", 3, 4)]),
        ("BIOES", "B-PER I-PER O E-LOC", []),
        ("conlleval", "", []),
        ("conlleval", "zebra <unk> -", []),
    ],
)
def test_tags_mark_entities_as_their_scheme_has_it(scheme, tags, marked):
    assert list(iterate_entities(tags.split(), scheme)) == marked


def test_entities_of_absent_tags_are_missed_and_superfluous_tags_do_not_count():
    measure = find_metric("entity_f1")

    def f1(given: list[str | None]) -> float:
        truth = np.array(["B-PER I-PER O B-LOC", "O O"], object)
        return measure.value(Answers.all_given(np.array(given, object)), truth, WORDS)

    assert f1(["B-PER I-PER O B-LOC", "O O"]) == 1
    assert f1(["B-PER I-PER", "O O B-LOC"]) == pytest.approx(2 / 3)
    assert f1([None, None]) == 0
    assert f1(["B-PER I-PER O B-ORG", "O B-PER"]) == pytest.approx(2 / 5)


def test_a_scheme_that_nobody_knows_is_refused():
    with pytest.raises(BadDefinition, match="options of metric entity_f1: scheme: .*IOB2"):
        find_metric("entity_f1", options={"scheme": "BILOU"})


def pair_spans(left: list[set], right: list[set]) -> float:
    """The largest sum over all pairings of the words that two sets share, twice, over the words of both."""
    short, long = sorted((left, right), key=len)
    pairings = permutations(long, len(short))
    return max(sum(2 * len(a & b) / (len(a) + len(b)) for a, b in zip(short, own, strict=True)) for own in pairings)


SPANS = st.lists(st.sets(st.sampled_from("bcdef"), min_size=1), min_size=1, max_size=4)


@given(SPANS, SPANS)
def test_span_f1_is_the_best_of_all_pairings_over_the_larger_number_of_spans(left, right):
    answer, expected = ("; ".join(" ".join(sorted(span)) for span in spans) for spans in (left, right))
    (value,) = rows(find_metric("span_f1"), [answer], [expected])
    assert value == pytest.approx(pair_spans(left, right) / max(len(left), len(right)))


def test_rouge_l_splits_runs_of_letters_and_digits():
    assert split_words("It's x_1 = 2.50, Übung") == ["it", "s", "x", "1", "2", "50", "bung"]


@pytest.mark.parametrize(
    ("name", "given", "accepted", "value"),
    [
        # Without case, punctuation and articles.
        ("answer_match", "The Titan IIIE.", "titan iiie-centaur | titan iiie", 1),
        ("answer_match", "titan iiiecentaur", "titan iiie-centaur | titan iiie", 1),
        ("answer_match", "titan", "titan iiie-centaur | titan iiie", 0),
        ("answer_match", "A  Black\tSea", "black sea", 1),
        ("answer_match", "31", "13", 0),
        ("answer_match", None, "13", 0),
        # Lin 2004, section 3: against "police killed the gunman" 3 of 4 words are in order, then 2 of 4.
        ("rouge_l", "Police kill the gunman!", "police killed the gunman", 0.75),
        ("rouge_l", "the gunman kill police", "police killed the gunman", 0.5),
        ("rouge_l", "the gunman", "police killed the gunman", 2 * 1 * 0.5 / 1.5),
        ("rouge_l", "the gunman", "nobody | The gunman.", 1),
        ("rouge_l", None, "a", 0),
        ("rouge_l", "!", "?", 0),
        ("rouge_l", "b", "a", 0),
        # The tests of DROP's evaluation (allennlp/tests/tools/drop_eval_test.py), with their values in two digits.
        ("span_f1", "78", "78.0", 1),
        ("span_f1", "the; fat; cat; the fat; fat cat; the fat cat", "cat", 1 / 6),
        ("span_f1", "the; fat; cat; the fat; fat cat; the fat cat", "cat; cat dog", 1.5 / 6),
        ("span_f1", "the a NOT an ARTICLE the an a", "NOT ARTICLE", 1),
        ("span_f1", "Per.i.o.d....", ".P....e.r,,i;;;o...d,,", 1),
        ("span_f1", "78", "78-yard", 2 / 3),
        ("span_f1", "", "army", 0),
        ("span_f1", "yard", "36 yard td", 0),
        ("span_f1", "23 yards", "43 yards", 0),
        ("span_f1", "26", "26 yard td", 0.5),
        ("span_f1", "78-yard; 56; 28; 40; 44; touchdown", "78-yard; 56 yard; 1 yard touchdown", (1 + 2 / 3) / 6),
        ("span_f1", "23; 23 yard", "23-yard; 56 yards", 0.5),
        ("span_f1", "John Karman; Joe Hardy", "Joe Karman; John Hardy", 0.5),
        ("span_f1", "ottoman; Kantakouzenous", "ottoman; army of Kantakouzenous", 0.75),
        ("span_f1", "b", "b; a", 0.5),
        ("span_f1", "June 1734", "1735 | 11 June 1734", 0.8),
        ("span_f1", "1,000", "1000", 1),
        ("span_f1", None, "Ravens", 0),
        # LaTeX in another writing.
        ("math_match", "\\dfrac{1}{2}", "\\frac12", 1),
        ("math_match", "1/2", "\\frac{1}{2}", 1),
        ("math_match", " 1,234.50 ", "1234.5", 1),
        ("math_match", "-0", "0", 1),
        ("math_match", "\\left( 3, \\frac{\\pi}{2} \\right)", "(3,\\frac{\\pi}{2})", 1),
        ("math_match", "\\text{B}", "B", 1),
        ("math_match", "$90^\\circ$.", "90", 1),
        ("math_match", "12", "\\frac{1}{2}", 0),
        ("math_match", "0.5", "1/2", 0),
        ("math_match", "(1,234)", "(1234)", 0),
        ("math_match", None, "0", 0),
    ],
)
def test_an_answer_is_as_right_as_the_best_of_those_accepted(name, given, accepted, value):
    assert rows(find_metric(name), [given], [accepted]) == pytest.approx([value])
    if name == "math_match" and given is not None:
        assert rows(find_metric(name), [accepted], [given]) == [value]


def test_the_last_complete_box_is_the_answer():
    extract = load_extraction("boxed", 1, WORDS)
    assert extract("so \\boxed{1} and \\boxed{\\frac{1}{2}}.", WORDS) == "\\frac{1}{2}"
    assert extract("so \\boxed{7} and \\boxed{\\frac{1}", WORDS) == "7"
    assert extract("the answer is 7", WORDS) is None
