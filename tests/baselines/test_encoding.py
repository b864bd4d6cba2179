"""What networks read and write: features and vocabularies of training rows, formats, ragged tokens, spectrograms."""

import copy
import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from farshift import Answers
from farshift.baselines.encoding.bad_files import answer_readable_rows, report_bad_rows
from farshift.baselines.encoding.encoding import (
    EOS,
    PAD,
    UNKNOWN,
    RowEncoding,
    SequenceEncoding,
    Vocabulary,
    make_encoding,
)
from farshift.baselines.encoding.log_mel import (
    BANDS,
    RATE,
    STEP,
    WINDOW,
    SpectrogramEncoding,
    compute_log_mel,
    make_mel_filters,
)
from farshift.baselines.encoding.stored_rows import TokenRows
from farshift.baselines.encoding.token_ids import choose_encoding
from farshift.baselines.formats import make_format
from farshift.baselines.formats.scratchpad import COMPUTATIONS
from farshift.baselines.recipe import find_plugin_files, read_settings
from farshift.benchmarks.model import Task
from farshift.core.errors import BadData, ModelError, UnknownName
from farshift.loaders.batching.tokens import Tokens
from scipy.io import wavfile
from scipy.signal import stft

from .small_sequences import COPY, pairs
from .toys import ADD, PARITY, TURN, Rows, accuracy, additions, bits, commands, recipe, trained, words


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


GRID = Task("sequence", ("grid",), "path", tokens="character", aligned=True)


def made(name: str, task: Task, train: Any, **settings: Any) -> Any:
    return make_format(task, train, {"format": name, "pieces": "io", "hint_range": 32, **settings})


CASES = [
    ("plain", TURN, commands().numpy()),
    ("plain", GRID, {"grid": words(["a. .b", "..x"]), "path": words(["_* *_", "**_"])}),
    ("reversed", TURN, commands().numpy()),
    ("reversed", GRID, {"grid": words(["a. .b", "..x"]), "path": words(["_* *_", "**_"])}),
    ("index_hints", TURN, commands().numpy()),
    ("index_hints", GRID, {"grid": words(["a. .b", "..x"]), "path": words(["_* *_", "**_"])}),
    ("index_hints", PARITY, bits(20, 6).numpy()),
    ("scratchpad", PARITY, bits(20, 6).numpy()),
    ("scratchpad", COPY, pairs(("1 2 + 9 9", "1 1 1"), ("0 1 + 0 2", "0 0 3"))),
]


@pytest.mark.parametrize(("name", "task", "train"), CASES, ids=[f"{name}, {task.label}" for name, task, _ in CASES])
def test_the_answer_is_read_back_out_of_what_was_taught(name: str, task: Task, train: Any) -> None:
    form = made(name, task, train)
    answers = list(train[task.label])
    taught = form.format_targets(train[task.inputs[0]], answers)
    assert [form.answer(text) for text in taught] == answers
    encoded = SequenceEncoding(task, train, format=form)
    assert encoded.texts(encoded.encode(train).target.numpy()) == answers


def test_a_scratchpad_writes_each_step_then_the_answer() -> None:
    train = pairs(("1 0 1", "0"), ("1", "1"))
    taught = {
        "io": "1 = 1 ; 0 = 1 ; 1 = 0 ; => 0",
        "c": ": 0 + 1 ; : 1 + 0 ; : 1 + 1 ; => 0",
        "icovr": "1 : 0 + 1 = 1 ( 1 ) | 0 1 ; 0 : 1 + 0 = 1 ( 1 ) | 1 ; 1 : 1 + 1 = 0 ( 0 ) | ; => 0",
    }
    for pieces, expected in taught.items():
        form = made("scratchpad", COPY, train, pieces=pieces)
        assert form.format_targets(["1 0 1"], ["0"]) == [expected]
    assert form.format_inputs(["1 0 1"]) == ["1 0 1"]


