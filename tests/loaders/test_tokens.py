"""Texts tokenised once into the cache, and batches of rows of like length."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from farshift import FarshiftError
from farshift.core.progress import report_to
from farshift.loaders.batching import tokens as cached
from farshift.loaders.batching.tokens import (
    Tokens,
    load_tokenizer,
    tokenise_texts,
)
from farshift.loaders.cache.entries import list_entries
from support import Heard

library = pytest.importorskip("tokenizers")

WORDS = ("?", "walk", "run", "look", "left", "twice")
TEXTS = [" ".join(WORDS[1 + (row * k) % 5] for k in range(row % 7)) for row in range(40)]


def tokenizer(*words: str) -> Any:
    built = library.Tokenizer(library.models.WordLevel({w: n for n, w in enumerate(words or WORDS)}, unk_token="?"))
    built.pre_tokenizer = library.pre_tokenizers.Whitespace()
    return built


def plain(texts: list[str] = TEXTS) -> list[list[int]]:
    return [[WORDS.index(word) for word in text.split()] for text in texts]


def rows(tokens: Tokens) -> list[list[int]]:
    return [tokens[row].tolist() for row in range(len(tokens))]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch, cache: Path) -> Iterator[None]:
    monkeypatch.setattr(cached, "_AT_ONCE", 8)
    yield


class Counting:
    """A tokenizer that remembers which texts it was given."""

    def __init__(self) -> None:
        self.inner, self.asked = load_tokenizer(tokenizer()), []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def ids(self, texts: list[str]) -> list[list[int]]:
        self.asked += texts
        return self.inner.ids(texts)


@pytest.mark.parametrize(
    "texts", [TEXTS, np.array(TEXTS, object), pa.array(TEXTS), pa.chunked_array([TEXTS[:5], TEXTS[5:]])]
)
def test_tokens_are_those_that_the_tokenizer_gives(texts: Any) -> None:
    result = tokenise_texts(texts, load_tokenizer(tokenizer()))
    assert rows(result) == plain()
    assert result.lengths.tolist() == [len(item) for item in plain()]
    some = np.array([39, 0, 8, 7, 39])
    padded = result.take(some, pad=9)
    assert padded.dtype == np.int64
    for position, row in enumerate(some):
        ids = plain()[int(row)]
        assert padded[position].tolist() == ids + [9] * (padded.shape[1] - len(ids))


def test_ids_are_mapped_and_as_narrow_as_they_can_be() -> None:
    result = tokenise_texts(TEXTS, load_tokenizer(tokenizer()))
    assert result.ids.dtype == np.uint16
    assert not result.ids.flags.owndata
    wide = tokenizer()
    wide.add_tokens([f"w{number}" for number in range(2**16)])
    assert load_tokenizer(wide).dtype == np.uint32
    assert tokenise_texts(["walk w65535"], load_tokenizer(wide))[0].tolist() == [1, len(WORDS) + 65535]


def test_no_rows_and_empty_texts_are_read() -> None:
    by = load_tokenizer(tokenizer())
    assert tokenise_texts([], by).take(np.arange(0)).shape == (0, 1)
    assert tokenise_texts(["", ""], by).take(np.arange(2), pad=7).tolist() == [[7], [7]]


def test_the_second_time_nothing_is_tokenised() -> None:
    first, again = Counting(), Counting()
    assert rows(tokenise_texts(TEXTS, first)) == rows(tokenise_texts(pa.array(TEXTS), again)) == plain()
    assert first.asked == TEXTS
    assert again.asked == []


def test_other_texts_tokenizers_and_lengths_have_entries_of_their_own() -> None:
    by = load_tokenizer(tokenizer())
    for texts in (TEXTS, TEXTS[1:], TEXTS[::-1], TEXTS):
        tokenise_texts(texts, by)
    tokenise_texts(TEXTS, load_tokenizer(tokenizer("?", "run", "walk")))
    tokenise_texts(TEXTS, load_tokenizer(tokenizer(), most=3))
    assert len(list_entries("tokens")) == 5
    assert rows(tokenise_texts(TEXTS, load_tokenizer(tokenizer(), most=3))) == [ids[:3] for ids in plain()]


def test_a_tokenizer_is_read_from_its_folder_and_what_becomes_of_it_changes_nothing(tmp_path: Path) -> None:
    own = tokenizer()
    own.save(str(tmp_path / "tokenizer.json"))
    by = load_tokenizer(own)
    own.enable_truncation(1)
    assert (
        load_tokenizer(tmp_path).digest
        == load_tokenizer(tmp_path / "tokenizer.json").digest
        == by.digest
        == load_tokenizer(own).digest
    )
    assert by.ids(["walk walk"]) == [[1, 1]]
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "tokenizer.json").write_text("{}")
    for given, why in (
        (tmp_path / "no", "there is no"),
        (tmp_path / "bad", "cannot be read"),
        (3, "int is not a tokenizer"),
    ):
        with pytest.raises(FarshiftError, match=why):
            load_tokenizer(given)


def test_where_the_cache_cannot_be_written_texts_are_tokenised_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FARSHIFT_CACHE", str(tmp_path / "file" / "cache"))
    with report_to(output := Heard()):
        assert rows(tokenise_texts(TEXTS, load_tokenizer(tokenizer()))) == plain()
    assert len(output.lines) == 1
    assert output.lines[0].startswith("40 texts are tokenised into memory: ")
