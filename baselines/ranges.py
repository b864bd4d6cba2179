"""Permitted values of settings, checked before anything is trained."""

from math import inf, isfinite
from typing import Any

from ..core.limits import MODEL_LAYERS, MODEL_WIDTH

RANGES: dict[str, tuple[float, float]] = {
    "batch_size": (0, inf),
    "lr": (0, inf),
    "weight_decay": (0, inf),
    "clip": (0, inf),
    "sharpness": (0, inf),
    "pool": (1, inf),
    "chunk": (0, inf),
    "candidates": (1, MODEL_WIDTH),
    "check_every": (0, inf),
    "patience": (0, inf),
    "dropout": (0, 1),
    "momentum": (0, 1),
    "beta1": (0, 1),
    "beta2": (0, 1),
    "eps": (0, inf),
    "width": (1, MODEL_WIDTH),
    "layers": (1, MODEL_LAYERS),
    "blocks": (1, MODEL_LAYERS),
    "rounds": (0, MODEL_LAYERS),
    "iterations": (1, MODEL_WIDTH),
    "iterations_per_token": (0, MODEL_WIDTH),
    "widths": (1, MODEL_WIDTH),
    "cell": (1, MODEL_WIDTH),
    "cells": (1, MODEL_WIDTH),
    "meaning": (1, MODEL_WIDTH),
    "syntax": (1, MODEL_WIDTH),
    "lora_rank": (0, MODEL_WIDTH),
    "heads": (1, MODEL_WIDTH),
    "feedforward": (1, MODEL_WIDTH),
    "depth": (0, MODEL_LAYERS),
    "buckets": (1, MODEL_WIDTH),
    "stretch": (0, inf),
    "copies": (0, MODEL_WIDTH),
    "hint_range": (1, MODEL_WIDTH),
    "position_range": (1, MODEL_WIDTH),
    "crop_least": (0, 1),
    "jitter": (0, inf),
    "grey_chance": (0, 1),
    "shift": (0, 1),
    "wilds_crop": (0, 1),
    "wilds_operations": (0, MODEL_WIDTH),
    "operations": (0, MODEL_WIDTH),
    "magnitude": (0, 10),
    "chains": (1, MODEL_WIDTH),
    "chain_depth": (0, MODEL_LAYERS),
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
}
"""Permitted values of settings that are words; `training/step_computation.py` and `training/feed.py` define them."""


def explain_out_of_range(name: str, value: Any) -> str:
    """Describe what is wrong with a setting's value of the right type; empty if nothing is known to be."""
    if name in CHOICES and value not in CHOICES[name]:
        return f"use {', '.join(CHOICES[name][:-1])} or {CHOICES[name][-1]}"
    if isinstance(value, list):
        if len(value) > MODEL_LAYERS:
            return f"use at most {MODEL_LAYERS} numbers"
        return next(filter(None, (explain_out_of_range(name, item) for item in value)), "")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    if not isfinite(value):
        return "use a finite number"
    least, most = RANGES.get(name, (0, 100) if name.endswith("_percent") else (-inf, inf))
    if least <= value <= most:
        return ""
    return f"use {least:g} or more" if most == inf else f"use a number from {least:g} to {most:.10g}"
