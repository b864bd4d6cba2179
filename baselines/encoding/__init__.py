"""Encoding rows as tensors, and decoding what a network gives."""
