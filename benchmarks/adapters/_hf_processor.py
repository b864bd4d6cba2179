"""A vision model's image processor without the model, from the Hub or from a folder."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from ...core.errors import MissingExtra
from ._hf_images import ImageProcessor
from ._transformers import FILE
from .hugging_face import download_snapshot


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
