"""From a task's columns to a network's input tensors, and from a network's outputs to predictions.

Everything learned here (classes, scale, vocabularies) is learned from the training rows only.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...benchmarks.answers import Answers
from ...benchmarks.model import Columns, Task
from ...core.errors import ModelError
from ...loaders.batching.encoded import is_encoded
from ...loaders.batching.images import find_readable_images
from ...loaders.batching.pixels import ArrayPixels, Pixels, open_pixels, read_all_pixels
from ...loaders.decoders import DEFAULT, load_decoder
from ..formats import Format, Texts, make_format
from .stored_rows import PixelRows, find_largest_value

SETTINGS: dict[str, Any] = {
    "inputs": "auto",
    "buckets": 4096,
    "side": 32,
    "decoder": "pillow",
    "scaled": True,
    "stretch": 4.0,
    "format": "plain",
    "pieces": "io",
    "hint_range": 128,
    "augment": "none",
}
"""inputs: how columns are read. `auto`: an integer column that a classification task or its source declares a category
is one, audio is read as a spectrogram (`log_mel.py`), anything else as numbers. `categories`, `numbers`: all columns
so. `graphs`: the texts of one input are graphs, for networks of graphs. For pretrained networks: `tokens`, a text by
the tokenizer of the setting `weights`, or `sounds`, audio by its processor. buckets: the number of hash buckets for the
words and pairs of words of a text. side: the side in pixels to which encoded images are resized; decoder: the file of
`loaders/decoders/` that decodes them. scaled: divide numbers by the largest of training rows and standardise numeric
targets; false leaves both unchanged, as some published settings require. All these apply to tasks whose answers are not
texts. stretch: the maximum length of a decoded text, as a multiple of the longest in training in tokens, as its format
writes it. format: a file of formats/; some read pieces and hint_range. augment: files of augmentations/, joined by `+`,
each with its own settings."""

PAD, BOS, EOS, UNKNOWN = range(4)
"""Special token ids; a vocabulary's words follow."""


@dataclass(frozen=True)
class Sizes:
    """The sizes that a network needs to know of a task to be built.

    `categories`: number of values of each categorical input; `numbers`: numeric features; `source`: size of the input
    vocabulary, with special tokens; `outputs`: classes, 1 for a number, or size of the output vocabulary, with special
    tokens. `shape`: the image shape, if the only input is numeric with two or three axes (`numbers` is its product).
    `names`: the names of the classes, if they have any. `copies`: the output word that each word of the input
    vocabulary is, PAD for a word of the input alone.
    """

    outputs: int
    categories: tuple[int, ...] = ()
    numbers: int = 0
    source: int = 0
    aligned: bool = False
    shape: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    copies: tuple[int, ...] = ()


@dataclass(frozen=True)
class Encoded:
    """Encoded rows. `inputs` are the network's arguments, each with the row as first axis; `target` is int64, class ids
    (n,) or token ids (n, T) padded with PAD; or float32, numbers (n,). `lengths` (n,) are the target's; for classes and
    numbers 1, or the number of tokens of the row's text."""

    inputs: tuple[Tensor, ...]
    target: Tensor
    lengths: Tensor

    def __len__(self) -> int:
        return len(self.target)


class Classes:
    """Labels unchanged, as int64; an answer is the class of the largest output. `outputs`: of a network for a row."""

    def __init__(self, classes: int) -> None:
        self.outputs = classes

    def encode(self, labels: NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.asarray(labels, np.int64))

    def answers(self, outputs: Tensor, are_logits: bool) -> list[Answers]:
        """The answers of each replica in outputs (K, n, classes). are_logits: whether their softmax gives
        probabilities."""
        shares = outputs.softmax(-1).float().cpu().numpy()
        return [
            Answers.all_given(replica_shares.argmax(axis=1), replica_shares if are_logits else None)
            for replica_shares in shares
        ]


