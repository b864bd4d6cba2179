"""Derived quantities of distribution-shift benchmarks beyond the mean of a metric: one file each, pure functions."""
