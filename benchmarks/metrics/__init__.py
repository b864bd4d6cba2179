"""Metrics: one file each, with a `VERSION` and `per_row(prediction, truth, task)`: scores in [0, 1], shape (rows,)."""