class Numbers:
    """Labels standardised by the mean and standard deviation of training rows, float32, so that the same settings fit
    tasks with larger numbers. Answers are mapped back."""

    outputs = 1

    def __init__(self, labels: NDArray[Any], standardised: bool = True) -> None:
        """labels: of the training rows. `ModelError` where one is not finite."""
        known = np.asarray(labels, np.float64)
        if not np.isfinite(known).all():
            raise ModelError("a training label is not a finite number: leave its row out")
        largest = float(np.abs(known).max(initial=0)) or 1.0  # squares of the labels themselves may overflow
        self.mean = largest * float((known / largest).mean()) if standardised and len(known) else 0.0
        self.deviation = (largest * float((known / largest).std()) if standardised and len(known) else 1.0) or 1.0

    def encode(self, labels: NDArray[Any]) -> Tensor:
        return torch.from_numpy(((np.asarray(labels, np.float64) - self.mean) / self.deviation).astype(np.float32))

    def answers(self, outputs: Tensor, are_logits: bool) -> list[Answers]:
        values = outputs[..., 0].double().cpu().numpy() * self.deviation + self.mean
        return [Answers.all_given(replica_values) for replica_values in values]


def make_targets(task: Task, train: Columns, standardised: bool = True) -> Classes | Numbers:
    """Make the targets of a classification or regression task from its training rows."""
    if task.type == "regression":
        return Numbers(train[task.label], standardised)
    assert task.classes, "a classification task says how many classes it has"
    return Classes(task.classes)


_WORDS: Mapping[str, Any] = {"ngram_range": (1, 2)}


class AnswerEncoding(ABC):
    """Rows with one answer each, a class or a number; labels are encoded by `Classes` or `Numbers`."""

    sizes: Sizes
    decoder = ""
    """What decodes its files, with the version; empty if it reads none."""
    encoding = ""
    """A description of how each input is read, for the run card."""

    def __init__(self, task: Task, train: Columns, scaled: bool = True) -> None:
        self.task, self.targets = task, make_targets(task, train, scaled)

    @abstractmethod
    def inputs(self, batch: Columns) -> tuple[Tensor, Tensor]:
        """Categories or ids int64, and numbers float32; the row is the first axis."""

    def rows(self, batch: Columns) -> tuple[Tensor, Tensor]:
        """As `inputs`, for all training rows, which may be read later."""
        return self.inputs(batch)

    def readable(self, batch: Columns) -> NDArray[np.bool_]:
        """Which rows have only files that can be decoded, (n,)."""
        return np.ones(len(batch[self.task.inputs[0]]), bool)

    def features(self, batch: Columns) -> NDArray[np.float32]:
        """Features of an estimator, one flat row each, (n, width): one-hot categories, then numbers."""
        categories, numbers = self.inputs(batch)
        sizes = self.sizes.categories
        hot = [np.eye(size, dtype=np.float32)[ids] for size, ids in zip(sizes, categories.numpy().T, strict=True)]
        return np.concatenate([*hot, numbers.numpy()], axis=1)

    def encode(self, rows: Columns) -> Encoded:
        target = self.targets.encode(rows[self.task.label])
        return Encoded(self.rows(rows), target, torch.ones(len(target), dtype=torch.int64))