def test_addition_is_worked_from_the_right_with_carries() -> None:
    form = made("scratchpad", COPY, pairs(("1 2 + 9", "2 1"), ("9 + 9", "1 8")), pieces="iov")
    assert form.format_targets(["9 5 + 7"], ["1 0 2"]) == ["5 7 = 2 ( 1 ) ; 9 0 = 0 ( 1 ) ; = 1 ( ) ; => 1 0 2"]


def test_innermost_lists_are_replaced_by_their_values_one_by_one() -> None:
    form = made("scratchpad", COPY, pairs(("[MAX 2 [SM 9 8 ] ]", "7")), pieces="ior")
    assert form.format_targets(["[MAX 2 [SM 9 8 ] ]"], ["7"]) == [
        "[SM 9 8 ] = 7 | [MAX 2 7 ] ; [MAX 2 7 ] = 7 | 7 ; => 7",
    ]


def expression(drawn: np.random.Generator, depth: int) -> tuple[str, int]:
    """A random ListOps expression and its value, by recursion."""
    if depth == 0 or drawn.random() < 0.3:
        value = int(drawn.integers(10))
        return str(value), value
    name = str(drawn.choice(["MIN", "MAX", "MED", "SM"]))
    parts = [expression(drawn, depth - 1) for _ in range(drawn.integers(1, 5))]
    values = [value for _, value in parts]
    result = {"MIN": min(values), "MAX": max(values), "MED": int(np.median(values)), "SM": sum(values) % 10}[name]
    return f"[{name} {' '.join(text for text, _ in parts)} ]", result


def test_list_operations_are_evaluated_as_by_recursion() -> None:
    drawn = np.random.default_rng(0)
    checked = 0
    for _ in range(200):
        text, value = expression(drawn, 3)
        worked = COMPUTATIONS["list operations"](text.split())
        if worked is None:
            assert text == str(value), "only a bare number has no steps"
            continue
        assert worked.answers["last"] == [str(value)]
        assert len(worked.steps) == text.count("[")
        checked += 1
    assert checked > 100


def test_sums_are_those_of_arithmetic() -> None:
    drawn = np.random.default_rng(1)
    for _ in range(100):
        a, b = (list(map(str, drawn.integers(0, 10, drawn.integers(1, 7)))) for _ in range(2))
        worked = COMPUTATIONS["addition"]([*a, "+", *b])
        assert worked is not None
        total = int("".join(a)) + int("".join(b))
        assert worked.answers["shortest"] == list(str(total))
        assert worked.answers["padded"] == list(str(total).zfill(max(len(a), len(b)) + 1))
        assert worked.answers["padded, last digit first"] == worked.answers["padded"][::-1]
        values = drawn.integers(0, 10, 5).tolist()
        for words_ in (" ".join(map(str, values)), " + ".join(map(str, values))):
            sums = COMPUTATIONS["running sum modulo 10"](words_.split())
            assert sums is not None
            assert sums.answers["whole"] == [str(x) for x in np.cumsum(values) % 10]


def test_the_computation_is_the_first_that_all_training_rows_agree_with() -> None:
    result = {
        "copy": pairs(("a b", "a b"), ("1", "1")),
        "reverse": pairs(("a b", "b a")),
        "running parity": pairs(("1 1", "0"), ("1 0", "1")),
        "running sum modulo 10": pairs(("1 1", "2"), ("9 3", "2")),
        "addition": pairs(("1 + 1", "2"), ("9 + 3", "1 2")),
    }
    for name, train in result.items():
        assert made("scratchpad", COPY, train).name == name


def test_rows_that_no_computation_answers_are_an_error() -> None:
    with pytest.raises(ModelError, match=r"none of the computations copy.*choose another format"):
        made("scratchpad", COPY, pairs(("a b", "a b"), ("a b", "c")))
    form = made("scratchpad", COPY, pairs(("a b", "a b")))
    with pytest.raises(ModelError, match=r"copy does not give the answer to 'a b'"):
        form.format_targets(["a b"], ["b"])


