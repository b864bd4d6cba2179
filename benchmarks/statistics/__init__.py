"""Statistics: one file a question. NumPy and the standard library only; SciPy is an oracle in the tests."""
