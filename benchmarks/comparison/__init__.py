"""Comparing runs: paired differences, relations between runs, detectable differences, variation."""
