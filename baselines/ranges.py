"""Permitted values of settings, checked before anything is trained."""

from __future__ import annotations

from math import inf, isfinite
from typing import Any

RANGES: dict[str, tuple[float, float]] = {
    "batch_size": (0, inf),
    "lr": (0, inf),
    "weight_decay": (0, inf),
    "clip": (0, inf),
    "sharpness": (0, inf),
    "pool": (1, inf),
    "chunk": (0, inf),
    "candidates": (1, inf),
    "check_every": (0, inf),
    "patience": (0, inf),
    "dropout": (0, 1),
    "momentum": (0, 1),
    "beta1": (0, 1),
    "beta2": (0, 1),
    "eps": (0, inf),
    "width": (1, inf),
    "layers": (1, inf),
    "heads": (1, inf),
    "feedforward": (1, inf),
    "depth": (0, inf),
    "buckets": (1, inf),
    "stretch": (0, inf),
    "copies": (0, inf),
    "hint_range": (1, inf),
    "position_range": (1, inf),
    "crop_least": (0, 1),
    "jitter": (0, inf),
    "grey_chance": (0, 1),
    "shift": (0, 1),
    "wilds_crop": (0, 1),
    "wilds_operations": (0, inf),
    "operations": (0, inf),
    "magnitude": (0, 10),
    "chains": (1, inf),
    "chain_depth": (0, inf),
    "severity": (0.1, 10),
    "cutmix_chance": (0, 1),
    "time_warp": (0, inf),
    "frequency_bands": (0, inf),
    "frequency_width": (0, inf),
    "time_bands": (0, inf),
    "time_width": (0, inf),
    "time_share": (0, 1),
}
"""The minimum and maximum of settings that many recipes share; a name that ends in _percent has 0 to 100."""

CHOICES = {
    "precision": ("auto", "float32", "bfloat16"),
    "feed": ("auto", "resident", "streamed"),
    "memory_format": ("auto", "channels_last", "contiguous"),
}
"""Permitted values of settings that are words; `training/precision.py`, `training/feed.py` and
`training/memory_format.py` define them."""


def explain_out_of_range(name: str, value: Any) -> str:
    """Describe what is wrong with a setting's value of the right type; empty if nothing is known to be."""
    if name in CHOICES and value not in CHOICES[name]:
        return f"use {', '.join(CHOICES[name][:-1])} or {CHOICES[name][-1]}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    if not isfinite(value):
        return "use a finite number"
    least, most = RANGES.get(name, (0, 100) if name.endswith("_percent") else (-inf, inf))
    if least <= value <= most:
        return ""
    return f"use {least:g} or more" if most == inf else f"use a number from {least:g} to {most:g}"
