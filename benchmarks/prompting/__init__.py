"""Prompts for language models, and the grading of their outputs."""
