"""Readers, one module per format: each converts a distribution's files to a table of the source's fields."""
