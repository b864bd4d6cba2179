"""Features and vocabularies come from training rows alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from farshift.baselines.encoding.encoding import EOS, PAD, UNKNOWN, RowEncoding, SequenceEncoding, Vocabulary
from farshift.benchmarks.model import Task
from farshift.core.errors import ModelError

from .toys import ADD, TURN, additions, commands, words


def test_a_word_unseen_in_training_is_read_as_unknown() -> None:
    vocabulary = Vocabulary(["walk left", "run"], "whitespace")
    ids, lengths = vocabulary.ids(["fly  left", "", " run "])
    assert vocabulary.words == ["left", "run", "walk"]
    assert ids.tolist() == [[UNKNOWN, 4], [PAD, PAD], [5, PAD]]
    assert lengths.tolist() == [2, 0, 1]


@pytest.mark.parametrize("tokens", ["whitespace", "character"])
def test_encoding_and_decoding_give_the_text_back(tokens: str) -> None:
    texts = ["a bb c", "bb", "", "c c c c a"] if tokens == "whitespace" else ["0110", "é", "", "11111"]
    vocabulary = Vocabulary(texts, tokens)
    ids, lengths = vocabulary.ids(texts, end=True)
    assert vocabulary.texts(ids) == texts
    assert (ids == EOS).sum(axis=1).tolist() == [1] * len(texts)
    assert ((ids != PAD).sum(axis=1) == lengths).all()


def test_what_follows_an_end_is_not_decoded() -> None:
    vocabulary = Vocabulary(["a b"], "whitespace")
    assert vocabulary.texts(np.array([[4, EOS, 5, 5], [5, 5, 4, 4]])) == ["a", "b b a a"]


def test_columns_called_categories_are_such_and_arrays_are_numbers_over_the_training_maximum() -> None:
    task = Task("classification", ("kind", "pixels"), "digit", classes=3, categories=("kind",))
    pixels = np.array([[[0, 4], [8, 16]], [[1, 1], [1, 1]]], np.uint8)
    rows = {"kind": np.array([0, 2]), "pixels": pixels, "digit": np.array([0, 2])}
    encoding = RowEncoding(task, rows)
    assert (encoding.sizes.categories, encoding.sizes.numbers) == ((3,), 4)
    assert encoding.features(rows)[0].tolist() == [1, 0, 0, 0, 0.25, 0.5, 1]
    assert encoding.features({**rows, "pixels": pixels * 2})[0].tolist() == [1, 0, 0, 0, 0.5, 1, 2]


def test_an_integer_column_is_numbers_unless_it_is_called_a_category() -> None:
    rows = {"age": np.array([20, 80]), "work": np.array([0, 3]), "pay": np.array([0, 1])}
    task = Task("classification", ("age", "work"), "pay", classes=2)
    output = replace(task, categories=("work",))
    assert (RowEncoding(task, rows).sizes.categories, RowEncoding(task, rows).sizes.numbers) == ((), 2)
    assert RowEncoding(output, rows).sizes.categories == (4,)
    assert RowEncoding(output, rows).encoding == "categories: work (4); numbers: age"
    assert RowEncoding(output, rows, how="numbers").encoding == "numbers: age, work"
    assert RowEncoding(task, rows, how="categories").encoding == "categories: age (81), work (4)"


def test_a_category_beyond_those_of_training_is_an_error_that_names_it() -> None:
    encoding = RowEncoding(ADD, additions().numpy())
    with pytest.raises(ModelError, match=r"'b' has values 7\.\.7, in training 0\.\.6"):
        encoding.inputs({"a": np.array([0]), "b": np.array([7])})


def test_an_aligned_task_with_lengths_that_differ_is_refused() -> None:
    task = Task("sequence", ("bits",), "sums", tokens="character", aligned=True)
    rows = {"bits": words(["01", "1"]), "sums": words(["01", "11"])}
    with pytest.raises(ModelError, match="whose length differs"):
        SequenceEncoding(task, rows).encode(rows)


def test_only_outputs_of_tasks_that_are_not_aligned_end_with_a_token() -> None:
    encoded = SequenceEncoding(TURN, commands().numpy()).encode(commands().numpy())
    assert ((encoded.target == EOS).sum(dim=1) == 1).all()
