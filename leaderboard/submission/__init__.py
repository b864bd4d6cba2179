"""Submissions: packing, validation, upload."""
