"""Data files: path patterns, hidden files, and errors of damaged files."""
