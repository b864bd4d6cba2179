"""Acquiring a source: its definition, its files from a mirror, its rows from a reader or generator."""