def test_a_scratchpad_without_an_answer_answers_nothing() -> None:
    form = made("scratchpad", COPY, pairs(("1 0 1", "0"), ("1", "1")))
    assert form.answer("1 = 1 ; 0 =") == ""
    assert form.answer("1 = 1 ; => 0 => 1") == "1"
    assert form.answer("=>") == ""


def test_pieces_that_there_are_not_and_texts_that_hold_the_marks_are_refused() -> None:
    for pieces in ("", "ix"):
        with pytest.raises(ModelError, match="use letters of 'icovr'"):
            made("scratchpad", COPY, pairs(("a", "a")), pieces=pieces)
    with pytest.raises(ModelError, match="contain '=>'"):
        made("scratchpad", COPY, pairs(("a => b", "a => b")))
    with pytest.raises(ModelError, match="already: 'i3'"):
        made("index_hints", COPY, pairs(("i3 a", "a")))
    with pytest.raises(UnknownName, match="no format named 'scratch'"):
        made("scratch", COPY, pairs(("a", "a")))


def test_digits_of_equal_value_have_the_same_hint_on_both_sides_of_a_separator() -> None:
    form = made("index_hints", COPY, pairs(("3 6 + 9", "4 5"), ("1 2 0 + 2 2", "1 4 2")), hint_range=100)
    first, a, second, b, plus, third, c = form.format_inputs(["3 6 + 9"])[0].split()
    assert (a, b, plus, c) == ("3", "6", "+", "9")
    assert second == third
    assert int(second[1:]) == (int(first[1:]) + 1) % 100
    # Answers are as long as the longest operand here, so that their digits share its hints too.
    assert form.format_targets(["3 6 + 9"], ["4 5"]) == [f"{first} 4 {second} 5"]


def test_answers_of_other_lengths_are_hinted_from_the_first_hint_of_the_row_on() -> None:
    form = made("index_hints", COPY, pairs(("a b c", "0"), ("d d", "0")))
    first = form.format_inputs(["a b c"])[0].split()[0]
    assert form.format_targets(["a b c"], ["0"]) == [f"{first} 0"]


def test_a_longer_answer_begins_before_the_first_hint() -> None:
    form = made("index_hints", COPY, pairs(("5 + 7", "1 2"), ("1 6 + 0 8", "0 2 4")))
    first = int(form.format_inputs(["5 + 7"])[0].split()[0][1:])
    assert form.format_targets(["5 + 7"], ["1 2"]) == [f"i{(first - 1) % 32} 1 i{first} 2"]


def test_hints_of_small_rows_cover_the_whole_range_evenly() -> None:
    form = made("index_hints", COPY, pairs(("1 0", "1 0"), ("1 1", "1 1")), hint_range=8)
    starts = [form.format_inputs([f"{position} x"])[0].split()[0] for position in range(4000)]
    counts = np.unique(starts, return_counts=True)[1]
    assert len(counts) == 8
    assert counts.min() > 400


def test_more_words_than_hints_are_an_error_that_says_what_to_set() -> None:
    with pytest.raises(ModelError, match=r"4 words, but there are 3 hints: raise the setting hint_range"):
        made("index_hints", COPY, pairs(("a b c d", "a"), ("e", "e")), hint_range=3)


def test_a_format_that_puts_words_between_makes_an_aligned_task_one_that_is_not() -> None:
    train = bits(10, 5).numpy()
    for name in ("reversed", "index_hints", "scratchpad"):
        assert not SequenceEncoding(PARITY, train, format=made(name, PARITY, train)).sizes.aligned
    assert SequenceEncoding(PARITY, train, format=made("plain", PARITY, train)).sizes.aligned
    with pytest.raises(ModelError, match="format plain"):
        trained(recipe("deep_thinking", 1, format="reversed"), PARITY, bits(10, 5))


def test_a_scratchpad_of_twice_the_length_is_within_the_limit_of_what_is_decoded() -> None:
    train = bits(50, 10).numpy()
    form = made("scratchpad", PARITY, train, pieces="icovr")
    long = bits(1, 20).numpy()
    written = SequenceEncoding(PARITY, train, 4.0, form)
    assert int((written.encode(long).target != PAD).sum()) <= written.limit


