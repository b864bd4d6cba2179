"""A pretrained model's tokenizer, pinned by everything that determines its ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ...core.canonical import compute_identity
from ...core.errors import FarshiftError, MissingExtra, get_first_line


@dataclass(frozen=True)
class PinnedTokenizer:
    """Converts texts to token ids by the library `tokenizers`; see `load_tokenizer`. most: the maximum number of ids of
    a text, special tokens included; None for no limit."""

    name: str
    core: Any
    most: int | None = None

    @cached_property
    def digest(self) -> str:
        """The digest of vocabulary, normaliser, special tokens .., of `most`, and of the library's version."""
        import tokenizers

        core_digest = sha256(self.core.to_str().encode()).hexdigest()
        return compute_identity({"tokenizer": core_digest, "most": self.most, "version": tokenizers.__version__})

    @cached_property
    def words(self) -> int:
        """The vocabulary size: ids are less than this."""
        return max(self.core.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """The narrowest type that can represent all ids."""
        return np.dtype(np.uint16 if self.words <= 2**16 else np.uint32)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenise each text, on all cores."""
        return [encoding.ids for encoding in self.core.encode_batch_fast(texts)]


def load_tokenizer(given: Any, most: int | None = None) -> PinnedTokenizer:
    """Load the tokenizer of a folder that `save_pretrained` wrote (its `tokenizer.json`), or of that file; or copy a
    `tokenizers.Tokenizer`, or a fast tokenizer of transformers. Later changes to `given` have no effect.

    Raises `MissingExtra` without the library, `FarshiftError` for anything else."""
    try:
        import tokenizers
    except ImportError as error:
        raise MissingExtra("tokenising texts", "hf") from error
    kind: Any = tokenizers.Tokenizer
    if isinstance(given, str | Path):
        path = Path(given).expanduser()
        file = path / "tokenizer.json" if path.is_dir() else path
        if not file.is_file():
            raise FarshiftError(f"tokenizer {given}: there is no {file}: give a folder with a tokenizer.json")
        name = file.resolve().parent.name
        try:
            core = kind.from_file(str(file))
        except MemoryError:  # not a fault of the file
            raise
        except Exception as error:  # the library raises plain exceptions
            raise FarshiftError(f"tokenizer {given}: {file} cannot be read: {get_first_line(error)}") from error
    else:
        inner = getattr(given, "backend_tokenizer", given)
        if not isinstance(inner, kind):
            raise FarshiftError(
                f"{type(given).__name__} is not a tokenizer: give a folder with a tokenizer.json, a "
                "tokenizers.Tokenizer, or a fast tokenizer of transformers"
            )
        name = Path(str(getattr(given, "name_or_path", "") or "tokenizer")).name
        core = kind.from_str(inner.to_str())
    core.no_padding()
    if most is None:
        core.no_truncation()
    else:
        core.enable_truncation(max_length=most)
    return PinnedTokenizer(name, core, most)