class RowEncoding(AnswerEncoding):
    """Columns of any kind. Integer columns that the task declares categories are read as categories, other
    columns and arrays as numbers over the training maximum, encoded images as RGB of `side` x `side` pixels, texts as
    hashed words and pairs of words (Weinberger et al., ICML 2009, arXiv:0902.2206; each row's counts are scaled to
    length 1)."""

    def __init__(
        self,
        task: Task,
        train: Columns,
        how: str = "auto",
        buckets: int = 4096,
        pieces: Mapping[str, Any] = _WORDS,
        side: int = 32,
        by: str = DEFAULT,
        scaled: bool = True,
    ) -> None:
        """pieces: how texts are split, as options of scikit-learn's `HashingVectorizer`. scaled: as in `SETTINGS`."""
        if how not in ("auto", "categories", "numbers"):
            raise ModelError(f"setting inputs = {how!r}: use auto, categories, numbers, graphs, tokens or sounds")
        super().__init__(task, train, scaled)
        self.how, self.side, self.by = how, side, by
        outputs = self.targets.outputs
        self.images = [name for name in task.inputs if is_encoded(train[name])]
        self.streams = ""
        """The only input of a task if it is uint8 images: its rows need not be on the device."""
        if len(task.inputs) == 1 and how != "categories" and (pixels := self._pixels(train[task.inputs[0]])):
            self.streams = task.inputs[0]
            self.categories, self.texts, self.numbers, self.values = [], [], [self.streams], {}
            self.buckets, self.pieces = buckets, dict(pieces)
            self.scale = {self.streams: (float(find_largest_value(pixels)) if scaled else 1.0) or 1.0}
            shape = pixels.shape[1:]
            self.sizes = Sizes(outputs, (), prod(shape), shape=shape, names=task.names)
            return
        train = self._decoded(train)
        self.categories = [name for name in task.inputs if self._categorical(name, train[name])]
        self.texts = [name for name in task.inputs if train[name].dtype == object]
        self.buckets, self.pieces = buckets, dict(pieces)
        self.numbers = [name for name in task.inputs if name not in {*self.categories, *self.texts}]
        self.values = {name: int(train[name].max()) + 1 for name in self.categories}
        # In float64: the most negative integer has no absolute value in its own type.
        self.scale = {
            name: (float(np.abs(train[name].astype(np.float64)).max()) if scaled else 1.0) or 1.0
            for name in self.numbers
        }
        width = sum(int(np.prod(train[name].shape[1:])) for name in self.numbers) + buckets * len(self.texts)
        shapes = [train[name].shape[1:] for name in self.numbers]
        image = shapes[0] if len(task.inputs) == len(shapes) == 1 and len(shapes[0]) in (2, 3) else ()
        categories = tuple(self.values[name] for name in self.categories)
        self.sizes = Sizes(outputs, categories, width, shape=image, names=task.names)

    def _pixels(self, column: NDArray[Any]) -> Pixels | None:
        """The images of a column, each with two or three axes; None for other columns, or for images that are not
        uint8."""
        if self.images:
            return open_pixels(column, self.side, self.by)
        if column.dtype != np.uint8 or column.ndim not in (3, 4):
            return None
        return column if isinstance(column, ArrayPixels) else ArrayPixels(column)

    def rows(self, batch: Columns) -> tuple[Tensor, Tensor]:
        """As `inputs`, for all training rows. Images stay where they are stored; `PixelRows` reads a few rows at a
        time."""
        pixels = self._pixels(batch[self.streams]) if self.streams else None
        if pixels is None:
            return self.inputs(batch)
        lazy = PixelRows(pixels, self.scale[self.streams])
        return torch.zeros((len(lazy), 0), dtype=torch.int64), cast(Tensor, lazy)

    def _decoded(self, batch: Columns) -> Columns:
        """The columns in memory, with encoded images decoded to pixels."""
        read = {name: np.asarray(batch[name]) for name in self.task.inputs if name not in self.images}
        pixels = {name: read_all_pixels(open_pixels(batch[name], self.side, self.by)) for name in self.images}
        return {**batch, **read, **pixels}

    @property
    def decoder(self) -> str:  # type: ignore[override]
        return load_decoder(self.by).version if self.images else ""

    def readable(self, batch: Columns) -> NDArray[np.bool_]:
        mask = super().readable(batch)
        for name in self.images:
            mask &= find_readable_images(batch[name], self.by)
        return mask

    def _categorical(self, name: str, column: NDArray[Any]) -> bool:
        if self.how == "auto":
            # Shifted rows of a regression task may exceed the integers of training.
            codes = name in self.task.categories and self.task.type == "classification"
            return codes and bool(column.ndim == 1 and column.dtype.kind in "iu")
        return self.how == "categories" and column.dtype != object

    @property
    def encoding(self) -> str:  # type: ignore[override]
        columns_by_kind = {
            "categories": [f"{name} ({self.values[name]})" for name in self.categories],
            "numbers": [name for name in self.numbers if name not in self.images],
            "pictures": self.images,
            "hashed words": self.texts,
        }
        return "; ".join(f"{kind}: {', '.join(names)}" for kind, names in columns_by_kind.items() if names)

    def _ids(self, name: str, column: NDArray[Any]) -> NDArray[np.int64]:
        ids = np.asarray(column, np.int64)
        if len(ids) and not 0 <= ids.min() <= ids.max() < self.values[name]:
            raise ModelError(
                f"the category {name!r} has values {ids.min()}..{ids.max()}, in training 0..{self.values[name] - 1}: "
                "use the setting inputs = 'numbers'"
            )
        return ids

    def inputs(self, batch: Columns) -> tuple[Tensor, Tensor]:
        """Categories (n, fields) int64 and numbers (n, width) float32; `ModelError` for an unseen category."""
        rows = len(batch[self.task.inputs[0]])
        batch = self._decoded(batch)
        ids = [self._ids(name, batch[name]) for name in self.categories]
        flat: list[NDArray[Any]] = [
            self._scaled(name, np.reshape(batch[name], (rows, prod(batch[name].shape[1:])))) for name in self.numbers
        ]
        flat += [self._hashed(batch[name]) for name in self.texts]
        categories = np.stack(ids, axis=1) if ids else np.zeros((rows, 0), np.int64)
        numbers = np.concatenate(flat, axis=1, dtype=np.float32) if flat else np.zeros((rows, 0), np.float32)
        return torch.from_numpy(categories), torch.from_numpy(numbers)

    def _scaled(self, name: str, column: NDArray[Any]) -> NDArray[Any]:
        scale = self.scale[name]
        return column / (np.float32(scale) if 1e-30 < scale < 1e30 else scale)

    def _hashed(self, column: NDArray[Any]) -> NDArray[np.float32]:
        if not len(column):
            return np.zeros((0, self.buckets), np.float32)
        from sklearn.feature_extraction.text import HashingVectorizer

        hashing = HashingVectorizer(n_features=self.buckets, alternate_sign=False, dtype=np.float32, **self.pieces)
        features: NDArray[np.float32] = hashing.transform(column.tolist()).toarray()
        return features


