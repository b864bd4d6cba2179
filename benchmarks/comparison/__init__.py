"""Comparison of runs: paired differences, relations between runs, detectable differences, sources of variation."""
