"""Generators: sources that are pure functions of their parameters; the same rows on every platform."""
