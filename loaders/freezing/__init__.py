"""Freeze a split into a manifest, verify manifests, and compare two versions."""
