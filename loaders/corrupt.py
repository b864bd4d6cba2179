"""Common corruptions of images (Hendrycks and Dietterich 2019), by name, severity and row id.

>>> import numpy as np
>>> from farshift.loaders.corrupt import corrupt
>>> images = np.full((2, 32, 32, 3), 100, np.uint8)
>>> corrupt(images, "contrast", 3, row_ids=np.array([7, 8])).shape
(2, 32, 32, 3)
"""

from __future__ import annotations

from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from ..core.errors import BadData, BadDefinition, UnknownName
from ..core.plugins import PACKAGE, find_files_by_name, load_module
from .corruptions import blur, digital, noise, weather
from .corruptions._draws import Draws
from .corruptions._pixels import Corruption

FAMILIES: dict[str, ModuleType] = (
    dict.fromkeys(("gaussian_noise", "shot_noise", "impulse_noise"), noise)
    | dict.fromkeys(("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"), blur)
    | dict.fromkeys(("snow", "frost", "fog", "brightness"), weather)
    | dict.fromkeys(("contrast", "elastic_transform", "pixelate", "jpeg_compression"), digital)
    | {"speckle_noise": noise, "gaussian_blur": blur, "spatter": weather, "saturate": digital}
)
"""The module of each corruption, in the paper's order."""

BENCHMARK = tuple(FAMILIES)[:15]
"""The fifteen corruptions of the mean corruption error."""

VALIDATION = tuple(FAMILIES)[15:]
"""The four corruptions that the paper reserves for validation."""

SEVERITIES = (1, 2, 3, 4, 5)

_PIXELS_AT_ONCE = 2**22
"""The number of pixels corrupted at once, so that memory does not grow with the number of images."""


def corrupt(
    images: NDArray[np.uint8], corruption: str, severity: int, row_ids: NDArray[np.uint64]
) -> NDArray[np.uint8]:
    """Corrupt images (rows, height, width, 1 or 3) or (rows, height, width), 0 to 255. Returns the same shape.

    The random numbers of an image depend only on its row id, the corruption and the severity. Images of up to 64 pixels
    a side use the constants of CIFAR-10-C, larger ones those of ImageNet-C.
    """
    if severity not in SEVERITIES:
        raise BadDefinition(f"severity = {severity}: severities are 1 to 5")
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] not in (1, 3)):
        raise BadData(f"{images.dtype} of shape {images.shape} is not an array of images (rows, height, width, 1 or 3)")
    if len(row_ids) != len(images):
        raise BadData(f"{len(row_ids)} row ids for {len(images)} images")
    call = find_corruption(corruption)
    batch = images[..., None] if images.ndim == 3 else images
    corrupted = np.empty_like(batch)
    step = max(1, _PIXELS_AT_ONCE // max(1, batch[:1].size))
    for first in range(0, len(batch), step):
        rows = slice(first, first + step)
        corrupted[rows] = call(batch[rows], severity, Draws(row_ids[rows], f"{corruption}/{severity}"))
    return corrupted.reshape(images.shape)


def find_corruption(name: str) -> Corruption:
    """Return a corruption, of the package or a user's folder. Raises `UnknownName` if there is none."""
    if name in FAMILIES:
        shipped: Corruption = getattr(FAMILIES[name], name)
        return shipped
    files = find_files_by_name("loaders/corruptions", ".py")
    own = [own for own, path in files.items() if not path.is_relative_to(PACKAGE)]
    if name not in own:
        raise UnknownName("corruption", name, [*FAMILIES, *own])
    call: Corruption = load_module("loaders/corruptions", name, "corruption").corrupt
    return call
