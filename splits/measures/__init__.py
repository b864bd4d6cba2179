"""Measures of a split: difficulty, compound divergence, near duplicates, vocabulary."""
