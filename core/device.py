"""Is this device there?"""

from __future__ import annotations

import re

from .errors import FarshiftError, get_first_line


def check_device(device: str) -> None:
    """Raises `FarshiftError` for an unknown device, or one that torch does not have; "cpu" needs no torch."""
    if not re.fullmatch(r"cpu|cuda(:\d+)?|mps|xpu(:\d+)?", device):
        raise FarshiftError(f"device {device!r}: use cpu, cuda, cuda:1, mps ..")
    if device == "cpu":
        return
    try:
        import torch

        torch.empty(1, device=device)
    except ImportError as error:
        raise FarshiftError(f"device {device!r} needs torch: pip install 'farshift[train]'") from error
    except (RuntimeError, AssertionError) as error:
        raise FarshiftError(f"device {device!r} cannot be used here: {get_first_line(error)}") from error
