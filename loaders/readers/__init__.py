"""Readers: one file a format; each turns a distribution's files into a table of the source's fields."""
