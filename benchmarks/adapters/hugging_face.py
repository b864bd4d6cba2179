"""A transformers model as a model: `hf:org/name[@revision]` from the Hub, or `hf:./folder`.

Weights are read from safetensors files only: nothing is unpickled, and no code that comes with a model is run.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from ...core.canonical import compute_identity
from ...core.documents import read_json
from ...core.errors import FarshiftError, MissingExtra, ModelError, Unavailable, get_first_line
from ...core.files import compute_file_sha256, is_offline
from ...core.limits import MODEL_LAYERS
from ...loaders.mirrors import is_disk_error
from ...loaders.mirrors.hub import list_client_errors
from ..model import Model, Task
from ..parsing import wrap_user_errors
from ._hf_classifier import TextClassifier
from ._hf_generator import TextGenerator
from ._hf_images import ImageProcessor
from ._hf_media import AudioClassifier, ImageClassifier
from ._options import Options, read_options
from ._transformers import read_config, read_tokenizer, show_hub_progress, silence_transformers

if TYPE_CHECKING:
    from ..prompting.prompt import Prompt

SCHEME = "hf"

FILES = ("*.json", "*.safetensors", "*.txt", "*.model", "*.jinja")
"""The files of a model that are fetched and digested: configurations, weights, vocabularies; no pickles, no code."""


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


def compute_weights_digest(pinned: str) -> str:
    """Return the name of weights for run cards: the Hub's commit or the digest of a folder, regardless of the
    options."""
    return compute_identity({"weights": pinned, "dtype": "auto", "max_length": None})


def _compute_folder_digest(folder: Path) -> str:
    files = sorted({path for pattern in FILES for path in folder.glob(pattern) if path.is_file()})
    return compute_identity([[path.name, path.stat().st_size, compute_file_sha256(path)] for path in files])


def download_snapshot(repository: str, revision: str | None, files: Sequence[str] = FILES) -> Path:
    """Download a model's files at a revision; return their folder in the Hub client's cache, named by the commit."""
    from huggingface_hub import snapshot_download

    try:
        with show_hub_progress(sys.stderr.isatty()):
            folder = snapshot_download(
                repository,
                revision=revision,
                allow_patterns=list(files),
                ignore_patterns=["*/*"],  # subfolders have other formats and other parts of a repository
                local_files_only=is_offline(),
            )
    except list_client_errors() as error:
        if is_disk_error(error):
            raise FarshiftError(
                f"model hf:{repository}: its files cannot be stored: {error}; set HF_HOME to another folder"
            ) from error
        reason = get_first_line(error, silent="no message")
        named = f"{repository}@{revision}" if revision else repository
        advice = "check the name and the revision; a private or gated model needs a login (hf auth login)"
        if Path(repository).is_dir():
            advice = f"write hf:./{repository} for the local folder"
        raise Unavailable(f"model hf:{named}: {type(error).__name__}: {reason} {advice}") from error
    return Path(folder)


class HuggingFaceFactory:
    """Makes models of one pinned set of weights; they share the network.

    `code` is a digest of the Hub commit (or the folder's files) and of the options that change predictions.
    """

    def __init__(self, folder: Path, name: str, pinned: str, options: HuggingFaceOptions) -> None:
        self.folder, self.name, self.options = folder, name, options
        self.code = compute_identity({"weights": pinned, "dtype": options.dtype, "max_length": options.max_length})
        self.pretrained = [{"name": name, "digest": compute_weights_digest(pinned)}]
        self._loaded: tuple[tuple[str, str], Any] | None = None
        self._tokenizer: Any = None

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
            network, tokenizer = self._load("AutoModelForSequenceClassification", device)
            return TextClassifier(network, tokenizer, task, self.name, options.batch_size, options.max_length)
        if prompt is None:
            raise ModelError(
                f"model hf:{self.name} is a {architecture}: a {task.type} task needs a prompt, "
                "and the benchmark has none"
            )
        sort = "AutoModelForSeq2SeqLM" if config.is_encoder_decoder else "AutoModelForCausalLM"
        network, tokenizer = self._load(sort, device)
        return TextGenerator(network, tokenizer, prompt, options.batch_size, options.max_length)

    def _load(self, sort: str, device: str) -> tuple[Any, Any]:
        """Network and tokenizer, read once for all seeds."""
        if self._tokenizer is None:
            self._tokenizer = read_tokenizer(self.folder)
        return self._network(sort, device), self._tokenizer

    def _network(self, sort: str, device: str) -> Any:
        """The network, read once for all seeds."""
        if self._loaded is None or self._loaded[0] != (sort, device):
            import transformers

            with wrap_user_errors(f"loading hf:{self.name}"), silence_transformers():
                network, report = getattr(transformers, sort).from_pretrained(
                    self.folder,
                    dtype=self.options.dtype,
                    local_files_only=True,
                    trust_remote_code=False,
                    use_safetensors=True,
                    output_loading_info=True,
                )
                network = network.to(device).eval()
            lacking = sorted(report["missing_keys"])
            if lacking:
                raise ModelError(
                    f"model hf:{self.name} lacks weights for {type(network).__name__} ({', '.join(lacking[:3])}"
                    f"{' ..' if len(lacking) > 3 else ''}): the model was not trained for this"
                )
            self._loaded = (sort, device), network
        return self._loaded[1]


def _is_audio_classifier(architecture: str) -> bool:
    """Whether an architecture is an audio classifier; some are named like text classifiers."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES

    return architecture in MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES.values()
