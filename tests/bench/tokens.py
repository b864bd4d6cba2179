"""What does it save to tokenise texts once?

make bench-tokens [ARGS="--texts 50000 --tokenizer FOLDER"]

Texts are made: words by Zipf's law, lengths log-normal as those of film reviews (median 170 words). The tokenizer is a
WordPiece learned from some of them, or that of `--tokenizer`, a folder with a `tokenizer.json`; a text keeps 512 tokens.
Seconds are of the wall clock, each measured once.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from farshift.baselines.encoding.token_rows import TokenRows
from farshift.loaders.batching.tokens import load_tokenizer, tokenise_texts

MOST, BATCH = 512, 32


def texts(count: int) -> list[str]:
    draws = np.random.default_rng(0)
    lengths = np.clip(draws.lognormal(np.log(170), 0.6, count).astype(int), 1, 2000)
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    words = np.array(["".join(draws.choice(letters, size)) for size in draws.integers(2, 10, 30_000)])
    return [" ".join(words[np.minimum(draws.zipf(1.2, length), len(words)) - 1]) for length in lengths]


def learned(some: list[str]) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

    built: Any = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    built.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordPieceTrainer(vocab_size=8000, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    built.train_from_iterator(some, trainer)
    framed = [(name, built.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    built.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=framed)
    return built


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    requested = argparse.ArgumentParser(description=__doc__)
    requested.add_argument("--texts", type=int, default=5_000)
    requested.add_argument("--tokenizer", default="")
    options = requested.parse_args()
    given = texts(options.texts)
    own = load_tokenizer(options.tokenizer or learned(given[:2000]), MOST)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["FARSHIFT_CACHE"] = cache
        bare = seconds(lambda: own.ids(given))
        one_by_one = seconds(lambda: [own.ids([text]) for text in given])
        first, again = seconds(lambda: tokenise_texts(given, own)), seconds(lambda: tokenise_texts(given, own))
        result = tokenise_texts(given, own)
        rows = np.random.default_rng(1).permutation(len(given))
        batches = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]
        epoch = seconds(lambda: [result.take(some) for some in batches])
        fly = seconds(lambda: [own.ids([given[row] for row in some]) for some in batches])
    locked = TokenRows.of(result)
    filled = locked.shape[0] * locked.shape[1] * 8
    print(f"{len(given):,} texts, {result.lengths.sum():,} tokens, the longest {result.lengths.max()}")
    print(f"the library alone, all texts in one call   {bare:7.2f} s")
    print(f"one text after the other                   {one_by_one:7.2f} s   {one_by_one / bare:5.2f} x")
    print(f"into the cache                             {first:7.2f} s   {first / bare:5.2f} x")
    print(f"found in the cache                         {again:7.2f} s   {again / bare:5.3f} x")
    print(f"an epoch of batches of {BATCH} from the cache    {epoch:7.2f} s")
    print(f"the same, tokenised whenever they are read {fly:7.2f} s   {fly / epoch:5.1f} x")
    print(f"held by a training: {locked.nbytes / 1e6:.1f} MB ragged, {filled / 1e6:.1f} MB filled up as int64")
    print(f"padding, all rows as wide as the longest   {1 - result.lengths.mean() / result.lengths.max():7.1%}")


if __name__ == "__main__":
    main()
