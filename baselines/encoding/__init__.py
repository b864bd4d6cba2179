"""Encode rows as tensors, and decode a network's outputs."""
