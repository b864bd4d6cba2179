"""Submissions: packing, validating, sending."""
