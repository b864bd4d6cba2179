"""Scoring: a pure function from a run to its scores."""
