"""A vision model's own image processor: encoded images to pixels as in the model's training."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import ModelError
from ...loaders.batching.images import Given, map_images
from ...loaders.decoders import load_decoder
from ..parsing import wrap_user_errors
from ._transformers import FILE, silence_transformers

if TYPE_CHECKING:
    from PIL.Image import Image


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
