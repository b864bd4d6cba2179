"""A transformers model as a model: `hf:org/name[@revision]` from the Hub, or `hf:./folder`.

Weights are read from safetensors files only: nothing is unpickled, and no code that comes with a model is run.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ...core.canonical import compute_identity
from ...core.documents import read_json
from ...core.errors import FarshiftError, MissingExtra, ModelError
from ...core.files import compute_file_sha256
from ...core.limits import MODEL_LAYERS
from ...loaders.batching.encoded import is_audio, is_encoded, is_pixels
from ...loaders.batching.input_format import InputFormat
from ..answers import Answers, Failed
from ..model import Columns, Model, Task
from . import Options, read_options
from ._transformers import (
    MODEL_FILES,
    ImageProcessor,
    compute_context_length,
    count_frame_samples,
    download_snapshot,
    find_pad_token,
    load_network,
    read_audio_processor,
    read_config,
    read_tokenizer,
    silence_transformers,
)

if TYPE_CHECKING:
    from ..prompting.prompt import Prompt

SCHEME = "hf"

_TOKENS = ("bos_token_id", "eos_token_id", "decoder_start_token_id", "forced_bos_token_id")

_COUNTS = re.compile("(layers?|blocks|stages|experts|depths?)$")
"""Names of numbers of parts in a model's configuration."""


class HuggingFaceOptions(Options):
    """Values of `--option`. dtype: of the weights; `auto` keeps the stored type. batch_size: texts or images per batch;
    it changes predictions by rounding only. max_length: the maximum tokens of a text or prompt, if below the model's
    own limit."""

    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    batch_size: int = Field(32, ge=1)
    max_length: int | None = Field(None, ge=1)


def from_spec(rest: str, options: Mapping[str, str]) -> HuggingFaceFactory:
    """Return the factory of `hf:REST`. A model of the Hub is downloaded here, once, and pinned to its commit.

    options: see `HuggingFaceOptions`. Raises `MissingExtra` without transformers, `Unavailable` if the Hub does not
    provide the model, `FarshiftError` for a missing folder, a wrong option, or weights that are not safetensors.
    """
    read = read_options(HuggingFaceOptions, SCHEME, options)
    if any(importlib.util.find_spec(name) is None for name in ("torch", "transformers")):
        raise MissingExtra(f"the model hf:{rest}", "hf")
    if rest.startswith((".", "/", "~")):
        folder = Path(rest).expanduser().resolve()
        if not (folder / "config.json").is_file():
            raise FarshiftError(
                f"model hf:{rest}: {folder} has no config.json: give a folder written by save_pretrained"
            )
        name, pinned = folder.name, _compute_folder_digest(folder)
    else:
        name, _, revision = rest.partition("@")
        folder = download_snapshot(name, revision or None)
        pinned = folder.name
    if not any(folder.glob("*.safetensors")):
        raise FarshiftError(
            f"model hf:{rest} has no .safetensors weights, and pickled weights are not read: "
            "save it again with save_pretrained"
        )
    _check_config(folder / "config.json", f"model hf:{rest}")
    return HuggingFaceFactory(folder, name, pinned, read)