def test_formats_are_for_texts_alone() -> None:
    defaults = read_settings(find_plugin_files("networks")["mlp"].parent.parent / "encoding" / "encoding.py")
    with pytest.raises(ModelError, match="formats are for texts, and this is a classification task"):
        make_encoding(ADD, additions().numpy(), defaults | {"format": "reversed"})


@pytest.mark.parametrize("name", ["reversed", "index_hints", "scratchpad"])
def test_a_network_taught_in_a_format_answers_in_the_tasks_own_texts(name: str) -> None:
    rows = Rows(command=words(["0 1 1", "1 1", "0"]), actions=words(["0 1 0", "1 0", "0"]))
    made_ = recipe("lstm", 80, width=16, lr=0.02, batch_size=8, format=name, hint_range=4)
    assert accuracy(trained(made_, TURN, rows), TURN, rows) == 1


LENGTHS = [3, 0, 7, 1, 5, 2, 0, 4]


def tokens(lengths: list[int]) -> Tokens:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Tokens(offsets, np.arange(offsets[-1]).astype(np.uint16))


@pytest.fixture
def padded() -> torch.Tensor:
    return torch.from_numpy(tokens(LENGTHS).take(np.arange(len(LENGTHS)), pad=-1) + 1)


@pytest.mark.parametrize(
    "rows",
    [
        slice(None),
        slice(2, 5),
        slice(1, None, 2),
        torch.tensor([2, 2, 0]),
        torch.arange(8) % 2 == 0,
        torch.tensor([1, 6]),
    ],
    ids=["all", "some", "every second", "places", "mask", "empty rows"],
)
def test_rows_are_those_of_the_tensor_without_places_that_none_of_them_has(rows, padded):
    result, expected = TokenRows.of(tokens(LENGTHS))[rows], padded[rows]
    width = max(1, int((expected != 0).sum(1).max()))
    assert result.dtype == torch.int64
    assert torch.equal(result, expected[:, :width])


def test_a_batch_of_several_replicas_is_as_wide_as_its_longest_row(padded):
    rows = torch.tensor([[3, 5], [0, 1]])
    assert torch.equal(TokenRows.of(tokens(LENGTHS)).at(rows), padded[rows][..., :3])


def test_it_has_the_tensor_s_shape_lengths_and_pieces_and_a_fraction_of_its_bytes(padded):
    locked = TokenRows.of(tokens(LENGTHS))
    assert (locked.shape, locked.dtype, len(locked)) == (padded.shape, padded.dtype, len(padded))
    assert locked.lengths.tolist() == LENGTHS
    assert torch.equal(locked.to_tensor(), padded)
    assert torch.equal(locked.sum(1), padded.sum(1)), "what it lacks is asked of the whole"
    assert [len(piece) for piece in torch.split(locked, 3)] == [3, 3, 2]
    assert copy.deepcopy(locked) is locked and torch.equal(locked.to("cpu").to_tensor(), padded)
    many = TokenRows.of(tokens([200, *[10] * 999]))
    assert many.nbytes < many.to_tensor().nbytes / 30


def test_texts_without_any_token_are_one_place_of_padding():
    assert torch.equal(TokenRows.of(tokens([0, 0])).to_tensor(), torch.zeros(2, 1, dtype=torch.int64))


TASK = Task("classification", ("audio",), "digit", classes=2)


def wav(values: np.ndarray, rate: int = RATE) -> bytes:
    out = io.BytesIO()
    wavfile.write(out, rate, (values * 2**15 * 0.9).astype(np.int16))
    return out.getvalue()


def tone(hertz: float, seconds: float, rate: int = RATE) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)


def batch(*files: bytes) -> dict[str, np.ndarray]:
    return {"audio": words(list(files)), "digit": np.zeros(len(files), np.int64)}