Ids = NDArray[np.int64]


class Vocabulary:
    """The sorted words of a text column in training rows; ids start at 4."""

    def __init__(self, texts: Texts, tokens: str) -> None:
        self.tokens = tokens
        words, _ = self._split(texts)
        self.words: list[str] = sorted(pc.unique(words).to_pylist())
        self._values = pa.array(self.words, pa.string())
        self._strings = np.array(["", "", "", "", *self.words], dtype=object)

    def __len__(self) -> int:
        return len(self.words) + 4

    def _split(self, texts: Texts) -> tuple[pa.Array, Ids]:
        """The tokens of all texts, end to end, and the number of tokens of each text, (n,)."""
        if self.tokens == "character":
            column = pa.array(list(texts), pa.string())
            return pa.array(list("".join(texts)), pa.string()), pc.utf8_length(column).to_numpy().astype(np.int64)
        column = pc.utf8_trim_whitespace(pa.array(list(texts), pa.string()))
        lists = pc.utf8_split_whitespace(column)
        lengths = pc.list_value_length(lists).to_numpy().astype(np.int64)
        lengths[pc.equal(column, "").to_numpy(zero_copy_only=False)] = 0  # Arrow splits "" into one empty token
        words = lists.flatten()
        return words.filter(pc.not_equal(words, "")), lengths

    def ids(self, texts: Texts, end: bool = False) -> tuple[Ids, Ids]:
        """Token ids (n, T) padded with PAD, EOS after the last where `end`; and the lengths, EOS counted, (n,)."""
        words, lengths = self._split(texts)
        flat = pc.fill_null(pc.index_in(words, self._values), UNKNOWN - 4).to_numpy().astype(np.int64) + 4
        total = lengths + int(end)
        positions = np.arange(max(1, total.max(initial=0)))
        padded = np.where(positions < total[:, None], EOS, PAD).astype(np.int64)
        padded[positions < lengths[:, None]] = flat
        return padded, total

    def texts(self, ids: Ids) -> list[str]:
        """Each row of ids (n, T) as text, up to its first EOS or PAD."""
        if not ids.shape[1]:
            return [""] * len(ids)
        ended = (ids == EOS) | (ids == PAD)
        stop = np.where(ended.any(axis=1), ended.argmax(axis=1), ids.shape[1])
        joint = "" if self.tokens == "character" else " "
        return [joint.join(row[:end]) for row, end in zip(self._strings[ids].tolist(), stop.tolist(), strict=True)]


