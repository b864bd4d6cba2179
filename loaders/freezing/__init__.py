"""Freezing a split into a manifest, verifying manifests, and comparing two versions."""
