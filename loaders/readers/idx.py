"""Images and labels in IDX files, the format of MNIST and its successors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ._idx import read_images_and_labels
from ._tensors import to_tensor_column

if TYPE_CHECKING:
    import pyarrow as pa


def read(files: dict[str, Path], *, image: str, label: str, origin: str, parts: dict[str, list[str]]) -> pa.Table:
    """Fields: `image` (uint8, height x width), `label` (a whole number) and the text `origin`: the published part of
    the row. `parts` gives the pair of files (images, labels) of each part."""
    import pyarrow as pa

    images, labels, number = read_images_and_labels(files, list(parts.values()))
    names = np.array(list(parts))[number]
    return pa.table({image: to_tensor_column(images), label: labels, origin: pa.array(names.tolist())})
