"""What every model of transformers needs: its files, configuration, tokenizer and processor, in silence.

No code that comes with a model is run, and only `download_snapshot` downloads.
"""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import FarshiftError, MissingExtra, ModelError, Unavailable, get_first_line
from ...core.files import is_offline
from ...loaders.batching.images import Given, map_images
from ...loaders.decoders import load_decoder
from ...loaders.mirrors import is_disk_error
from ...loaders.mirrors.hub import list_client_errors
from ..parsing import wrap_user_errors

if TYPE_CHECKING:
    from PIL.Image import Image

FILE = "preprocessor_config.json"

MODEL_FILES = ("*.json", "*.safetensors", "*.txt", "*.model", "*.jinja")
"""The files of a model that are fetched and digested: configurations, weights, vocabularies; no pickles, no code."""


def read_config(folder: Path) -> Any:
    """Read the configuration of a model's folder; `ModelError` for one that transformers cannot read."""
    return _read("AutoConfig", folder, f"reading {folder / 'config.json'}")


def read_tokenizer(folder: Path) -> Any:
    """Read the tokenizer of a model's folder; `ModelError` for a folder without one."""
    return _read("AutoTokenizer", folder, f"loading the tokenizer of {folder}")


def read_audio_processor(folder: Path) -> Any:
    """Read the processor of an audio model's folder; `ModelError` for a folder without it."""
    if not (folder / FILE).is_file():
        raise ModelError(f"model {folder.name} has no {FILE}: save its processor beside it")
    return _read("AutoFeatureExtractor", folder, f"reading the processor of {folder}")


def _read(kind: str, folder: Path, what: str) -> Any:
    with wrap_user_errors(what), silence_transformers():
        reader = getattr(import_module("transformers"), kind)
        return reader.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


@contextmanager
def silence_transformers() -> Iterator[None]:
    """Within the context transformers logs errors only; its settings are restored afterwards."""
    logging = import_module("transformers.utils.logging")
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            logging.set_verbosity(level)
            if bars:
                logging.enable_progress_bar()


_NO_LIMIT = 10**9
"""A tokenizer without a limit reports 10^30."""


def compute_context_length(config: Any, tokenizer: Any, max_length: int | None) -> int | None:
    """The maximum number of tokens: the minimum over positions, tokenizer and the user's limit."""
    limits = [getattr(config, "max_position_embeddings", None), tokenizer.model_max_length, max_length]
    return min((limit for limit in limits if isinstance(limit, int) and 0 < limit < _NO_LIMIT), default=None)


def find_pad_token(tokenizer: Any) -> int:
    """The id of the padding token; for a tokenizer without one, that of the end of text (it is masked)."""
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    return int(tokenizer.pad_token_id)


def count_frame_samples(config: Any) -> int:
    """The number of samples per frame, from the kernels and strides of the model's convolutions; 1 without them."""
    sizes = zip(getattr(config, "conv_kernel", ()), getattr(config, "conv_stride", ()), strict=True)
    least = 1
    for kernel, stride in reversed(list(sizes)):
        least = (least - 1) * stride + kernel
    return least


def download_snapshot(repository: str, revision: str | None, files: Sequence[str] = MODEL_FILES) -> Path:
    """Download a model's files at a revision; return their folder in the Hub client's cache, named by the commit."""
    from huggingface_hub import snapshot_download

    if not sys.stderr.isatty():
        import_module("huggingface_hub.utils").disable_progress_bars()
    try:
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
        raise Unavailable(f"model hf:{named}: {type(error).__name__}: {reason.rstrip('.')}; {advice}") from error
    return Path(folder)


def load_network(folder: Path, kind: str, name: str, **settings: Any) -> Any:
    """Load a network of the transformers class `kind` from a folder's safetensors files, in evaluation mode.
    `ModelError`, which calls the model `name`, if it cannot be read or lacks weights."""
    with wrap_user_errors(f"loading {name}"), silence_transformers():
        network, report = getattr(import_module("transformers"), kind).from_pretrained(
            folder,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            output_loading_info=True,
            **settings,
        )
    if lacking := sorted(report["missing_keys"]):
        raise ModelError(
            f"model {name} lacks weights for {type(network).__name__} ({', '.join(lacking[:3])}"
            f"{' ..' if len(lacking) > 3 else ''}): the model was not trained for this"
        )
    return network.eval()


class ImageProcessor:
    """The preprocessing of `preprocessor_config.json`: size and crop, interpolation, mean and standard deviation.

    Uses transformers' Pillow processors, which do not need torchvision. Raises `ModelError` for a folder
    without the file."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoImageProcessor

        if not (folder / FILE).is_file():
            raise ModelError(f"model {folder.name} has no {FILE}: save its image processor beside it")
        kind: Any = AutoImageProcessor
        how: dict[str, Any] = {"backend": "pil"} if int(version("transformers").split(".")[0]) >= 5 else {}
        with wrap_user_errors(f"reading {folder / FILE}"), silence_transformers():
            self._processor = kind.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False, **(how or {"use_fast": False})
            )
        self.name = folder.name

    @property
    def decides(self) -> list[str]:
        """Versions that the pixels depend on besides the model's files."""
        return [load_decoder().version, f"transformers {version('transformers')}"]

    def __str__(self) -> str:
        return f"processor of {self.name}"

    def remarks(self) -> dict[str, str]:
        """What decodes and resizes images, for the run card."""
        return {"pictures": str(self), "decoder": ", ".join(self.decides)}

    def pixels(self, given: Given) -> NDArray[np.float32]:
        """Preprocess images, encoded or as arrays, to (n, channels, height, width). `BadImage` names the first that
        cannot be decoded."""
        with silence_transformers():  # no message per image; the settings are process-wide, so once for all threads
            return map_images(given, self._process_image)

    def _process_image(self, image: Image) -> NDArray[np.float32]:
        batch = np.asarray(self._processor(image, return_tensors="np")["pixel_values"], np.float32)
        if batch.ndim != 4 or len(batch) != 1:
            raise ModelError(f"model {self.name} splits an image into several crops: give one that reads it whole")
        array: NDArray[np.float32] = batch[0]
        return array


def processor(model: str) -> ImageProcessor:
    """Load the image processor of a model, as the image format of `Part.torch` and of models.

    model: `org/name[@revision]` on the Hub, from which one file is downloaded, or a folder. Raises `MissingExtra`
    without transformers, `ModelError` for a model without the file, `Unavailable` if the Hub does not provide it.

    >>> import farshift as fs
    >>> fs.processor("./nowhere")
    Traceback (most recent call last):
    farshift.core.errors.ModelError: model nowhere has no preprocessor_config.json: save its image processor beside it
    """
    if importlib.util.find_spec("transformers") is None:
        raise MissingExtra(f"the processor of {model}", "hf")
    if model.startswith((".", "/", "~")):
        return ImageProcessor(Path(model).expanduser().resolve())
    name, _, revision = model.partition("@")
    image_processor = ImageProcessor(download_snapshot(name, revision or None, (FILE, "config.json")))
    image_processor.name = name
    return image_processor
