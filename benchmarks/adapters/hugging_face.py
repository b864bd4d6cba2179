"""A transformers model as a model: `hf:org/name[@revision]` from the Hub, or `hf:./folder` from the disk.

Weights are read from safetensors files alone: nothing is unpickled, and no code that came with a model is ever run.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from ...core.canonical import compute_identity
from ...core.errors import FarshiftError, MissingExtra, ModelError, Unavailable, get_first_line
from ...core.files import compute_file_sha256, is_offline
from ...loaders.mirrors import is_disk_error
from ...loaders.mirrors.hub import list_client_errors
from ..model import Model, Task
from ..parsing import wrap_user_errors
from ._hf_classifier import TextClassifier
from ._hf_generator import TextGenerator
from ._hf_images import ImageProcessor
from ._hf_logging import show_hub_progress, silence_transformers
from ._hf_media import AudioClassifier, ImageClassifier
from ._options import Options, read_options

if TYPE_CHECKING:
    from ..prompting.prompt import Prompt

SCHEME = "hf"

FILES = ("*.json", "*.safetensors", "*.txt", "*.model", "*.jinja")
"""What is fetched and digested of a model: configurations, weights, vocabularies. Never pickles, never code."""


class HuggingFaceOptions(Options):
    """What `--option` can set. dtype: of the weights; `auto` is as they are stored. batch_size: texts or pictures at
    once; answers depend on it by rounding alone. max_length: the most tokens of a text or prompt, if fewer than the
    model's own."""

    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    batch_size: int = Field(32, ge=1)
    max_length: int | None = Field(None, ge=1)


def from_spec(rest: str, options: Mapping[str, str]) -> HuggingFaceFactory:
    """The factory of `hf:REST`; a model of the Hub is downloaded here, once, and pinned to its commit.

    options: see `HuggingFaceOptions`. Raises `MissingExtra` without transformers, `Unavailable` where the Hub does not
    give the model, `FarshiftError` for a folder that is not there, a wrong option, or weights that are not safetensors.
    """
    read = read_options(HuggingFaceOptions, SCHEME, options)
    if any(importlib.util.find_spec(name) is None for name in ("torch", "transformers")):
        raise MissingExtra(f"the model hf:{rest}", "hf")
    if rest.startswith((".", "/", "~")):
        folder = Path(rest).expanduser().resolve()
        if not (folder / "config.json").is_file():
            raise FarshiftError(
                f"model hf:{rest}: {folder} holds no config.json: give a folder that save_pretrained wrote"
            )
        name, pinned = folder.name, _compute_folder_digest(folder)
    else:
        name, _, revision = rest.partition("@")
        folder = download_snapshot(name, revision or None)
        pinned = folder.name
    if not any(folder.glob("*.safetensors")):
        raise FarshiftError(
            f"model hf:{rest} has no .safetensors weights, and pickled ones are never read: "
            "save it again with save_pretrained"
        )
    return HuggingFaceFactory(folder, name, pinned, read)


def compute_weights_digest(pinned: str) -> str:
    """How run cards name weights, by the Hub's commit or the digest of a folder: whatever the options."""
    return compute_identity({"weights": pinned, "dtype": "auto", "max_length": None})


def _compute_folder_digest(folder: Path) -> str:
    files = sorted({path for pattern in FILES for path in folder.glob(pattern) if path.is_file()})
    return compute_identity([[path.name, path.stat().st_size, compute_file_sha256(path)] for path in files])


def download_snapshot(repository: str, revision: str | None, files: Sequence[str] = FILES) -> Path:
    """The folder of a model's files at a revision, in the Hub client's cache; the folder is named after the commit."""
    from huggingface_hub import snapshot_download

    try:
        with show_hub_progress(sys.stderr.isatty()):
            folder = snapshot_download(
                repository,
                revision=revision,
                allow_patterns=list(files),
                ignore_patterns=["*/*"],  # other formats and parts of a repository lie in folders of their own
                local_files_only=is_offline(),
            )
    except list_client_errors() as error:
        if is_disk_error(error):
            raise FarshiftError(
                f"model hf:{repository}: its files cannot be stored: {error}; set HF_HOME elsewhere"
            ) from error
        reason = get_first_line(error, silent="no message")
        named = f"{repository}@{revision}" if revision else repository
        advice = "check name and revision; a private or gated model needs a login (hf auth login)"
        if Path(repository).is_dir():
            advice = f"the folder of this name is written hf:./{repository}"
        raise Unavailable(f"model hf:{named}: {type(error).__name__}: {reason} {advice}") from error
    return Path(folder)


class HuggingFaceFactory:
    """Makes models of one pinned set of weights. They share the network, which predicting does not change.

    `code` is a digest of the Hub commit (or the folder's files) and of the options that answers depend on.
    """

    def __init__(self, folder: Path, name: str, pinned: str, options: HuggingFaceOptions) -> None:
        self.folder, self.name, self.options = folder, name, options
        self.code = compute_identity({"weights": pinned, "dtype": options.dtype, "max_length": options.max_length})
        self.pretrained = [{"name": name, "digest": compute_weights_digest(pinned)}]
        self._loaded: tuple[tuple[str, str], Any] | None = None
        self._tokenizer: Any = None

    def __call__(self, seed: int, task: Task, device: str, prompt: Prompt | None = None) -> Model:
        """A classifier of texts, pictures or sounds for classification tasks where the weights are one; else a
        generator, which needs a prompt.

        Answers are deterministic, whatever the seed: probabilities, or greedy decoding.
        """
        from transformers import AutoConfig

        with wrap_user_errors(f"reading {self.folder / 'config.json'}"), silence_transformers():
            config = AutoConfig.from_pretrained(self.folder, local_files_only=True, trust_remote_code=False)
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
                f"model hf:{self.name} is a {architecture}: on a {task.type} task it has to be prompted, "
                "and the benchmark has no prompt"
            )
        sort = "AutoModelForSeq2SeqLM" if config.is_encoder_decoder else "AutoModelForCausalLM"
        network, tokenizer = self._load(sort, device)
        return TextGenerator(network, tokenizer, prompt, options.batch_size, options.max_length)

    def _load(self, sort: str, device: str) -> tuple[Any, Any]:
        """Network and tokenizer, read once for all seeds."""
        import transformers

        network = self._network(sort, device)
        if self._tokenizer is None:
            with wrap_user_errors(f"loading hf:{self.name}"), silence_transformers():
                self._tokenizer = transformers.AutoTokenizer.from_pretrained(
                    self.folder, local_files_only=True, trust_remote_code=False
                )
        return network, self._tokenizer

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
                    f"{' ..' if len(lacking) > 3 else ''}): it was not trained for this"
                )
            self._loaded = (sort, device), network
        return self._loaded[1]


def _is_audio_classifier(architecture: str) -> bool:
    """Whether an architecture is a classifier of sounds: some are named like those of texts."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES

    return architecture in MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES.values()
