"""Helpers of image augmentations: conversion to float pixels and back, and each row's range."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def compute_pixel_range(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return the range of each row's pixels, broadcastable to them; 1 for a row of equal pixels."""
    axes = tuple(range(1, values.ndim))
    pixel_range = values.max(axis=axes, keepdims=True).astype(np.float64) - values.min(axis=axes, keepdims=True)
    return np.where(pixel_range > 0, pixel_range, 1.0)


def clip_to_original(values: NDArray[Any], changed: NDArray[np.float64]) -> NDArray[Any]:
    """Convert changed pixels to the original type, clipped to each row's range."""
    axes = tuple(range(1, values.ndim))
    low, high = values.min(axis=axes, keepdims=True), values.max(axis=axes, keepdims=True)
    cut = np.clip(changed, low, high)
    return (np.rint(cut) if values.dtype.kind in "iu" else cut).astype(values.dtype)


def broadcast_per_row(numbers: NDArray[Any], values: NDArray[Any]) -> NDArray[Any]:
    """Reshape one number per row, shape (n,), to broadcast over that row's pixels."""
    return numbers.reshape(-1, *(1,) * (values.ndim - 1))