class SequenceEncoding:
    """From one text column to another. The target of an aligned task has no EOS: its length is its input's."""

    def __init__(self, task: Task, train: Columns, stretch: float = 4.0, format: Format | None = None) -> None:
        """format: converts the task's texts to what the network reads and writes; by default it leaves them
        unchanged."""
        if len(task.inputs) != 1:
            raise ModelError(f"sequence baselines read one text column, and this task has {len(task.inputs)}")
        self.format = format or Format(task, train, {})
        self.task, self.field = self.format.task, task.inputs[0]
        written = self.format.format_targets(train[self.field], train[task.label])
        self.source = Vocabulary(self.format.format_inputs(train[self.field]), self.task.tokens)
        self.target = Vocabulary(written, self.task.tokens)
        written_as = dict(zip(self.target.words, range(UNKNOWN + 1, len(self.target)), strict=True))
        copies = (PAD,) * (UNKNOWN + 1) + tuple(written_as.get(word, PAD) for word in self.source.words)
        self.sizes = Sizes(len(self.target), source=len(self.source), aligned=self.task.aligned, copies=copies)
        longest = self.target.ids(written)[1].max(initial=1)
        self.limit = int(stretch * longest) + 1
        """The most tokens of a decoded text; unused in aligned tasks."""

    def inputs(self, batch: Columns) -> tuple[Tensor, Ids]:
        """Source token ids (n, S), and their lengths (n,)."""
        ids, lengths = self.source.ids(self.format.format_inputs(batch[self.field]))
        return torch.from_numpy(ids), lengths

    def texts(self, ids: Ids) -> list[str]:
        """The answers in a network's output, ids (n, T)."""
        return [self.format.answer(text) for text in self.target.texts(ids)]

    def encode(self, rows: Columns) -> Encoded:
        source, read = self.inputs(rows)
        taught = self.format.format_targets(rows[self.field], rows[self.task.label])
        target, lengths = self.target.ids(taught, end=not self.task.aligned)
        if self.task.aligned and (read != lengths).any():
            raise ModelError(f"an aligned task has a {self.task.label!r} whose length differs from its {self.field!r}")
        written = torch.from_numpy(target)
        return Encoded((source, written), written, torch.from_numpy(lengths))


def make_encoding(task: Task, train: Columns, settings: Mapping[str, Any]) -> RowEncoding | SequenceEncoding:
    """The encoding of `task`, learned from `train`."""
    if task.type == "sequence":
        return SequenceEncoding(task, train, settings["stretch"], make_format(task, train, settings))
    if settings["format"] != "plain":
        raise ModelError(
            f"setting format = {settings['format']!r}: formats are for texts, and this is a {task.type} task"
        )
    how, by, scaled = (settings[name] for name in ("inputs", "decoder", "scaled"))
    return RowEncoding(task, train, how, settings["buckets"], side=settings["side"], by=by, scaled=scaled)
