"""A text as a pretrained model's token ids, audio as the samples that it reads."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...benchmarks.adapters._transformers import (
    compute_context_length,
    count_frame_samples,
    find_pad_token,
    read_audio_processor,
    read_config,
    read_tokenizer,
)
from ...benchmarks.model import Columns, Task
from ...core.errors import ModelError
from ...loaders.batching.audio import describe_audio_decoder, read_samples
from ...loaders.batching.encoded import is_encoded
from ...loaders.batching.tokens import load_tokenizer, tokenise_texts
from .checkpoint import find_folder
from .encoding import PAD, AnswerEncoding, Encoded, SequenceEncoding, Sizes, make_encoding
from .graphs import GraphEncoding
from .log_mel import SpectrogramEncoding, is_audio_task
from .stored_rows import TokenRows


def choose_encoding(task: Task, train: Columns, settings: Mapping[str, Any]) -> AnswerEncoding | SequenceEncoding:
    """Make the encoding of `task` that the settings select, learned from `train`."""
    if task.type != "sequence" and settings["inputs"] == "tokens":
        return TokenEncoding(task, train, str(settings.get("weights", "")))
    if task.type != "sequence" and settings["inputs"] == "sounds":
        return AudioEncoding(task, train, str(settings.get("weights", "")), float(settings.get("seconds", 0)))
    if task.type != "sequence" and settings["inputs"] == "graphs":
        return GraphEncoding(task, train)
    if task.type != "sequence" and settings["inputs"] == "auto" and is_audio_task(task, train):
        return SpectrogramEncoding(task, train)
    return make_encoding(task, train, settings)


class TokenEncoding(AnswerEncoding):
    """One text by the tokenizer that is stored with a model's weights, truncated to the model's window. Ids are the
    tokenizer's plus 1, padded with PAD (0), so that no real token is mistaken for padding. Labels are unchanged.

    Training rows are tokenised once, into the cache (`loaders/batching/tokens.py`)."""

    def __init__(self, task: Task, train: Columns, weights: str) -> None:
        """weights: see `FrozenColumns`."""
        if len(task.inputs) != 1 or any(not isinstance(text, str) for text in train[task.inputs[0]][:1]):
            raise ModelError(f"setting inputs = 'tokens' needs one text input; this task has {', '.join(task.inputs)}")
        location = find_folder(weights)
        config, own = read_config(location.folder), read_tokenizer(location.folder)
        find_pad_token(own)
        super().__init__(task, train)
        window = compute_context_length(config, own, None)
        if getattr(own, "backend_tokenizer", None) is None:
            raise ModelError(f"weights {weights}: their tokenizer has no fast form (tokenizer.json): give others")
        self.pinned = replace(load_tokenizer(own, window), name=location.name)
        self.sizes = Sizes(self.targets.outputs, source=len(own) + 1)

    @property
    def tokenizer(self) -> str:
        """What determines the ids: the library's version, and a prefix of the digest of everything else."""
        import tokenizers

        return f"tokenizers {tokenizers.__version__}, {self.pinned.digest[:16]}"

    def inputs(self, batch: Columns) -> tuple[Tensor, Tensor]:
        """Token ids (n, T) int64, and no numbers, (n, 0)."""
        rows = self.pinned.ids([str(text) for text in batch[self.task.inputs[0]]])
        ids = np.full((len(rows), max(map(len, rows), default=1) or 1), PAD, np.int64)
        for index, row in enumerate(rows):
            ids[index, : len(row)] = np.asarray(row, np.int64) + 1
        return torch.from_numpy(ids), torch.zeros(len(rows), 0)

    def rows(self, batch: Columns) -> tuple[Tensor, Tensor]:
        """As `inputs`, through the cache, and ragged: a batch is padded when it is drawn."""
        rows = TokenRows.of(tokenise_texts(batch[self.task.inputs[0]], self.pinned))
        return cast(Tensor, rows), torch.zeros(len(rows), 0)

    def encode(self, rows: Columns) -> Encoded:
        """As for any row; `lengths` are those of the texts, in tokens."""
        encoded = super().encode(rows)
        return replace(encoded, lengths=cast(TokenRows, encoded.inputs[0]).lengths)


class AudioEncoding(AnswerEncoding):
    """One audio clip by the processor that is stored with a model's weights: its first `seconds`, padded with zeros to
    the longest in training. A function of the clip only, whatever else is in the batch."""

    def __init__(self, task: Task, train: Columns, weights: str, seconds: float) -> None:
        """weights: see `FrozenColumns`."""
        if len(task.inputs) != 1 or not is_encoded(train[task.inputs[0]]):
            raise ModelError(f"setting inputs = 'sounds' needs one audio input; this task has {', '.join(task.inputs)}")
        if seconds <= 0:
            raise ModelError(f"setting seconds = {seconds:g}: the length of audio must be above 0")
        folder = find_folder(weights).folder
        config = read_config(folder)
        if not hasattr(config, "conv_kernel"):
            raise ModelError(f"weights {weights} read no audio: give a model such as wav2vec 2.0")
        super().__init__(task, train)
        self.decoder, self.processor = describe_audio_decoder(), read_audio_processor(folder)
        self.rate = int(self.processor.sampling_rate)
        self.most = max(count_frame_samples(config), round(seconds * self.rate))
        files = train[task.inputs[0]]
        longest = max((len(self._decode_audio(files, index)) for index in range(len(files))), default=0)
        self.samples = min(self.most, max(longest, count_frame_samples(config)))
        self.sizes = Sizes(self.targets.outputs, numbers=self.samples, shape=(self.samples,))

    def _decode_audio(self, files: NDArray[Any], index: int) -> NDArray[np.float32]:
        return read_samples(bytes(files[index]), self.rate, f"recording {index} of {len(files)}")

    def inputs(self, batch: Columns) -> tuple[Tensor, Tensor]:
        """No categories, (n, 0), and samples (n, T) float32, normalised by the processor, 0 after a clip's end."""
        files = batch[self.task.inputs[0]]
        values = np.zeros((len(files), self.samples), np.float32)
        for index in range(len(files)):
            some = self._decode_audio(files, index)[: self.samples]
            if len(some):
                given = self.processor(some, sampling_rate=self.rate, return_tensors="np")["input_values"][0]
                values[index, : len(some)] = given
        return torch.zeros((len(values), 0), dtype=torch.int64), torch.from_numpy(values)


def check_shared(weights: str, other: str, inputs: str) -> None:
    """`ModelError` if the teacher `other` encodes tokens or audio differently from `weights`, for which rows are
    encoded, or reads fewer tokens. Images can always be shared: each network resizes and normalises them itself.
    inputs: the setting of that name."""
    if inputs == "tokens":
        (own, window), (theirs, their_window) = _read_tokens(weights), _read_tokens(other)
        if own != theirs or (their_window is not None and (window is None or their_window < window)):
            raise ModelError(f"setting teacher_weights: {other} needs the tokenizer of {weights}, and as long a window")
    if inputs == "sounds":
        processors = (read_audio_processor(find_folder(spec).folder) for spec in (weights, other))
        read, others = ((item.sampling_rate, getattr(item, "do_normalize", None)) for item in processors)
        if read != others:
            raise ModelError(f"setting teacher_weights: {other} needs the sampling rate and normalisation of {weights}")


def _read_tokens(weights: str) -> tuple[str, int | None]:
    """A digest of a model's tokenizer, and the most tokens that the model reads."""
    folder = find_folder(weights).folder
    own = read_tokenizer(folder)
    return load_tokenizer(own).digest, compute_context_length(read_config(folder), own, None)
