"""Streamed parts: rows from remote shards, verified as they pass."""