def test_a_spectrogram_is_that_of_scipys_short_time_fourier_transform_through_the_mel_filters():
    noise = np.random.default_rng(0).normal(size=RATE // 2).astype(np.float32)
    _, _, result = stft(noise, RATE, "hann", WINDOW, WINDOW - STEP, boundary=None, padded=False)
    power = np.abs(result.T * (np.hanning(WINDOW + 1)[:-1].sum())) ** 2
    expected = np.log10(np.maximum(power @ make_mel_filters().T, 1e-10))
    expected = (np.maximum(expected, expected.max() - 8) + 4) / 4
    np.testing.assert_allclose(compute_log_mel(noise), expected, atol=1e-5)


def test_the_filters_are_triangles_that_are_equally_wide_in_mel():
    pytest.importorskip("transformers")
    from transformers.audio_utils import mel_filter_bank

    theirs = mel_filter_bank(WINDOW // 2 + 1, BANDS, 0, RATE / 2, RATE, norm=None, mel_scale="htk")
    np.testing.assert_allclose(make_mel_filters(), theirs.T, atol=1e-9)


def test_a_sound_is_cut_off_or_filled_up_to_the_length_of_nearly_all_and_stands_for_itself():
    sounds = [wav(tone(300, 0.3))] * 19 + [wav(tone(300, 5))]
    coding = SpectrogramEncoding(TASK, batch(*sounds))
    assert coding.sizes.shape == (1 + (round(0.3 * RATE) - WINDOW) // STEP, BANDS)
    assert coding.encoding == f"log-mel spectrograms: audio ({coding.sizes.shape[0]} frames of 10 ms, 40 bands)"
    short, long = wav(tone(500, 0.01)), wav(tone(500, 2))
    _, both = coding.inputs(batch(short, long))
    assert both.shape == (2, coding.sizes.numbers)
    assert both[0].equal(coding.inputs(batch(short))[1][0])
    silent = wav(np.zeros(3))
    assert coding.inputs(batch(silent))[1].unique().numel() == 1


def test_a_sound_recorded_at_another_rate_has_nearly_the_same_spectrogram():
    coding = SpectrogramEncoding(TASK, batch(wav(tone(500, 0.5))))
    _, result = coding.inputs(batch(wav(tone(500, 0.5)), wav(tone(500, 0.5, 8000), 8000)))
    bands = result.view(2, *coding.sizes.shape)[:, 5:-5].mean(dim=1)
    assert bands[0].argmax() == bands[1].argmax()
    assert abs(bands[0].max() - bands[1].max()) < 0.02


def test_sounds_are_told_from_pictures_by_their_first_bytes():
    from PIL import Image

    settings = {"inputs": "auto", "side": 4, "buckets": 8, "decoder": "pillow"}
    sounds = batch(b"", wav(tone(300, 0.3)))
    with pytest.raises(BadData, match="audio clip 0 of 2 cannot be decoded"):
        choose_encoding(TASK, sounds, settings)
    assert isinstance(choose_encoding(TASK, batch(wav(tone(300, 0.3))), settings), SpectrogramEncoding)
    out = io.BytesIO()
    Image.new("RGB", (4, 4)).save(out, "PNG")
    with pytest.raises(ModelError, match="a spectrogram needs one audio input, and this task has audio"):
        SpectrogramEncoding(TASK, batch(out.getvalue()))


def test_a_broken_sound_is_named_by_its_row_in_training_and_counts_as_wrong_in_a_test():
    good = wav(tone(300, 0.3))
    coding = SpectrogramEncoding(TASK, batch(good))

    class Rows:
        row_ids = np.array([7, 255], np.uint64)

    with (
        pytest.raises(BadData, match="row 00000000000000ff: its audio clip cannot be decoded"),
        report_bad_rows(Rows()),
    ):
        coding.encode(batch(good, b"RIFF0000WAVE"))

    def ask(some: dict[str, np.ndarray]) -> list[Answers]:
        return [Answers.all_given(np.ones(len(coding.inputs(some)[1]), np.int64))]

    (result,) = answer_readable_rows(coding, {"audio": words([good, b"cut", good])}, ask)
    assert coding.readable({"audio": words([good, b"cut", good])}).tolist() == [True, False, True]
    assert result.answered.tolist() == [True, False, True]
