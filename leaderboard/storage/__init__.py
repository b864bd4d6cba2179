"""Storing, exporting and reading a board's files."""