def _check_config(file: Path, where: str) -> None:
    """Raise `FarshiftError` if a configuration asks for more layers than any model has: transformers builds them before
    it looks for their weights."""
    config = read_json(file, dict, f"{where}: {file}") if file.is_file() else {}
    waiting: list[tuple[str, Any]] = [("", config)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.items()
        elif isinstance(value, list):
            waiting += ((name, item) for item in value)
        elif isinstance(value, int) and value > MODEL_LAYERS and _COUNTS.search(name):
            raise FarshiftError(f"{where}: {file}: {name} is {value:,}; at most {MODEL_LAYERS:,} are built")


def _compute_folder_digest(folder: Path) -> str:
    files = sorted({path for pattern in MODEL_FILES for path in folder.glob(pattern) if path.is_file()})
    return compute_identity([[path.name, path.stat().st_size, compute_file_sha256(path)] for path in files])


class HuggingFaceFactory:
    """Makes models of one pinned set of weights; they share the network.

    `code` is a digest of the Hub commit (or the folder's files) and of the options that change predictions.
    """

    def __init__(self, folder: Path, name: str, pinned: str, options: HuggingFaceOptions) -> None:
        self.folder, self.name, self.options = folder, name, options
        self.code = compute_identity({"weights": pinned, "dtype": options.dtype, "max_length": options.max_length})
        # On run cards, weights go by a digest that does not depend on the options.
        digest = compute_identity({"weights": pinned, "dtype": "auto", "max_length": None})
        self.pretrained = [{"name": name, "digest": digest}]
        self._networks: dict[tuple[str, str], Any] = {}

    def __call__(self, seed: int, task: Task, device: str, prompt: Prompt | None = None) -> Model:
        """Return a classifier of texts, images or audio if the task is classification and the weights are a classifier;
        else a generator, which needs a prompt.

        Predictions are deterministic whatever the seed: class probabilities, or greedy decoding.
        """
        config = read_config(self.folder)
        architecture = " ".join(config.architectures or ["unknown"])
        options = self.options
        if task.type == "classification" and "ForImageClassification" in architecture:
            network = self._network("AutoModelForImageClassification", device)
            return ImageClassifier(network, ImageProcessor(self.folder), task, self.name, options.batch_size)
        if task.type == "classification" and _is_audio_classifier(architecture):
            return AudioClassifier(
                self._network("AutoModelForAudioClassification", device), self.folder, task, self.name
            )
        if task.type == "classification" and "ForSequenceClassification" in architecture:
            network = self._network("AutoModelForSequenceClassification", device)
            return TextClassifier(network, self._tokenizer, task, self.name, options.batch_size, options.max_length)
        if prompt is None:
            raise ModelError(
                f"model hf:{self.name} is a {architecture}: a {task.type} task needs a prompt, "
                "and the benchmark has none"
            )
        sort = "AutoModelForSeq2SeqLM" if config.is_encoder_decoder else "AutoModelForCausalLM"
        return TextGenerator(
            self._network(sort, device), self._tokenizer, prompt, options.batch_size, options.max_length
        )

    @cached_property
    def _tokenizer(self) -> Any:
        return read_tokenizer(self.folder)

    def _network(self, sort: str, device: str) -> Any:
        """The network, read once for all seeds."""
        if (sort, device) not in self._networks:
            network = load_network(self.folder, sort, f"hf:{self.name}", dtype=self.options.dtype)
            self._networks[sort, device] = network.to(device)
        return self._networks[sort, device]


def _is_audio_classifier(architecture: str) -> bool:
    """Whether an architecture is an audio classifier; some are named like text classifiers."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES

    return architecture in MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES.values()


def match_outputs(labels: Mapping[int, str], task: Task, model: str) -> list[int]:
    """Return, for each class of the task, the index of the model's output.

    By name, ignoring case, if task and model both name their classes (additional outputs of the model are left out of
    the softmax); else by position. `ModelError` if neither fits.
    """
    known = [str(labels[index]).strip().casefold() for index in sorted(labels)]
    unnamed = all(label in (str(index), f"label_{index}") for index, label in enumerate(known))
    class_names = [name.strip().casefold() for name in task.names]
    if class_names and not unnamed:
        if len(set(known)) < len(known) or not set(class_names) <= set(known):
            raise ModelError(
                f"model hf:{model} has the labels {', '.join(known)}, and the task the classes "
                f"{', '.join(class_names)}: give its config an id2label with the task's names"
            )
        return [known.index(name) for name in class_names]
    if len(known) != task.classes:
        raise ModelError(f"model hf:{model} has {len(known)} classes, and the task has {task.classes}")
    return list(range(len(known)))


class Classifier:
    """A network with a classification head: class probabilities are the softmax of its logits for the task's classes.
    A subclass encodes the rows of a batch: `_encode` yields rows, and the network's arguments for them."""

    def __init__(self, network: Any, task: Task, name: str, batch_size: int = 1) -> None:
        self.network, self.task, self.name, self.batch_size = network, task, name, batch_size
        self.outputs = match_outputs(network.config.id2label, task, name)

    def predict(self, batch: Columns) -> Answers:
        """Return predictions with class probabilities. `BadImage` for an image that cannot be decoded."""
        import torch

        scores = np.empty((len(batch[self.task.inputs[0]]), len(self.outputs)), np.float32)
        for rows, given in self._encode(batch):
            with silence_transformers(), torch.no_grad():
                logits = self.network(**given).logits[:, self.outputs]
            scores[rows] = logits.double().softmax(dim=1).float().cpu().numpy()
        return Answers.all_given(scores.argmax(axis=1).astype(np.int64), scores)

    def _encode(self, batch: Columns) -> Iterator[tuple[Any, Mapping[str, Any]]]:
        raise NotImplementedError


class TextClassifier(Classifier):
    """Reads a text, or two inputs as a pair in the task's order. Texts are batched by length; a text over the model's
    context window is truncated, as in training."""

    def __init__(
        self, network: Any, tokenizer: Any, task: Task, name: str, batch_size: int, max_length: int | None
    ) -> None:
        if len(task.inputs) > 2:
            raise ModelError(
                f"model hf:{name} reads a text or a pair of texts, and this task has {len(task.inputs)} inputs"
            )
        super().__init__(network, task, name, batch_size)
        self.tokenizer, self.window = tokenizer, compute_context_length(network.config, tokenizer, max_length)
        network.config.pad_token_id = find_pad_token(tokenizer)

    def _encode(self, batch: Columns) -> Iterator[tuple[Any, Mapping[str, Any]]]:
        texts = [batch[name] for name in self.task.inputs]
        for name, values in zip(self.task.inputs, texts, strict=True):
            if values.dtype != object or not all(isinstance(value, str) for value in values):
                raise ModelError(f"input {name!r} is not text, and a text classifier reads only text")
        order = np.argsort([sum(map(len, row)) for row in zip(*texts, strict=True)], kind="stable")
        for start in range(0, len(order), self.batch_size):
            rows = order[start : start + self.batch_size]
            with silence_transformers():
                encoded = self.tokenizer(
                    *(column[rows].tolist() for column in texts),
                    padding=True,
                    truncation=self.window is not None,
                    max_length=self.window,
                    return_tensors="pt",
                )
            yield rows, encoded.to(self.network.device)


def iterate_images(batch: Columns, task: Task, model: str, size: int) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Yield the only input of an image task, encoded or as uint8 arrays, with its rows, `size` at a time; `ModelError`
    for another input."""
    if len(task.inputs) != 1:
        raise ModelError(f"model {model} reads a single image, and this task has {len(task.inputs)} inputs")
    images = batch[task.inputs[0]]
    if not (is_encoded(images) and not is_audio(images)) and not is_pixels(images):
        raise ModelError(f"input {task.inputs[0]!r} is not an image, and {model} reads only images")
    for start in range(0, len(images), size):
        rows = slice(start, start + size)
        yield rows, images[rows]


class ImageClassifier(Classifier):
    """Reads an image, preprocessed by the model's own processor."""

    def __init__(self, network: Any, processor: ImageProcessor, task: Task, name: str, batch_size: int) -> None:
        super().__init__(network, task, name, batch_size)
        self.processor, self.remarks = processor, processor.remarks

    def _encode(self, batch: Columns) -> Iterator[tuple[Any, Mapping[str, Any]]]:
        import torch

        for rows, images in iterate_images(batch, self.task, f"hf:{self.name}", self.batch_size):
            pixels = torch.from_numpy(self.processor.pixels(images))
            yield rows, {"pixel_values": pixels.to(self.network.device, self.network.dtype)}


class AudioClassifier(Classifier):
    """Reads a recording: samples at the model's rate; one shorter than a frame is padded with silence. Recordings are
    passed one by one: most of these networks were trained without a padding mask, and the rest of a batch must not
    change a prediction."""

    def __init__(self, network: Any, folder: Path, task: Task, name: str) -> None:
        self.processor = read_audio_processor(folder)
        if len(task.inputs) != 1:
            raise ModelError(f"model hf:{name} reads a single recording, and this task has {len(task.inputs)} inputs")
        super().__init__(network, task, name)
        self.rate = int(self.processor.sampling_rate)
        self.forms = InputFormat(audio=self.rate)

    def _encode(self, batch: Columns) -> Iterator[tuple[Any, Mapping[str, Any]]]:
        recordings, field = batch[self.task.inputs[0]], self.network.main_input_name
        if recordings.dtype != object or not all(isinstance(samples, np.ndarray) for samples in recordings):
            raise ModelError(f"input {self.task.inputs[0]!r} is not audio, and hf:{self.name} reads only audio")
        least = count_frame_samples(self.network.config)
        for row, heard in enumerate(recordings):
            padded = np.pad(heard, (0, max(0, least - len(heard))))
            given = self.processor(padded, sampling_rate=self.rate, return_tensors="pt")[field]
            yield row, {field: given.to(self.network.device, self.network.dtype)}


class TextGenerator:
    """Greedy continuations of a benchmark's prompts by a decoder or an encoder-decoder, parsed into predictions.

    A row whose prompt leaves fewer than `max_tokens` tokens of the context window is `Failed`, as is one whose
    continuation has no parsable answer. The weights' own generation settings (sampling, beams, penalties) are ignored:
    every model is decoded in the same way.
    """

    def __init__(self, network: Any, tokenizer: Any, prompt: Prompt, batch_size: int, max_length: int | None) -> None:
        self.network, self.tokenizer, self.prompt, self.batch_size = network, tokenizer, prompt, batch_size
        self.window = compute_context_length(network.config, tokenizer, max_length)
        self.is_encoder_decoder = network.config.is_encoder_decoder
        """Whether the output is the continuation only, without the prompt."""
        tokenizer.padding_side = "right" if self.is_encoder_decoder else "left"
        own = network.generation_config
        network.generation_config = import_module("transformers").GenerationConfig(
            do_sample=False,
            num_beams=1,
            pad_token_id=find_pad_token(tokenizer),
            **{name: getattr(own, name, None) for name in _TOKENS},
        )

    def predict(self, batch: Columns) -> list[Any]:
        """Return one prediction per row, or `Failed`. Prompts are batched by length."""
        texts = self.prompt.texts(batch)
        with silence_transformers():
            lengths = [len(ids) for ids in self.tokenizer(texts)["input_ids"]]
        reserved = 0 if self.is_encoder_decoder else self.prompt.pin.max_tokens
        fits = [self.window is None or length <= self.window - reserved for length in lengths]
        order = sorted((row for row in range(len(texts)) if fits[row]), key=lengths.__getitem__)
        answers: list[Any] = [Failed("prompt over the context window")] * len(texts)
        outputs: list[str | None] = [None] * len(texts)
        for start in range(0, len(order), self.batch_size):
            rows = order[start : start + self.batch_size]
            for row, text in zip(rows, self._generate([texts[row] for row in rows]), strict=True):
                outputs[row], prediction = text, self.prompt.read(text)
                answers[row] = Failed("no answer could be read") if prediction is None else prediction
        self.farshift_outputs = outputs
        return answers

    def _generate(self, prompts: list[str]) -> list[str]:
        import torch

        with silence_transformers(), torch.no_grad():
            encoded = self.tokenizer(prompts, padding=True, return_tensors="pt", return_token_type_ids=False)
            start = 0 if self.is_encoder_decoder else encoded["input_ids"].shape[1]
            output = self.network.generate(
                **encoded.to(self.network.device),
                max_new_tokens=self.prompt.pin.max_tokens,
                stopping_criteria=self._stopping(start),
            )
        return self._decode(output[:, start:])

    def _decode(self, tokens: Any) -> list[str]:
        texts: list[str] = self.tokenizer.batch_decode(
            tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return texts

    def _stopping(self, start: int) -> Any:
        """Stop a row when its decoded continuation contains a stop string, however it is tokenised."""
        import torch

        stops = [stop for stop in self.prompt.pin.stop if stop]

        def ended(tokens: torch.Tensor, scores: object, **_: object) -> torch.Tensor:
            texts = self._decode(tokens[:, start:])
            return tokens.new_tensor([any(stop in text for stop in stops) for text in texts], dtype=torch.bool)

        return import_module("transformers").StoppingCriteriaList([ended] if stops else [])
